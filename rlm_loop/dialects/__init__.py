"""Dialects are how a loop and its model read each other: code blocks, function calls, ReAct text, and injectors."""

from rlm_loop.dialects.base import NO_TOOLS, ActionMode, Dialect, Direct, Problem, text_to_read
from rlm_loop.dialects.code_blocks import CodeBlocks
from rlm_loop.dialects.function_calls import FunctionCalls, Presentation, TypedCalls
from rlm_loop.dialects.injectors import (
    FormatReminder,
    Initiator,
    Injected,
    Injector,
    Nudge,
    ThoughtPrompt,
    Told,
    TurnCounter,
)
from rlm_loop.dialects.react import ReActText

__all__ = ["NO_TOOLS", "ActionMode", "CodeBlocks", "Dialect", "Direct"]
__all__ += ["FormatReminder", "FunctionCalls", "Initiator", "Injected", "Injector", "Nudge", "Presentation", "Problem"]
__all__ += ["ReActText", "ThoughtPrompt", "Told", "TurnCounter", "TypedCalls", "text_to_read"]

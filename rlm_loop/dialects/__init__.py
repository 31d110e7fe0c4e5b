"""Dialects are how a loop and its model read each other: code blocks, function calls, ReAct text, and injectors."""

from rlm_loop.dialects.base import NO_TOOLS, ActionMode, Dialect, DialectDefaults, Problem, text_to_read
from rlm_loop.dialects.code_blocks import CodeBlocks
from rlm_loop.dialects.direct import Direct
from rlm_loop.dialects.function_calls import FunctionCalls, Presentation
from rlm_loop.dialects.injectors import (
    AddsNothing,
    BudgetBanner,
    CodeEcho,
    FormatReminder,
    Initiator,
    Injected,
    Injector,
    Nudge,
    RefuseHighRisk,
    ThoughtPrompt,
    Told,
    TurnCounter,
)
from rlm_loop.dialects.react import ReActText
from rlm_loop.dialects.typed_actions import TypedCalls

__all__ = [
    "NO_TOOLS",
    "ActionMode",
    "AddsNothing",
    "BudgetBanner",
    "CodeBlocks",
    "CodeEcho",
    "Dialect",
    "DialectDefaults",
    "Direct",
    "FormatReminder",
    "FunctionCalls",
    "Initiator",
    "Injected",
    "Injector",
    "Nudge",
    "Presentation",
    "Problem",
    "ReActText",
    "RefuseHighRisk",
    "ThoughtPrompt",
    "Told",
    "TurnCounter",
    "TypedCalls",
    "text_to_read",
]

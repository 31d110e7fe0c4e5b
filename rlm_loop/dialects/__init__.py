"""Dialects are how a loop and its model read each other: code blocks, function calls, ReAct text, and injectors."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

_WHERE = {
    **dict.fromkeys(("NO_TOOLS", "ActionMode", "Dialect", "DialectDefaults", "Problem", "text_to_read"), "base"),
    "CodeBlocks": "code_blocks",
    "Direct": "direct",
    **dict.fromkeys(("FunctionCalls", "Presentation"), "function_calls"),
    "ReActText": "react",
    "TypedCalls": "typed_actions",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"rlm_loop.dialects.{_WHERE.get(name, 'injectors')}"), name)

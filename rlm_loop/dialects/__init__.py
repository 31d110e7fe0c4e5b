"""How a loop and its model read each other: code blocks, function calls, ReAct text, and injectors around them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rlm_loop.dialects.base import Dialect, DialectDefaults, Problem
    from rlm_loop.dialects.code_blocks import CodeBlocks
    from rlm_loop.dialects.direct import Direct
    from rlm_loop.dialects.function_calls import FunctionCalls
    from rlm_loop.dialects.injectors import (
        AddsNothing,
        BudgetBanner,
        CodeEcho,
        FormatReminder,
        Initiator,
        Injected,
        Injector,
        Nudge,
        ThoughtPrompt,
        TurnCounter,
    )
    from rlm_loop.dialects.react import ReActText

__all__ = [
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
    "Problem",
    "ReActText",
    "ThoughtPrompt",
    "TurnCounter",
]

_WHERE = {
    **dict.fromkeys(("Dialect", "DialectDefaults", "Problem"), "base"),
    "CodeBlocks": "code_blocks",
    "Direct": "direct",
    "FunctionCalls": "function_calls",
    "ReActText": "react",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"rlm_loop.dialects.{_WHERE.get(name, 'injectors')}"), name)

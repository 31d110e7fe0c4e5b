"""The listener to a model at work: a context variable, so that no model's signature knows of it."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Literal

from rlm_loop.accounting.scope import call_scope

Kind = Literal["begin", "loading", "thinking", "text", "call", "retry", "end"]
"""Kind of a text: a call begins (what was heard before is of another one), a model is being loaded (its name), a
piece of reasoning, of the reply, or of a tool call's arguments, an attempt that failed and why (what was heard of it
does not count), the call has ended."""

listener: ContextVar[Callable[[Kind, str], None] | None] = ContextVar("listener", default=None)
"""Set for one call of a model, where somebody wants to see its reply grow; a model that can then streams it."""


def tell(kind: Kind, text: str = "") -> None:
    """Tell the listener of this call, if there is one and the run still waits for the reply."""
    hear, scope = listener.get(), call_scope.get()
    if hear is not None and (scope is None or not scope.ended):
        hear(kind, text)

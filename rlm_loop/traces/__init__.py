"""Traces of runs: written line by line, read back, without secrets."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rlm_loop.traces.reader import RunRecord, read, read_all, records_of
    from rlm_loop.traces.redact import Redactor
    from rlm_loop.traces.trace import Trace, TraceError

_WHERE = {
    **dict.fromkeys(("RunRecord", "read", "read_all", "records_of"), "reader"),
    "Redactor": "redact",
    **dict.fromkeys(("Trace", "TraceError"), "trace"),
}

__all__ = ["Redactor", "RunRecord", "Trace", "TraceError", "read", "read_all", "records_of"]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"rlm_loop.traces.{_WHERE[name]}"), name)

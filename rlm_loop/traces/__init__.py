"""Traces of runs: written line by line, read back, without secrets."""

from __future__ import annotations

from rlm_loop.traces.reader import RunRecord, read, read_all
from rlm_loop.traces.redact import Redactor
from rlm_loop.traces.trace import Trace, TraceError

__all__ = ["Redactor", "RunRecord", "Trace", "TraceError", "read", "read_all"]

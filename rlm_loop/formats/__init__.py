"""Files of other tools: runs written for them and read from them, and tables of results that anybody made."""

from __future__ import annotations

from rlm_loop.formats.results import Loaded, load_results, load_sources
from rlm_loop.formats.results.source import ReadOptions
from rlm_loop.formats.traces import FormatError, conversation_of, export_study, export_trace, send_trace
from rlm_loop.formats.traces.otel import spans_of

__all__ = [
    "FormatError",
    "Loaded",
    "ReadOptions",
    "conversation_of",
    "export_study",
    "export_trace",
    "load_results",
    "load_sources",
    "send_trace",
    "spans_of",
]

"""Files of other tools: runs written for them, and tables of results that anybody made."""

from __future__ import annotations

from rlm_loop.formats.conversation import FormatError, conversation_of
from rlm_loop.formats.export import export_study, export_trace, send_trace
from rlm_loop.formats.otel import spans_of
from rlm_loop.formats.results import Loaded, load_results, load_sources

__all__ = [
    "FormatError",
    "Loaded",
    "conversation_of",
    "export_study",
    "export_trace",
    "load_results",
    "load_sources",
    "send_trace",
    "spans_of",
]

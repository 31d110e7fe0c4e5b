"""Files of other tools: runs written for them, and tables of results that anybody made."""

from __future__ import annotations

from rlm_loop.formats.conversation import FormatError, conversation_of
from rlm_loop.formats.export import export_study, export_trace
from rlm_loop.formats.otel import spans_of
from rlm_loop.formats.results import load_results

__all__ = [
    "FormatError",
    "conversation_of",
    "export_study",
    "export_trace",
    "load_results",
    "spans_of",
]

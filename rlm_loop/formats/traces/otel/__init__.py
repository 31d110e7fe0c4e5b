"""OpenTelemetry: a run as spans, by the semantic conventions for generative AI.

`spans.spans_of` makes plain values, `exporting` hands them to OpenTelemetry's own exporters, `live` sends them while a
run goes on.  The names of attributes are written out here: the package that holds them says that its incubating part
may change and is to be copied.  A test compares every name with that package.
"""

from rlm_loop.formats.traces.otel.live import OpenTelemetryHook
from rlm_loop.formats.traces.otel.spans import SpanData, spans_of

__all__ = ["OpenTelemetryHook", "SpanData", "spans_of"]

"""OpenTelemetry: a run as spans, by the semantic conventions for generative AI.

`spans.spans_of` makes plain values, `exporting` hands them to OpenTelemetry's own exporters.  The names of attributes
are written out here: the package that holds them says that its incubating part may change and is to be copied.  A test
compares every name with that package.
"""

from rlm_loop.formats.traces.otel.spans import SpanData, spans_of

__all__ = ["SpanData", "spans_of"]

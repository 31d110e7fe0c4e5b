"""Spans to a file or to an address, by OpenTelemetry's own exporters.

A file is JSON Lines in OTLP's encoding, one request a line, as the file exporter of the OpenTelemetry Collector writes
them.  An address takes OTLP over HTTP; `OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_RESOURCE_ATTRIBUTES` and the other
variables of OpenTelemetry hold.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from rlm_loop.errors import install_line
from rlm_loop.formats.traces.errors import FormatError
from rlm_loop.formats.traces.otel.spans import SpanData
from rlm_loop.traces.versions import __version__

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

SCOPE = "rlm_loop"
#: Spans of one request to an address: each may hold a whole conversation.
_BATCH = 32


def write_spans(spans: Sequence[SpanData], path: Path) -> None:
    """Write the spans as one line of OTLP's JSON.  Raises `ImportError` without the extra `otel`, `OSError`."""
    try:
        from google.protobuf.json_format import MessageToDict
        from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
    except ImportError as error:
        raise _missing() from error
    request: dict[str, Any] = MessageToDict(encode_spans(readable(spans)), use_integers_for_enums=True)
    for resource in request["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:  # OTLP writes ids in hexadecimal, protobuf's own JSON in base64
                for name in ("traceId", "spanId", "parentSpanId"):
                    if name in span:
                        span[name] = base64.b64decode(span[name]).hex()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(request, ensure_ascii=False) + "\n", encoding="utf-8")


def send_spans(spans: Sequence[SpanData], address: str, headers: Mapping[str, str] | None = None) -> None:
    """Send the spans to an OTLP endpoint (`/v1/traces` where no path is given).

    Raises `FormatError` where it does not take them, and `ImportError`.
    """
    from rlm_loop.traces.redact import redact

    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace.export import SpanExportResult
    except ImportError as error:
        raise _missing() from error
    whole = f"{address.rstrip('/')}/v1/traces" if urlsplit(address).path in ("", "/") else address
    exporter = OTLPSpanExporter(endpoint=whole, headers=None if headers is None else dict(headers))
    try:
        ready = readable(spans)
        for start in range(0, len(ready), _BATCH):
            if exporter.export(ready[start : start + _BATCH]) is not SpanExportResult.SUCCESS:
                raise FormatError(f"{redact(address)} did not take the spans; the line of OpenTelemetry says why")
    finally:
        exporter.shutdown()


def readable(spans: Sequence[SpanData]) -> list[ReadableSpan]:
    """The spans as OpenTelemetry's SDK has them.  Raises `ImportError` without the extra `otel`."""
    try:
        from opentelemetry.sdk.resources import OTELResourceDetector, Resource
        from opentelemetry.sdk.trace import Event, ReadableSpan
        from opentelemetry.sdk.util.instrumentation import InstrumentationScope
        from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags
    except ImportError as error:
        raise _missing() from error
    service = {"service.name": "rlm-loop", "service.version": __version__}
    resource, scope = Resource(service).merge(OTELResourceDetector().detect()), InstrumentationScope(SCOPE, __version__)

    def context(id: str, trace: str) -> SpanContext:
        return SpanContext(int(trace, 16), int(id, 16), is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))

    found = list[ReadableSpan]()
    for span in spans:
        end = _nanoseconds(span.end)
        error = {} if span.error is None else {"error.type": span.error[0]}
        found.append(
            ReadableSpan(
                _sendable(span.name),
                context(span.id, span.trace),
                None if span.parent is None else context(span.parent, span.trace),
                resource,
                {name: _sendable(value) for name, value in {**span.attributes, **error}.items()},
                [Event(name, {k: _sendable(v) for k, v in more.items()}, end) for name, more in span.events],
                kind=SpanKind[span.kind.upper()],
                status=Status() if span.error is None else Status(StatusCode.ERROR, _sendable(span.error[1]) or None),
                start_time=_nanoseconds(span.start),
                end_time=end,
                instrumentation_scope=scope,
            )
        )
    return found


def _nanoseconds(seconds: float) -> int:
    return round(seconds * 1_000_000) * 1_000


def _sendable(value: Any) -> Any:
    """Text that UTF-8 can hold: a lone half of a surrogate pair is written as its escape."""
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value


def _missing() -> ImportError:
    return ImportError(f"spans of OpenTelemetry need the package opentelemetry-sdk: {install_line('otel')}")

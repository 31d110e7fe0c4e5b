"""An OTLP endpoint on the loopback that keeps what it gets, parsed by opentelemetry-proto; and its JSON, read."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path
from typing import Any

from loopback import Answering, Loopback


class Receiver(Loopback):
    """Keeps the requests that came, as paths, headers and parsed bodies, and answers with that status."""

    def __init__(self, status: int = 200) -> None:
        self.status = status
        self.paths: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.bodies: list[Any] = []
        super().__init__(_Handler)

    @property
    def spans(self) -> list[Any]:
        return [span for body in self.bodies for span in spans_in(body)]


class _Handler(Answering):
    protocol_version = "HTTP/1.0"  # no connection outlives its request
    server: Receiver

    def do_POST(self) -> None:
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

        body = self.body()
        body = gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body
        self.server.bodies.append(ExportTraceServiceRequest.FromString(body))
        self.server.paths.append(self.path)
        self.server.headers.append({name.lower(): value for name, value in self.headers.items()})
        self.answer(self.server.status, "")


def parsed(path: Path) -> Any:
    """A line of OTLP's JSON as opentelemetry-proto reads it; its ids are hexadecimal, which protobuf does not know."""
    from google.protobuf.json_format import ParseDict
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    def mended(read: dict[str, Any]) -> dict[str, Any]:
        for name in {"traceId", "spanId", "parentSpanId"} & set(read):
            read[name] = base64.b64encode(bytes.fromhex(read[name])).decode()
        return read

    [line] = path.read_text(encoding="utf-8").splitlines()
    return ParseDict(json.loads(line, object_hook=mended), ExportTraceServiceRequest())


def spans_in(request: Any) -> list[Any]:
    """The spans of a request."""
    return [span for resource in request.resource_spans for scope in resource.scope_spans for span in scope.spans]


def attributes(span: Any) -> dict[str, Any]:
    """The attributes of a span as plain values."""
    return {pair.key: _value(pair.value) for pair in span.attributes}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    found = getattr(value, kind)
    return [_value(item) for item in found.values] if kind == "array_value" else found

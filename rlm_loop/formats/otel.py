"""A run as spans of OpenTelemetry, by its semantic conventions for generative AI: to a file or to an address.

A file is JSON Lines in OTLP's encoding, as the Collector's file exporter writes them.  An address takes OTLP over
HTTP; `OTEL_EXPORTER_OTLP_HEADERS` and the other variables of OpenTelemetry hold.  Usage is on the calls of models
alone, since readers add up what all spans of a trace say.  What the conventions have no name for is under `rlm_loop`:
`rlm_loop.tokens.<cause>` are the input tokens of a call by cause, and sum to them.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from rlm_loop.errors import install_line
from rlm_loop.formats.conversation import Act, Conversation, FormatError, Span, arguments_of
from rlm_loop.messages import Message, Reply, Usage
from rlm_loop.outcome import Score
from rlm_loop.replay.recorded import NodeRecord, RecordedCall
from rlm_loop.traces.redact import redact
from rlm_loop.versions import __version__

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

#: Spans of one request to an address: each may hold a whole conversation.
_BATCH = 32


def write_spans(conversations: Sequence[Conversation], path: Path) -> None:
    """Write each run's spans as a line of OTLP's JSON; raises `ImportError` as `spans_of`, and `OSError`."""
    lines: list[str] = []
    for spans in map(spans_of, conversations):
        from google.protobuf.json_format import MessageToDict
        from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

        request: dict[str, Any] = MessageToDict(encode_spans(spans), use_integers_for_enums=True)
        for resource in request["resourceSpans"]:
            for scope in resource["scopeSpans"]:
                for span in scope["spans"]:  # OTLP writes ids in hexadecimal, protobuf's own JSON in base64
                    for name in {"traceId", "spanId", "parentSpanId"} & set(span):
                        span[name] = base64.b64decode(span[name]).hex()
        lines.append(json.dumps(request, ensure_ascii=False) + "\n")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(lines), encoding="utf-8")


def send_spans(conversation: Conversation, address: str) -> None:
    """Send the spans of a run to an OTLP endpoint.  Raises `FormatError` where it does not take them, `ImportError`."""
    spans = spans_of(conversation)
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace.export import SpanExportResult

    whole = f"{address.rstrip('/')}/v1/traces" if urlsplit(address).path in ("", "/") else address
    exporter = OTLPSpanExporter(endpoint=whole)
    try:
        for start in range(0, len(spans), _BATCH):
            if exporter.export(spans[start : start + _BATCH]) is not SpanExportResult.SUCCESS:
                raise FormatError(f"{redact(address)} did not take the spans; the line of OpenTelemetry says why")
    finally:
        exporter.shutdown()


def spans_of(conversation: Conversation) -> list[ReadableSpan]:
    """Return all spans of a run, each after its parent.

    An id is made of the run and a place in it, so that a run has the same spans however often it is sent.  Raises
    `ImportError` without the extra `otel`.
    """
    try:
        from opentelemetry.sdk.resources import OTELResourceDetector, Resource
        from opentelemetry.sdk.trace import Event, ReadableSpan
        from opentelemetry.sdk.util.instrumentation import InstrumentationScope
        from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags
    except ImportError as error:
        raise ImportError(f"spans need the package opentelemetry-sdk: {install_line('otel')}") from error

    run, root = conversation, conversation.spans[0]
    about = [run.told(name, "") for name in ("agent", "model", "question")]
    trace = _hash(repr([run.id, root.began, *about]))[:32]
    resource = Resource({"service.name": "rlm-loop", "service.version": __version__})
    resource = resource.merge(OTELResourceDetector().detect())
    scope = InstrumentationScope("rlm_loop", __version__)

    def context(place: str) -> SpanContext:
        id = int(_hash(f"{trace}/{place}")[:16], 16)
        return SpanContext(int(trace, 16), id, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))

    def sent(attributes: Mapping[str, Any]) -> dict[str, Any]:
        return {k: _sendable(v) for k, v in attributes.items() if v is not None}

    found: list[ReadableSpan] = []
    for span in run.spans:
        start, end = (round(seconds * 1_000_000) * 1_000 for seconds in (span.began, span.ended))
        kind, line = span.fault or (None, "")
        judged = sent(_score(run.score)) if span is root else {}
        name, attributes = _described(run, span)
        attributes |= {"gen_ai.conversation.id": run.id, "error.type": kind}
        made = ReadableSpan(
            _sendable(name),
            context(span.id),
            None if span.parent is None else context(span.parent),
            resource,
            sent(attributes),
            [Event("gen_ai.evaluation.result", judged, end)] if judged else (),
            kind=SpanKind.CLIENT if isinstance(span.of, RecordedCall) else SpanKind.INTERNAL,
            status=Status(StatusCode.ERROR, _sendable(line) or None) if kind else Status(),
            start_time=start,
            end_time=end,
            instrumentation_scope=scope,
        )
        found.append(made)
    return found


def _described(run: Conversation, span: Span) -> tuple[str, dict[str, Any]]:
    """The name of a span and what is said of it."""
    match span.of:
        case Act() as act:
            return f"execute_tool {act.name}", {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": act.name,
                "gen_ai.tool.type": "function",
                "gen_ai.tool.call.id": act.id,
                "gen_ai.tool.call.arguments": _text(act.arguments),
                "gen_ai.tool.call.result": act.observation.text,
            }
        case RecordedCall() as call:
            return f"chat {call.model}".strip(), _call(call, span.causes)
        case node:
            return _agent(run, node, is_root=span is run.spans[0])


def _agent(run: Conversation, node: NodeRecord, *, is_root: bool) -> tuple[str, dict[str, Any]]:
    start, end = node.start or {}, node.end or {}
    found: dict[str, Any] = {
        "rlm_loop.node": node.path,
        "rlm_loop.stop": end.get("stop"),
        "rlm_loop.answer": _text(end.get("answer")),
        "rlm_loop.stop_reason": end.get("reason") or None,
    }
    if is_root:
        found["rlm_loop.question"] = run.about.get("question") or None
        found["rlm_loop.task"] = run.told("task", "question")
        found |= {f"rlm_loop.episode.{name}": value for name, value in run.episode.items()}
    if start.get("kind") == "completion":  # a single sub-call is no agent, and has no operation
        return "llm_query", found
    agent, model = run.told("agent", "agent"), str(start.get("model") or run.told("model", "unknown"))
    found |= {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": agent}
    found |= {"gen_ai.request.model": model, "gen_ai.provider.name": _provider(model)}
    return f"invoke_agent {agent}", found


def _call(call: RecordedCall, causes: Mapping[str, int]) -> dict[str, Any]:
    tools = [{"type": "function", **tool["function"]} for tool in call.prompt.tools]
    found: dict[str, Any] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": _provider(call.model),
        "gen_ai.request.model": call.model or None,
        "gen_ai.input.messages": _text([_message(message) for message in call.prompt.messages]),
        "gen_ai.tool.definitions": _text(tools) if tools else None,
        "rlm_loop.turn": call.turn,
        "rlm_loop.purpose": call.purpose,
    }
    found |= {f"rlm_loop.tokens.{cause.replace(':', '.')}": tokens for cause, tokens in causes.items()}
    if call.reply is not None:
        usage = call.reply.usage or Usage(None, None)
        found |= {
            "gen_ai.response.finish_reasons": (call.reply.finish_reason,),
            "gen_ai.usage.input_tokens": usage.input_tokens,
            "gen_ai.usage.output_tokens": usage.output_tokens,
            "gen_ai.usage.cache_read.input_tokens": usage.cache_read_tokens,
            "gen_ai.usage.cache_creation.input_tokens": usage.cache_write_tokens,
            "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens,
            "gen_ai.output.messages": _text([_said(call.reply)]),
        }
    return found


def _score(score: Score | None) -> dict[str, Any]:
    if score is None or score.resolved is None:
        return {}
    return {
        "gen_ai.evaluation.name": "resolved",
        "gen_ai.evaluation.score.value": score.value,
        "gen_ai.evaluation.score.label": "resolved" if score.resolved else "not resolved",
        "gen_ai.evaluation.explanation": score.reason or None,
    }


def _message(message: Message) -> dict[str, Any]:
    """A message by OpenTelemetry's schema."""
    if message.role == "tool":
        answer = {"type": "tool_call_response", "id": message.tool_call_id, "response": message.text}
        return {"role": "tool", "parts": [answer]}
    return {"role": message.role, "parts": _parts(message)}


def _said(reply: Reply) -> dict[str, Any]:
    """A reply by OpenTelemetry's schema."""
    thought = reply.extra.get("reasoning_content")
    thoughts = [{"type": "reasoning", "content": thought}] if isinstance(thought, str) and thought else []
    reason = "tool_call" if reply.finish_reason == "tool_calls" else reply.finish_reason
    return {"role": "assistant", "parts": [*thoughts, *_parts(reply)], "finish_reason": reason}


def _parts(said: Message | Reply) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = [{"type": "text", "content": said.text}] if said.text else []
    for call in said.tool_calls:
        asked = {"id": call.id, "name": call.name, "arguments": arguments_of(call.arguments)}
        parts.append({"type": "tool_call", **asked})
    return parts


def _provider(model: str) -> str | None:
    """Return who answers under a model's name; `None` where the name does not say it."""
    return min((model.partition(mark)[0] for mark in "/:" if mark in model), key=len, default=None) or None


def _text(value: Any) -> str | None:
    """A value as an attribute: text as it is, else as JSON."""
    return value if isinstance(value, str | None) else json.dumps(value, ensure_ascii=False, default=str)


def _sendable(value: Any) -> Any:
    """Text that UTF-8 can hold: a lone half of a surrogate pair is written as its escape."""
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

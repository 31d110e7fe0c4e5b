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
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from rlm_loop.errors import install_line
from rlm_loop.formats.conversation import Act, Agent, Conversation, FormatError, Step, arguments_of
from rlm_loop.messages import Message, Reply, Usage
from rlm_loop.traces.redact import redact
from rlm_loop.versions import __version__

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.trace import SpanContext

#: Spans of one request to an address: each may hold a whole conversation.
_BATCH = 32


def write_spans(conversation: Conversation, path: Path, *, content: bool = True) -> None:
    """Write the spans of a run as one line of OTLP's JSON; raises `ImportError` as `spans_of`, and `OSError`."""
    spans = spans_of(conversation, content=content)
    from google.protobuf.json_format import MessageToDict
    from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

    request: dict[str, Any] = MessageToDict(encode_spans(spans), use_integers_for_enums=True)
    for resource in request["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:  # OTLP writes ids in hexadecimal, protobuf's own JSON in base64
                for name in {"traceId", "spanId", "parentSpanId"} & set(span):
                    span[name] = base64.b64decode(span[name]).hex()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(request, ensure_ascii=False) + "\n", encoding="utf-8")


def send_spans(
    conversation: Conversation, address: str, headers: Mapping[str, str] | None, *, content: bool = True
) -> None:
    """Send the spans of a run to an OTLP endpoint.  Raises `FormatError` where it does not take them, `ImportError`."""
    spans = spans_of(conversation, content=content)
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace.export import SpanExportResult

    whole = f"{address.rstrip('/')}/v1/traces" if urlsplit(address).path in ("", "/") else address
    exporter = OTLPSpanExporter(endpoint=whole, headers=None if headers is None else dict(headers))
    try:
        for start in range(0, len(spans), _BATCH):
            if exporter.export(spans[start : start + _BATCH]) is not SpanExportResult.SUCCESS:
                raise FormatError(f"{redact(address)} did not take the spans; the line of OpenTelemetry says why")
    finally:
        exporter.shutdown()


def spans_of(conversation: Conversation, *, content: bool = True) -> list[ReadableSpan]:
    """Return all spans of a run, each after its parent; without `content` only names and figures, nothing said.

    An id is made of the run and a place in it, so that a run has the same spans however often it is sent.  A run that
    never ended has open spans: they reach to the latest time that is known.  Raises `ImportError` without the extra
    `otel`.
    """
    try:
        return _Spans(conversation, content).agent(conversation.root, None)
    except ImportError as error:
        raise ImportError(f"spans need the package opentelemetry-sdk: {install_line('otel')}") from error


class _Spans:
    def __init__(self, conversation: Conversation, content: bool) -> None:
        from opentelemetry.sdk.resources import OTELResourceDetector, Resource
        from opentelemetry.sdk.util.instrumentation import InstrumentationScope

        self.run, self.content = conversation, content
        about = [conversation.told(name, "") for name in ("agent", "model", "question")]
        self.trace = _hash(repr([conversation.id, conversation.root.began, *about]))[:32]
        service = {"service.name": "rlm-loop", "service.version": __version__}
        self.resource = Resource(service).merge(OTELResourceDetector().detect())
        self.scope = InstrumentationScope("rlm_loop", __version__)

    def agent(self, agent: Agent, parent: SpanContext | None) -> list[ReadableSpan]:
        """The span of an agent, and those of all below it."""
        own = self._context(agent.path)
        below: list[ReadableSpan] = []
        for place, step in enumerate(agent.steps):
            called = self._context(f"{agent.path}/{place}")
            times = step.started, step.ended
            name = f"chat {step.model}".strip()
            below.append(self._span(name, called, own, times, self._call(step), step.fault, client=True))
            for number, act in enumerate(step.acts):
                at, failure = self._context(f"{agent.path}/{place}/{number}"), act.observation.failure
                fault = None if failure is None else (str(failure.kind), failure.message)
                times = act.started, act.ended
                below.append(self._span(f"execute_tool {act.name}", at, own, times, self._act(act), fault))
                for child in act.agents:
                    below += self.agent(child, at)
        for child in agent.agents:
            below += self.agent(child, own)
        last = max([agent.ended, *((span.end_time or 0) / 1e9 for span in below)])
        name = "llm_query" if agent.kind == "completion" else f"invoke_agent {self.run.told('agent', 'agent')}"
        judged = {} if parent else self._score()
        return [self._span(name, own, parent, (agent.began, last), self._agent(agent), agent.fault, judged), *below]

    def _span(
        self,
        name: str,
        own: SpanContext,
        parent: SpanContext | None,
        times: tuple[float, float],
        attributes: Mapping[str, Any],
        fault: tuple[str, str] | None,
        judged: Mapping[str, Any] | None = None,
        *,
        client: bool = False,
    ) -> ReadableSpan:
        from opentelemetry.sdk.trace import Event, ReadableSpan
        from opentelemetry.trace import SpanKind, Status, StatusCode

        start, end = (round(seconds * 1_000_000) * 1_000 for seconds in times)
        kind, line = fault or (None, "")
        line = _sendable(line) if self.content and line else None
        return ReadableSpan(
            _sendable(name),
            own,
            parent,
            self.resource,
            _known({**attributes, "error.type": kind}),
            [Event("gen_ai.evaluation.result", _known(judged), end)] if judged else (),
            kind=SpanKind.CLIENT if client else SpanKind.INTERNAL,
            status=Status(StatusCode.ERROR, line) if fault else Status(),
            start_time=start,
            end_time=end,
            instrumentation_scope=self.scope,
        )

    def _context(self, place: str) -> SpanContext:
        from opentelemetry.trace import SpanContext, TraceFlags

        id = int(_hash(f"{self.trace}/{place}")[:16], 16)
        return SpanContext(int(self.trace, 16), id, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))

    def _agent(self, agent: Agent) -> dict[str, Any]:
        run, end = self.run, agent.end
        found: dict[str, Any] = {
            "gen_ai.conversation.id": run.id,
            "rlm_loop.node": agent.path,
            "rlm_loop.stop": end.get("stop"),
        }
        if agent.kind != "completion":  # a single sub-call is no agent, and has no operation
            model = agent.model or run.told("model", "unknown")
            found |= {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": run.told("agent", "agent")}
            found |= {"gen_ai.request.model": model, "gen_ai.provider.name": _provider(model)}
        root = agent is run.root
        if self.content:
            found |= {"rlm_loop.answer": _text(end.get("answer")), "rlm_loop.stop_reason": end.get("reason") or None}
        if root and self.content:
            found["rlm_loop.question"] = run.about.get("question") or None
        if root:
            found["rlm_loop.task"] = run.told("task", "question")
            found |= {f"rlm_loop.episode.{name}": value for name, value in run.episode.items()}
        return found

    def _call(self, step: Step) -> dict[str, Any]:
        found: dict[str, Any] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.conversation.id": self.run.id,
            "gen_ai.provider.name": _provider(step.model),
            "gen_ai.request.model": step.model or None,
            "rlm_loop.turn": step.turn,
            "rlm_loop.purpose": step.purpose,
        }
        found |= {f"rlm_loop.tokens.{cause.replace(':', '.')}": tokens for cause, tokens in step.causes.items()}
        if self.content:
            found["gen_ai.input.messages"] = _text([_message(message) for message in step.messages])
            tools = [{"type": "function", **tool["function"]} for tool in step.tools]
            found["gen_ai.tool.definitions"] = _text(tools) if tools else None
        if step.reply is not None:
            usage = step.reply.usage or Usage(None, None)
            found |= {
                "gen_ai.response.finish_reasons": (step.reply.finish_reason,),
                "gen_ai.usage.input_tokens": usage.input_tokens,
                "gen_ai.usage.output_tokens": usage.output_tokens,
                "gen_ai.usage.cache_read.input_tokens": usage.cache_read_tokens,
                "gen_ai.usage.cache_creation.input_tokens": usage.cache_write_tokens,
                "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens,
            }
            if self.content:
                found["gen_ai.output.messages"] = _text([_said(step.reply)])
        return found

    def _act(self, act: Act) -> dict[str, Any]:
        found: dict[str, Any] = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.conversation.id": self.run.id,
            "gen_ai.tool.name": act.name,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": act.id,
        }
        if self.content:
            found["gen_ai.tool.call.arguments"] = _text(act.arguments)
            found["gen_ai.tool.call.result"] = act.observation.text
        return found

    def _score(self) -> dict[str, Any]:
        score = self.run.score
        if score is None or score.resolved is None:
            return {}
        return {
            "gen_ai.evaluation.name": "resolved",
            "gen_ai.evaluation.score.value": score.value,
            "gen_ai.evaluation.score.label": "resolved" if score.resolved else "not resolved",
            "gen_ai.evaluation.explanation": (score.reason or None) if self.content else None,
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


def _known(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _sendable(value) for name, value in attributes.items() if value is not None}


def _sendable(value: Any) -> Any:
    """Text that UTF-8 can hold: a lone half of a surrogate pair is written as its escape."""
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

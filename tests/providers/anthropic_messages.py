"""Anthropic's Messages.

After the API reference ("Create a Message", https://docs.anthropic.com/en/api/messages), the guide on tool use ("handle
tool results") and the errors that the service is known to give; roles alternate strictly here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from lazy import Lazy
from pydantic import ConfigDict, Field, ValidationError

from tests.providers.serving import CACHE_READ, CACHE_WRITE, INPUT, OUTPUT, Provider, Refused, Said, Strict, halves, sse

types = Lazy("anthropic.types")  # 2 seconds, which who only collects the tests does not pay
Solid = Annotated[str, Field(pattern=r"\S")]
Id = Annotated[str, Field(pattern=r"^[a-zA-Z0-9_-]+$")]
Name = Annotated[str, Field(pattern=r"^[a-zA-Z0-9_-]{1,128}$")]


class Cached(Strict):
    cache_control: dict[str, Any] | None = None


class Text(Cached):
    type: Literal["text"]
    text: Solid


class Use(Cached):
    type: Literal["tool_use"]
    id: Id
    name: Name
    input: dict[str, Any]


class Result(Cached):
    type: Literal["tool_result"]
    tool_use_id: Id
    content: str | list[Text] = ""
    is_error: bool | None = None


Block = Annotated[Text | Use | Result, Field(discriminator="type")]


class Message(Strict):
    role: Literal["user", "assistant"]
    content: Solid | Annotated[list[Block], Field(min_length=1)]


class Schema(Strict):
    model_config = ConfigDict(extra="allow")
    type: Literal["object"]


class Tool(Cached):
    name: Name
    description: str | None = None
    input_schema: Schema
    type: Literal["custom"] | None = None
    strict: bool | None = None


class Request(Strict):
    model: str
    max_tokens: Annotated[int, Field(ge=1)]
    messages: Annotated[list[Message], Field(min_length=1)]
    system: Solid | list[Text] | None = None
    stop_sequences: list[Solid] | None = None
    temperature: Annotated[float, Field(ge=0, le=1, strict=False)] | None = None
    top_p: float | None = None
    top_k: int | None = None
    tools: list[Tool] | None = None
    tool_choice: Any = None
    metadata: Any = None
    output_config: dict[str, Any] | None = None
    stream: bool | None = None


class AnthropicMessages(Provider):
    """Checks each request against the reference, and answers as the script says."""

    def check(self, path: str, headers: Mapping[str, str], body: Any) -> None:
        if path != "/v1/messages":
            raise _no(f"no such path: {path}", "not_found_error", 404)
        if "x-api-key" not in headers or "anthropic-version" not in headers:
            raise _no("x-api-key and anthropic-version are required", "authentication_error", 401)
        try:
            request = Request.model_validate(body)
        except ValidationError as error:
            first = error.errors()[0]
            raise _no(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None
        if json.dumps(body).count('"cache_control"') > 4:
            raise _no("A maximum of 4 blocks with cache_control may be provided. Found more.")
        owed: list[str] = []
        for number, message in enumerate(request.messages):
            if message.role != ("user", "assistant")[number % 2]:
                raise _no(f"messages.{number}: roles must alternate between user and assistant, beginning with user")
            blocks = [] if isinstance(message.content, str) else message.content
            uses = [b.id for b in blocks if isinstance(b, Use)]
            results = [b.tool_use_id for b in blocks if isinstance(b, Result)]
            if (uses and message.role == "user") or (results and message.role == "assistant"):
                raise _no(f"messages.{number}: uses are the assistant's, results the user's")
            if sorted(results) != sorted(owed):
                raise _no(
                    f"messages.{number}: `tool_use` ids {owed} and `tool_result` blocks {results} do not correspond"
                )
            if results and not all(isinstance(b, Result) for b in blocks[: len(results)]):
                raise _no(f"messages.{number}: `tool_result` blocks come first")
            if len(set(uses)) < len(uses):
                raise _no(f"messages.{number}: `tool_use` ids must be unique")
            if uses and not request.tools:
                raise _no("Requests which include `tool_use` or `tool_result` blocks must define tools")
            owed = uses
        if owed:
            raise _no("`tool_use` ids were found without `tool_result` blocks immediately after")
        last = request.messages[-1]
        if last.role == "assistant" and isinstance(last.content, str) and last.content != last.content.rstrip():
            raise _no("messages: final assistant content cannot end with trailing whitespace")

    def given(self, body: Any) -> set[str]:
        names = {"stop_sequences": "stop", "temperature": "temperature", "max_tokens": "max_tokens"}
        return {ours for theirs, ours in names.items() if theirs in body}

    def events(self, answer: dict[str, Any], body: Any) -> Iterator[str]:
        """As in the reference ("Streaming messages"): the usage grows, and arguments come as text."""
        first = {**answer, "content": [], "stop_reason": None, "stop_sequence": None}
        first["usage"] = {**answer["usage"], "output_tokens": 1, "output_tokens_details": None}
        yield sse({"type": "message_start", "message": first}, "message_start")
        yield sse({"type": "ping"}, "ping")
        for index, block in enumerate(answer["content"]):
            start, deltas = dict(block), list[dict[str, Any]]()
            for name, kind in (("text", "text"), ("thinking", "thinking"), ("signature", "signature")):
                if block.get(name):
                    start[name] = ""
                    deltas += [{"type": f"{kind}_delta", name: half} for half in halves(block[name])]
            if block["type"] == "tool_use":
                start["input"] = {}
                pieces = halves(json.dumps(block["input"]) if block["input"] else "")
                deltas += [{"type": "input_json_delta", "partial_json": half} for half in pieces]
            yield sse({"type": "content_block_start", "index": index, "content_block": start}, "content_block_start")
            for delta in deltas:
                yield sse({"type": "content_block_delta", "index": index, "delta": delta}, "content_block_delta")
            yield sse({"type": "content_block_stop", "index": index}, "content_block_stop")
        ended = {k: answer[k] for k in ("stop_reason", "stop_sequence")}
        yield sse({"type": "message_delta", "delta": ended, "usage": answer["usage"]}, "message_delta")
        yield sse({"type": "message_stop"}, "message_stop")

    def answer(self, said: Said, body: Any) -> Any:
        text = said.until(body.get("stop_sequences")) if said.text is not None else None
        content: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
        content += [
            {"type": "tool_use", "id": f"toolu_{n}", "name": name, "input": dict(arguments)}
            for n, (name, arguments) in enumerate(said.calls)
        ]
        cut = said.text is not None and text != said.text
        reason = "refusal" if said.refusal else "tool_use" if said.calls else "stop_sequence" if cut else "end_turn"
        usage = {
            "input_tokens": INPUT - CACHE_READ - CACHE_WRITE,
            "cache_read_input_tokens": CACHE_READ,
            "cache_creation_input_tokens": CACHE_WRITE,
            "cache_creation": {"ephemeral_5m_input_tokens": CACHE_WRITE, "ephemeral_1h_input_tokens": 0},
            "output_tokens": OUTPUT,
            "service_tier": "standard",
        }
        stop = next((s for s in body["stop_sequences"] if s in said.text), None) if cut else None  # type: ignore[operator]
        head = {"id": "msg_1", "type": "message", "role": "assistant", "model": body["model"], "content": content}
        message = {**head, "stop_reason": reason, "stop_sequence": stop, "usage": usage}
        return types.Message.model_validate(message).model_dump(mode="json")


def _no(message: str, kind: str = "invalid_request_error", status: int = 400) -> Refused:
    return Refused(status, {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"})

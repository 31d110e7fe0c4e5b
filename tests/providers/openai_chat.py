"""OpenAI's chat completions, of classic and of reasoning models.

After the API reference ("Create chat completion", https://platform.openai.com/docs/api-reference/chat/create), the
guide on reasoning ("parameters that are not supported") and the types of `openai` 2.54, which read each answer here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from lazy import Lazy
from pydantic import Field, ValidationError

from tests.providers.serving import CACHE_READ, INPUT, OUTPUT, REASONING, Provider, Refused, Said, Strict, halves, sse

chat = Lazy("openai.types.chat")
Name = Annotated[str, Field(pattern=r"^[a-zA-Z0-9_-]{1,64}$")]


class Called(Strict):
    name: Name
    arguments: str


class Call(Strict):
    id: Annotated[str, Field(min_length=1, max_length=40)]
    type: Literal["function"]
    function: Called


class Message(Strict):
    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[dict[str, Any]] | None = None
    name: str | None = None
    refusal: str | None = None
    tool_calls: Annotated[list[Call], Field(min_length=1)] | None = None
    tool_call_id: str | None = None


class Function(Strict):
    name: Name
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class Tool(Strict):
    type: Literal["function"]
    function: Function


class StreamOptions(Strict):
    include_usage: bool | None = None
    include_obfuscation: bool | None = None


class Request(Strict):
    model: str
    messages: Annotated[list[Message], Field(min_length=1)]
    tools: Annotated[list[Tool], Field(min_length=1)] | None = None
    tool_choice: Any = None
    parallel_tool_calls: bool | None = None
    stop: Annotated[list[Annotated[str, Field(min_length=1)]], Field(min_length=1, max_length=4)] | str | None = None
    temperature: Annotated[float, Field(ge=0, le=2, strict=False)] | None = None
    top_p: float | None = None
    seed: int | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    max_completion_tokens: Annotated[int, Field(ge=1)] | None = None
    response_format: dict[str, Any] | None = None
    reasoning_effort: str | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    n: int | None = None
    user: str | None = None


@dataclass
class OpenAIChat(Provider):
    """`reasoning` models take no stop, no seed, no temperature but 1, and the limit under another name."""

    reasoning: bool = False
    arguments_as_objects: bool = False
    names_parameters: bool = True

    def check(self, path: str, headers: Mapping[str, str], body: Any) -> None:
        if path != "/v1/chat/completions":
            raise Refused(404, {"error": {"message": f"Invalid URL (POST {path})", "type": "invalid_request_error"}})
        if not headers.get("authorization", "").startswith("Bearer "):
            raise self._no("You didn't provide an API key.", None, "invalid_api_key", 401)
        try:
            request = Request.model_validate(body)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"]))
            if first["type"] == "extra_forbidden":
                raise self._no(f"Unrecognized request argument supplied: {place}", None) from None
            raise self._no(f"Invalid value at '{place}': {first['msg']}", place, "invalid_value") from None
        if request.stream_options is not None and not request.stream:
            raise self._no("The 'stream_options' parameter is only allowed when 'stream' is enabled.", None)
        self._check_order(request.messages)
        if self.reasoning:
            self._check_reasoning(request)
        elif request.max_tokens is not None and request.max_completion_tokens is not None:
            raise self._no("Setting 'max_tokens' and 'max_completion_tokens' at the same time", "max_tokens")
        wanted = (request.response_format or {}).get("json_schema")
        if wanted and wanted["schema"].get("type") != "object":
            said = f"Invalid schema for response_format '{wanted['name']}': schema must be a JSON Schema of type object"
            raise self._no(said, "response_format")

    def _check_order(self, messages: list[Message]) -> None:
        owed: list[str] = []
        for number, message in enumerate(messages):
            at = f"messages.[{number}].content"
            if message.role == "tool":
                if message.tool_call_id not in owed:
                    said = "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
                    raise self._no(f"Invalid parameter: {said}", f"messages.[{number}].role")
                owed.remove(message.tool_call_id)
            elif owed:
                raise self._no(f"tool_call_ids did not have response messages: {', '.join(owed)}", at)
            if message.content is None and not (message.role == "assistant" and (message.tool_calls)):
                raise self._no("Invalid value for 'content': expected a string, got null.", at)
            if message.tool_calls and message.role != "assistant":
                raise self._no("tool_calls are the assistant's", at)
            owed = [call.id for call in message.tool_calls] if message.tool_calls else owed
            if len(set(owed)) < len(owed):
                raise self._no("Duplicate value for 'tool_call_id'", at)
        if owed:
            raise self._no(f"tool_call_ids did not have response messages: {', '.join(owed)}", "messages")

    def _check_reasoning(self, request: Request) -> None:
        for name in ("stop", "seed", "max_tokens"):
            if getattr(request, name) is not None:
                instead = " Use 'max_completion_tokens' instead." if name == "max_tokens" else ""
                said = f"Unsupported parameter: '{name}' is not supported with this model.{instead}"
                raise self._no(said, name, "unsupported_parameter")
        if request.temperature not in (None, 1.0):
            said = f"Unsupported value: 'temperature' does not support {request.temperature} with this model."
            raise self._no(f"{said} Only the default (1) value is supported.", "temperature", "unsupported_value")

    def _no(self, message: str, param: str | None, code: str | None = None, status: int = 400) -> Refused:
        error: dict[str, Any] = {"message": message, "type": "invalid_request_error"}
        if self.names_parameters:
            error |= {"param": param, "code": code}
        return Refused(status, {"error": error})

    def given(self, body: Any) -> set[str]:
        limits = {"max_tokens"} if "max_completion_tokens" in body else set[str]()
        return limits | ({"stop", "temperature", "seed", "max_tokens"} & body.keys())

    def events(self, answer: dict[str, Any], body: Any) -> Iterator[str]:
        """Text and arguments in two pieces each; the usage comes last, where it was asked for."""
        (choice,), usage = answer["choices"], (body.get("stream_options") or {}).get("include_usage")
        head = {k: answer[k] for k in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
        message = choice["message"]
        deltas: list[dict[str, Any]] = [{"role": "assistant", "content": "", "refusal": None}]
        deltas += [{name: half} for name in ("content", "refusal") for half in halves(message.get(name) or "") if half]
        for n, call in enumerate(message.get("tool_calls") or ()):
            arguments = call["function"]["arguments"]
            whole = {**call, "function": {**call["function"], "arguments": ""}} if isinstance(arguments, str) else call
            pieces = halves(arguments) if isinstance(arguments, str) else ()
            deltas += [{"tool_calls": [{"index": n, **whole}]}]
            deltas += [{"tool_calls": [{"index": n, "function": {"arguments": piece}}]} for piece in pieces]
        choices = [[{"index": 0, "delta": d, "logprobs": None, "finish_reason": None}] for d in deltas]
        choices += [[{"index": 0, "delta": {}, "logprobs": None, "finish_reason": choice["finish_reason"]}]]
        for one in choices:
            yield sse({**head, "choices": one, "obfuscation": "xyz", **({"usage": None} if usage else {})})
        if usage:
            yield sse({**head, "choices": [], "usage": answer["usage"]})
        yield "data: [DONE]\n\n"

    def answer(self, said: Said, body: Any) -> Any:
        stops = [body["stop"]] if isinstance(body.get("stop"), str) else body.get("stop")
        text = said.until(stops) if said.text is not None else None
        calls = [
            {"id": f"call_{n}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
            for n, (name, arguments) in enumerate(said.calls)
        ]
        message = {"role": "assistant", "content": text, "refusal": said.refusal}
        message |= {"tool_calls": calls} if calls else {}
        finish = "tool_calls" if calls else "stop"
        usage = {
            "prompt_tokens": INPUT,
            "completion_tokens": OUTPUT,
            "total_tokens": INPUT + OUTPUT,
            "prompt_tokens_details": {"cached_tokens": CACHE_READ, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": REASONING if self.reasoning else 0},
        }
        head = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": body["model"]}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}
        completion: dict[str, Any] = {**head, "choices": [choice], "usage": usage}
        chat.ChatCompletion.model_validate(completion)
        if self.arguments_as_objects:  # as some servers of this API do, against the reference
            for call, (_, arguments) in zip(calls, said.calls, strict=True):
                call["function"]["arguments"] = dict(arguments)  # pyright: ignore[reportArgumentType]
        return completion

"""OpenAI's Responses, of classic and of reasoning models, with nothing stored.

After the API reference ("Create a model response", https://platform.openai.com/docs/api-reference/responses/create),
the guide on reasoning ("keeping reasoning items in context") and the types of `openai` 2.54, which read each request
and each answer here.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from openai.types.responses import Response
from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming
from pydantic import Field, TypeAdapter, ValidationError
from serving import CACHE_READ, CACHE_WRITE, INPUT, OUTPUT, REASONING, Provider, Refused, Said, Strict, halves, sse  # pyright: ignore

Name = Annotated[str, Field(pattern=r"^[a-zA-Z0-9_-]{1,64}$")]
TYPES = TypeAdapter(ResponseCreateParamsNonStreaming)


class Message(Strict):
    type: Literal["message"]
    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[dict[str, Any]]
    id: str | None = None
    status: Literal["completed"] | None = None


class Called(Strict):
    type: Literal["function_call"]
    call_id: Annotated[str, Field(min_length=1)]
    name: Name
    arguments: str
    id: Annotated[str, Field(pattern="^fc_")] | None = None
    status: Literal["completed"] | None = None


class Given(Strict):
    type: Literal["function_call_output"]
    call_id: str
    output: str


class Reasoning(Strict):
    type: Literal["reasoning"]
    id: Annotated[str, Field(pattern="^rs_")]
    summary: list[Any]
    encrypted_content: str | None = None


class Tool(Strict):
    type: Literal["function"]
    name: Name
    description: str | None = None
    parameters: dict[str, Any]
    strict: bool


class Request(Strict):
    model: str
    input: list[Annotated[Message | Called | Given | Reasoning, Field(discriminator="type")]]
    store: Literal[False]
    include: list[Literal["reasoning.encrypted_content"]] | None = None
    tools: Annotated[list[Tool], Field(min_length=1)] | None = None
    temperature: Annotated[float, Field(ge=0, le=2, strict=False)] | None = None
    max_output_tokens: Annotated[int, Field(ge=16)] | None = None
    text: dict[str, Any] | None = None
    reasoning: dict[str, Any] | None = None
    stream: bool | None = None


@dataclass
class OpenAIResponses(Provider):
    """`reasoning` models take no temperature; the others have nothing to encrypt.  Whatever is stored is not found."""

    reasoning: bool = False

    def check(self, path: str, headers: Mapping[str, str], body: Any) -> None:
        if path != "/v1/responses":
            raise _no(f"Invalid URL (POST {path})", None, 404)
        if not headers.get("authorization", "").startswith("Bearer "):
            raise _no("You didn't provide an API key.", None, 401)
        try:
            request = Request.model_validate(body)
            TYPES.validate_python({k: v for k, v in body.items() if k != "stream"})
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"]))
            if first["type"] == "extra_forbidden":
                raise _no(f"Unknown parameter: '{place}'.", place) from None
            raise _no(f"Invalid value at '{place}': {first['msg']}", place) from None
        if request.include and not self.reasoning:
            raise _no("Encrypted content is not supported with this model.", "include")
        if request.temperature is not None and self.reasoning:
            raise _no("Unsupported parameter: 'temperature' is not supported with this model.", "temperature")
        called = [item.call_id for item in request.input if isinstance(item, Called)]
        given = [item.call_id for item in request.input if isinstance(item, Given)]
        if sorted(called) != sorted(given):
            raise _no(f"No tool output found for function call {called}: {given}", "input")
        for item, after in zip(request.input, [*request.input[1:], None], strict=True):
            if isinstance(item, Reasoning):
                if item.encrypted_content != f"encrypted: {item.id}":
                    raise _no(f"Item with id '{item.id}' not found. Items are not persisted", "input", 404)
                if not isinstance(after, Message | Called):
                    raise _no(f"Item '{item.id}' of type 'reasoning' was provided without its following item.", "input")

    def given(self, body: Any) -> set[str]:
        names = {"temperature": "temperature", "max_output_tokens": "max_tokens"}
        return {ours for theirs, ours in names.items() if theirs in body}

    def events(self, answer: dict[str, Any], body: Any) -> Iterator[str]:
        """As in the reference ("Streaming events"), without those that a part begins and ends with."""
        number = itertools.count()

        def event(kind: str, **more: Any) -> str:
            return sse({"type": kind, "sequence_number": next(number), **more}, kind)

        empty = {**answer, "status": "in_progress", "output": [], "usage": None}
        yield event("response.created", response=empty)
        for index, item in enumerate(answer["output"]):
            at = {"item_id": item["id"], "output_index": index}
            begun = {**item, **{name: value for name, value in (("content", []), ("arguments", "")) if name in item}}
            yield event("response.output_item.added", output_index=index, item=begun)
            for place, part in enumerate(item.get("content") or ()):
                for half in halves(part.get("text") or ""):
                    yield event("response.output_text.delta", **at, content_index=place, delta=half, logprobs=[])
            for half in halves(item.get("arguments") or ""):
                yield event("response.function_call_arguments.delta", **at, delta=half)
            yield event("response.output_item.done", output_index=index, item=item)
        yield event("response.completed", response=answer)

    def answer(self, said: Said, body: Any) -> Any:
        number = len(self.requests)
        output: list[dict[str, Any]] = []
        if said.text or said.refusal:
            part: dict[str, Any] = {"type": "output_text", "text": said.text, "annotations": []}
            part = {"type": "refusal", "refusal": said.refusal} if said.refusal else part
            output.append(
                {
                    "type": "message",
                    "id": f"msg_{number}",
                    "status": "completed",
                    "role": "assistant",
                    "content": [part],
                }
            )
        output += [
            {
                "type": "function_call",
                "id": f"fc_{number}_{n}",
                "call_id": f"call_{number}_{n}",
                "name": name,
                "arguments": _json(arguments),
                "status": "completed",
            }
            for n, (name, arguments) in enumerate(said.calls)
        ]
        if self.reasoning:
            key = f"rs_{number}"
            output.insert(0, {"type": "reasoning", "id": key, "summary": [], "encrypted_content": f"encrypted: {key}"})
        response = {
            "id": f"resp_{number}",
            "object": "response",
            "created_at": 1,
            "status": "completed",
            "error": None,
            "incomplete_details": None,
            "model": body["model"],
            "output": output,
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": body.get("tools", []),
            "usage": {
                "input_tokens": INPUT,
                "input_tokens_details": {"cached_tokens": CACHE_READ, "cache_write_tokens": CACHE_WRITE},
                "output_tokens": OUTPUT,
                "output_tokens_details": {"reasoning_tokens": REASONING if self.reasoning else 0},
                "total_tokens": INPUT + OUTPUT,
            },
        }
        return Response.model_validate(response).model_dump(mode="json")


def _json(arguments: Mapping[str, Any]) -> str:
    import json

    return json.dumps(dict(arguments))


def _no(message: str, param: str | None, status: int = 400) -> Refused:
    return Refused(
        status, {"error": {"message": message, "type": "invalid_request_error", "param": param, "code": None}}
    )

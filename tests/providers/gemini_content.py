"""Google's generateContent.

After the API reference (https://ai.google.dev/api/generate-content, https://ai.google.dev/api/caching#Schema) and the
guide on function calling: names may be written in either case, as JSON of protocol buffers has it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel
from serving import CACHE_READ, INPUT, OUTPUT, REASONING, Provider, Refused, Said, Strict  # pyright: ignore


class Proto(Strict):
    model_config = ConfigDict(extra="forbid", strict=True, alias_generator=to_camel, populate_by_name=True)


class Schema(Proto):
    """The part of JSON Schema that is taken."""

    type: str | None = None
    format: str | None = None
    title: str | None = None
    description: str | None = None
    nullable: bool | None = None
    enum: list[str] | None = None
    max_items: int | None = None
    min_items: int | None = None
    properties: dict[str, Schema] | None = None
    required: list[str] | None = None
    min_length: int | None = None
    max_length: int | None = None
    pattern: str | None = None
    example: Any = None
    any_of: list[Schema] | None = None
    property_ordering: list[str] | None = None
    default: Any = None
    items: Schema | None = None
    minimum: float | None = None
    maximum: float | None = None


class FunctionCall(Proto):
    id: str | None = None
    name: str
    args: dict[str, Any] | None = None


class FunctionResponse(Proto):
    id: str | None = None
    name: str
    response: dict[str, Any]


class Part(Proto):
    text: Annotated[str, Field(min_length=1)] | None = None
    function_call: FunctionCall | None = None
    function_response: FunctionResponse | None = None
    thought_signature: str | None = None


class Content(Proto):
    role: Literal["user", "model"] | None = None
    parts: Annotated[list[Part], Field(min_length=1)]


class Declaration(Proto):
    name: Annotated[str, Field(pattern=r"^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$")]
    description: str
    parameters: Schema | None = None
    parameters_json_schema: dict[str, Any] | None = None


class Tool(Proto):
    function_declarations: Annotated[list[Declaration], Field(min_length=1)]


class Generation(Proto):
    temperature: Annotated[float, Field(ge=0, le=2, strict=False)] | None = None
    top_p: float | None = None
    top_k: int | None = None
    seed: int | None = None
    max_output_tokens: Annotated[int, Field(ge=1)] | None = None
    stop_sequences: Annotated[list[Annotated[str, Field(min_length=1)]], Field(max_length=5)] | None = None
    candidate_count: int | None = None
    response_mime_type: str | None = None
    response_schema: Schema | None = None
    response_json_schema: dict[str, Any] | None = None
    thinking_config: dict[str, Any] | None = None


class Request(Proto):
    contents: Annotated[list[Content], Field(min_length=1)]
    system_instruction: Content | None = None
    tools: list[Tool] | None = None
    tool_config: dict[str, Any] | None = None
    generation_config: Generation | None = None
    safety_settings: list[Any] | None = None


@dataclass
class Gemini(Provider):
    """A model that thinks."""

    def check(self, path: str, headers: Mapping[str, str], body: Any) -> None:
        where, _, query = path.partition("?")
        if not where.endswith(":generateContent"):
            raise _no(f"no such path: {path}", 404)
        if "x-goog-api-key" not in headers and "key=" not in query:
            raise _no("API key not valid. Please pass a valid API key.", 403)
        try:
            request = Request.model_validate(body)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"]))
            if first["type"] == "extra_forbidden":
                name, _, _ = place.rpartition(".")[2], None, None
                raise _no(
                    f"Invalid JSON payload received. Unknown name \"{name}\" at '{place}': Cannot find field."
                ) from None
            raise _no(f"Invalid value at '{place}': {first['msg']}") from None
        for tool in request.tools or ():
            for function in tool.function_declarations:
                schema = function.parameters
                if schema is not None and (schema.type or "").lower() == "object" and not schema.properties:
                    raise _no(f"{function.name}: parameters.properties: should be non-empty for OBJECT type")
        _check_order(request.contents)

    def given(self, body: Any) -> set[str]:
        config = body.get("generationConfig") or body.get("generation_config") or {}
        names = {"temperature": "temperature", "seed": "seed"}
        names |= {"stop_sequences": "stop", "stopSequences": "stop"}
        names |= {"max_output_tokens": "max_tokens", "maxOutputTokens": "max_tokens"}
        return {ours for theirs, ours in names.items() if theirs in config}

    def answer(self, said: Said, body: Any) -> Any:
        config = body.get("generationConfig") or body.get("generation_config") or {}
        text = (
            said.until(config.get("stopSequences") or config.get("stop_sequences")) if said.text is not None else None
        )
        parts: list[dict[str, Any]] = [{"text": text}] if text else []
        parts += [{"functionCall": {"name": name, "args": dict(arguments)}} for name, arguments in said.calls]
        return {
            "candidates": [
                {
                    "content": {"role": "model", "parts": parts} if parts else {"role": "model"},
                    "finishReason": "SAFETY" if said.refusal else "STOP",
                    "index": 0,
                }
            ],
            "modelVersion": "gemini-2.5-flash",
            "responseId": "r1",
            "usageMetadata": {
                "promptTokenCount": INPUT,
                "cachedContentTokenCount": CACHE_READ,
                "candidatesTokenCount": OUTPUT - REASONING,
                "thoughtsTokenCount": REASONING,
                "totalTokenCount": INPUT + OUTPUT,
                "promptTokensDetails": [{"modality": "TEXT", "tokenCount": INPUT}],
            },
        }


def _check_order(contents: list[Content]) -> None:
    asked = 0
    for number, content in enumerate(contents):
        calls = sum(part.function_call is not None for part in content.parts)
        answers = sum(part.function_response is not None for part in content.parts)
        if answers != asked:
            raise _no(
                "Please ensure that the number of function response parts is equal to the number of function call "
                "parts of the function call turn."
            )
        if calls and (number == 0 or content.role != "model" or contents[number - 1].role == "model"):
            raise _no(
                "Please ensure that function call turn comes immediately after a user turn or after a function "
                "response turn."
            )
        asked = calls
    if contents[-1].role == "model":
        raise _no("Please ensure that the last turn is the user's")


def _no(message: str, status: int = 400) -> Refused:
    kind = {400: "INVALID_ARGUMENT", 403: "PERMISSION_DENIED", 404: "NOT_FOUND"}[status]
    return Refused(status, {"error": {"code": status, "message": message, "status": kind}})

"""An Ollama server.

After its API reference (https://github.com/ollama/ollama/blob/main/docs/api.md) and the types of its Go client
(`api/types.go`): a prompt beyond the window is cut in silence, unless the request says `truncate: false`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, ValidationError

from tests.providers.serving import INPUT, OUTPUT, Provider, Refused, Said, Strict


class Called(Strict):
    index: int | None = None
    name: str
    arguments: dict[str, Any]


class Call(Strict):
    id: str | None = None
    type: str | None = None
    function: Called


class Message(Strict):
    role: Literal["system", "user", "assistant", "tool"]
    content: str = ""
    thinking: str | None = None
    images: list[str] | None = None
    tool_calls: list[Call] | None = None
    tool_name: str | None = None
    tool_call_id: str | None = None


class Options(Strict):
    num_ctx: Annotated[int, Field(ge=1)] | None = None
    num_predict: int | None = None
    temperature: Annotated[float, Field(strict=False)] | None = None
    top_p: float | None = None
    top_k: int | None = None
    seed: int | None = None
    stop: list[str] | None = None


class Request(Strict):
    model: str
    messages: list[Message]
    tools: list[dict[str, Any]] | None = None
    format: Any = None
    options: Options | None = None
    stream: bool | None = None
    think: Any = None
    keep_alive: Any = None
    truncate: bool | None = None
    shift: bool | None = None


@dataclass
class Ollama(Provider):
    """A model of `length` tokens with a token for every four characters.

    An old server knows no `truncate`.  A machine has `memory` for a window of so many tokens: it loads no larger one,
    without a word.
    """

    media: ClassVar[str] = "application/x-ndjson"
    length: int = 32768
    old: bool = False
    memory: int | None = None
    truncated: list[int] = field(default_factory=list[int])
    capabilities: tuple[str, ...] = ("completion", "tools")
    counts_what_it_reads: bool = True

    def lookup(self, path: str, body: Any) -> Any:
        if path != "/api/show":
            return None
        if not isinstance(body.get("model"), str):
            raise Refused(400, {"error": "model is required"})
        return {
            "details": {"family": "llama", "parameter_size": "8.0B"},
            "model_info": {"general.architecture": "llama", "llama.context_length": self.length},
            "capabilities": list(self.capabilities),
        }

    def check(self, path: str, headers: Mapping[str, str], body: Any) -> None:
        if path != "/api/chat":
            raise Refused(404, "404 page not found")
        try:
            request = Request.model_validate(body)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(x) for x in first["loc"] if isinstance(x, str))
            kind = type(first["input"]).__name__
            said = f"json: cannot unmarshal {kind} into Go struct field ChatRequest.{place}: {first['msg']}"
            raise Refused(400, {"error": said}) from None
        if request.tools and "tools" not in self.capabilities:
            raise Refused(400, {"error": f"{request.model} does not support tools"})
        window = min((request.options and request.options.num_ctx) or 4096, self.length, self.memory or self.length)
        tokens = self.tokens(body)
        if tokens > window:
            if request.truncate is False and not self.old:
                raise Refused(400, {"error": "the input length exceeds the context length"})
            self.truncated.append(tokens)

    def tokens(self, body: Any) -> int:
        return len(json.dumps([body["messages"], body.get("tools")])) // 4

    def given(self, body: Any) -> set[str]:
        names = {"stop": "stop", "temperature": "temperature", "seed": "seed", "num_predict": "max_tokens"}
        return {ours for theirs, ours in names.items() if theirs in body["options"]}

    def answer(self, said: Said, body: Any) -> Any:
        text = said.until((body.get("options") or {}).get("stop"))
        message: dict[str, Any] = {"role": "assistant", "content": text}
        if said.calls:
            named = enumerate(said.calls)
            calls = [{"index": n, "name": name, "arguments": dict(arguments)} for n, (name, arguments) in named]
            message["tool_calls"] = [{"function": call} for call in calls]
        read = {"prompt_eval_count": INPUT, "prompt_eval_duration": 5} if self.counts_what_it_reads else {}
        head = {"model": body["model"], "created_at": "2026-11-22T10:00:00.000000Z"}
        took = {"total_duration": 10, "load_duration": 1, **read, "eval_count": OUTPUT, "eval_duration": 4}
        ended = {"done": True, "done_reason": "stop", **took}
        if body.get("stream", True):  # lines of JSON
            first = {**head, "message": message, "done": False}
            last = {**head, "message": {"role": "assistant", "content": ""}, **ended}
            return [json.dumps(line) + "\n" for line in (first, last)]
        return {**head, "message": message, **ended}

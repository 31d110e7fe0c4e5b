"""A model behind an Ollama server, by its own API: the chat API that it has as well cannot set the window."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

from rlm_loop.messages import Reply
from rlm_loop.models.base import RequestRejected
from rlm_loop.models.http import Lost
from rlm_loop.models.openai_compatible import OpenAICompatibleModel
from rlm_loop.models.streams import Event
from rlm_loop.models.wire import ODD, arguments_object, to_reply
from rlm_loop.traces.received import parse

#: The smallest window, in tokens; it is doubled where a prompt needs more, and never made smaller, since the server
#: loads the model anew for another window.
WINDOW = 8192
#: Where a key is looked for when none is given; another provider's key is never sent.
KEY_VARIABLE = "OLLAMA_API_KEY"
#: Tokens kept free for a reply of unlimited length.
ROOM = 2048
#: Seconds for the one question that comes before a run's first request.
QUICK = 2.0
_NAMES = {"max_tokens": "num_predict", "temperature": "temperature", "seed": "seed", "stop": "stop"}


class OllamaModel(OpenAICompatibleModel):
    """A model of an Ollama server at `base_url` (`http://localhost:11434`), with a window that its prompts fit into.

    The server cuts a prompt beyond its window (`num_ctx`, 4,096 tokens unless told) in silence.  So every request says
    its window: `context_size` tokens, or (`None`) 8,192 and twice as many whenever a prompt may need them, up to the
    length that the model has (`/api/show`).  A prompt that may need more than that is refused with `RequestRejected`.
    A server that has less memory than that, or another limit, is told to refuse the prompt and not to cut it.
    Without a tokenizer a prompt is taken to have a token for every three bytes, which is more than text or code has.
    Everything else is as in `OpenAICompatibleModel`, but `options` go into the request's `options` (a `num_ctx` there
    is a `context_size`), and a key is looked for in `OLLAMA_API_KEY`.
    """

    _json_lines = True

    def __init__(
        self, model: str, base_url: str = "http://localhost:11434", *, context_size: int | None = None, **more: Any
    ) -> None:
        settings: dict[str, Any] = {"name": f"ollama/{model}", "key_variable": KEY_VARIABLE, **more}
        super().__init__(model, base_url, **settings)
        self.context_size: int | None = context_size or self._options.get("num_ctx")
        self._largest = WINDOW

    @property
    def window(self) -> int | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        """`context_size` and the length that the server states, the smaller; `None` where neither is known."""
        return min(filter(None, (self.context_size, self._length)), default=None)

    @cached_property  # answered or not: a silent server would cost every run its time
    def _length(self) -> int | None:
        try:
            about = parse(self._http(QUICK).send("/api/show", json.dumps({"model": self.model})).data)
            return int(next(v for k, v in about["model_info"].items() if k.endswith(".context_length")))
        except (Lost, StopIteration, *ODD):
            return None  # the request itself will say so

    def _ask(self, request: Mapping[str, Any]) -> Reply:
        size = self._fitting(request, request.get("max_tokens") or ROOM)
        options = {theirs: request[ours] for ours, theirs in _NAMES.items() if ours in request}
        body: dict[str, Any] = {
            "model": self.model,
            "messages": _messages(request["messages"]),
            "stream": bool(request.get("stream")),
            "options": {**options, **self._options, "num_ctx": size},
            "truncate": False,
            "shift": False,  # newer servers then refuse what they would cut
        }
        if "tools" in request:
            body["tools"] = request["tools"]
        if "response_format" in request:
            body["format"] = request["response_format"]["json_schema"]["schema"]
        return to_reply({**self.send("/api/chat", body), "num_ctx": size}, model=self.name)

    def _fitting(self, request: Mapping[str, Any], limit: int) -> int:
        """Return the window for a request, which may have a token for every three bytes."""
        needed = len(json.dumps(request, ensure_ascii=False).encode("utf-8", "replace")) // 3 + 1
        if (most := self.window) is not None and needed > most:
            said = f"it may need {needed:,} tokens of {most:,} (context_size={self.context_size})"
            raise RequestRejected(f"the prompt does not fit the window of {self.name}: {said}", self.name)
        while self._largest < needed + limit:
            self._largest *= 2
        return min(filter(None, (self.context_size or self._largest, most)))

    def _chunk_of(self, event: Event) -> Event:
        """Return a line of an answer, which may be the whole, as a chunk of a chat completion."""
        read = ("message", "done", "done_reason", "prompt_eval_count", "eval_count")
        delta, at = dict(event.get("message") or {}), event.get("created_at")
        calls = [{**call, "index": [at, n]} for n, call in enumerate(delta.get("tool_calls") or ())]  # whole in a line
        used = {"prompt_tokens": event.get("prompt_eval_count"), "completion_tokens": event.get("eval_count")}
        finish = event.get("done_reason", "stop") if event.get("done") else None
        choices = [{"delta": {**delta, "tool_calls": calls}, "finish_reason": finish}]
        return {**{k: v for k, v in event.items() if k not in read}, "usage": used, "choices": choices}


def _messages(messages: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the messages in Ollama's form: arguments are objects, and a result names its tool."""
    tools: dict[str, str] = {}
    sent: list[dict[str, Any]] = []
    for message in messages:
        sent.append({"role": message["role"], "content": message["content"]})
        for call in message.get("tool_calls", ()):
            name, arguments = call["function"]["name"], arguments_object(call["function"]["arguments"])
            tools[call["id"]] = name
            sent[-1].setdefault("tool_calls", []).append({"function": {"name": name, "arguments": arguments}})
        if "tool_call_id" in message:
            sent[-1]["tool_name"] = tools.get(message["tool_call_id"], "")
    return sent

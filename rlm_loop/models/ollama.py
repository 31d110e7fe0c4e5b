"""A model behind an Ollama server, by its own API: the chat API that it has as well cannot set the window."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, ClassVar, cast

from rlm_loop.messages import Prompt
from rlm_loop.models.base import ModelError, RequestRejected
from rlm_loop.models.http import BadAddress, Lost, TooLate
from rlm_loop.models.listening import Kind
from rlm_loop.models.openai_compatible import OpenAICompatibleModel
from rlm_loop.models.streams import ODD, Form
from rlm_loop.models.wire import arguments_object

_log = logging.getLogger(__name__)

#: The smallest window, in tokens; it is doubled where a prompt needs more, and never made smaller, since the server
#: loads the model anew for another window.
WINDOW = 8192
#: Where a key is looked for when none is given; another provider's key is never sent.
KEY_VARIABLE = "OLLAMA_API_KEY"
#: Tokens kept free for a reply of unlimited length.
ROOM = 2048
#: Seconds for the one question that comes before a run's first request.
QUICK = 2.0
_NAMES = {"max_tokens": "num_predict", "temperature": "temperature", "seed": "seed"}


def _joined(events: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the body that the lines of a stream make together."""
    body: dict[str, Any] = {}
    message: dict[str, Any] = {}
    for event in events:
        body |= event
        for name, value in (event.get("message") or {}).items():
            message[name] = message[name] + value if message.get(name) and name != "role" else value
    return {**body, "message": message}


def _pieces(event: Mapping[str, Any]) -> Iterator[tuple[Kind, Any]]:
    message = event.get("message") or {}
    yield "thinking", message.get("thinking")
    yield "text", message.get("content")
    for call in message.get("tool_calls") or ():
        yield "call", f"\n{call['function']['name']} {json.dumps(call['function'].get('arguments'))}"


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

    _streaming: ClassVar[Mapping[str, Any]] = {"stream": True}
    _form: ClassVar[Form] = Form(_pieces, _joined, lambda event: event.get("done"))

    def __init__(
        self, model: str, base_url: str = "http://localhost:11434", *, context_size: int | None = None, **more: Any
    ) -> None:
        settings: dict[str, Any] = {"name": f"ollama/{model}", "key_variable": KEY_VARIABLE, **more}
        super().__init__(model, base_url, **settings)
        self.context_size: int | None = context_size or self._options.get("num_ctx")
        self._largest = WINDOW

    @property
    def window(self) -> int | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        """`context_size`, else the length that the server states; `None` where it does not answer in time."""
        return self.context_size or self._length

    @cached_property  # answered or not: a silent server would cost every run its time
    def _length(self) -> int | None:
        try:
            about: Any = self._http().post("/api/show", {"model": self.model}, timeout=QUICK).json()
            lengths = [v for k, v in about["model_info"].items() if str(k).endswith(".context_length")]
        except (BadAddress, Lost, TooLate, *ODD):
            return None  # the request itself will say so
        return lengths[0] if lengths and isinstance(lengths[0], int) else None

    def _ask(self, prompt: Prompt, settings: Mapping[str, Any]) -> Mapping[str, Any]:
        needed = _most_tokens(prompt)
        size = self._fitting(needed, settings.get("max_tokens") or ROOM)
        options = {_NAMES[k]: v for k, v in settings.items() if k in _NAMES}
        options |= {"stop": list(prompt.stop)} if prompt.stop else {}
        body: dict[str, Any] = {
            "model": self.model,
            "messages": _messages(prompt),
            "stream": bool(settings.get("stream")),
            "options": {**options, **self._options, "num_ctx": size},
            "truncate": False,
            "shift": False,  # newer servers then refuse what they would cut
        }
        if prompt.tools:
            body["tools"] = [dict(tool) for tool in prompt.tools]
        if prompt.reply_schema is not None:
            body["format"] = dict(prompt.reply_schema)
        answer = self._send("/api/chat", json.dumps(body, ensure_ascii=False, allow_nan=False))
        message: Any = answer.get("message")
        if not isinstance(message, Mapping):
            raise ModelError(f"{self.name} sent no reply but {str(answer)[:120]!r}", self.name, retryable=True)
        return _as_chat(answer, cast("Mapping[str, Any]", message), size)

    def _fitting(self, needed: int, limit: int) -> int:
        """Return the window for a prompt that may need so many tokens."""
        most = min((n for n in (self.context_size, self._length) if n is not None), default=None)
        if most is not None and needed > most:
            hint = "" if self.context_size is None else "; raise context_size"
            raise RequestRejected(
                f"the prompt does not fit the window of {self.name}: it may need {needed:,} tokens of {most:,}{hint}",
                self.name,
            )
        if self.context_size is not None:
            return most or self.context_size
        while self._largest < needed + limit:
            self._largest *= 2
            _log.info("%s gets a window of %d tokens for a prompt of about %d", self.name, self._largest, needed)
        return self._largest if most is None else min(self._largest, most)


def _most_tokens(prompt: Prompt) -> int:
    """Return the tokens that a prompt may have: one for every three bytes, which is more than text or code has."""
    parts = prompt.to_dict().values()
    return sum(len(json.dumps(part, ensure_ascii=False).encode("utf-8", "replace")) for part in parts) // 3 + 1


def _messages(prompt: Prompt) -> list[dict[str, Any]]:
    """Return the messages in Ollama's form: arguments are objects, and a result names its tool."""
    tools: dict[str | None, str] = {}
    messages: list[dict[str, Any]] = []
    for message in prompt.messages:
        sent: dict[str, Any] = {"role": message.role, "content": message.text}
        for call in message.tool_calls:
            tools[call.id or ""] = call.name
            function = {"name": call.name, "arguments": arguments_object(call.arguments)}
            sent.setdefault("tool_calls", []).append({"function": function})
        if message.tool_call_id is not None:
            sent["tool_name"] = tools.get(message.tool_call_id, "")
        messages.append(sent)
    return messages


def _as_chat(answer: Mapping[str, Any], message: Mapping[str, Any], window: int) -> dict[str, Any]:
    """Return the answer in the shape of the chat API; what was read from a cache and what was thought is not said."""
    used = {"prompt_tokens": answer.get("prompt_eval_count"), "completion_tokens": answer.get("eval_count")}
    read = ("message", "done", "done_reason", "prompt_eval_count", "eval_count")
    finish = answer.get("done_reason")
    finish = "tool_calls" if message.get("tool_calls") and finish == "stop" else finish
    choices = [{"message": message, "finish_reason": finish}]
    rest = {k: v for k, v in answer.items() if k not in read}
    return {**rest, "num_ctx": window, "choices": choices, "usage": used}

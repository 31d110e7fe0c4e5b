"""A model behind an Ollama server, by its own API: the chat API that it has as well cannot set the window."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, cast

from rlm_loop.accounting.own_lock import OwnLock
from rlm_loop.messages import Prompt
from rlm_loop.models.base import ModelError, RequestRejected
from rlm_loop.models.listening import Kind
from rlm_loop.models.openai_compatible import OpenAICompatibleModel
from rlm_loop.models.streams import Form
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


def _joined(events: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The body that the lines of a stream make together."""
    whole: dict[str, Any] = {}
    message: dict[str, Any] = {}
    for event in events:
        whole |= event
        for name, value in (event.get("message") or {}).items():
            message[name] = message[name] + value if message.get(name) and name != "role" else value
    return {**whole, "message": message}


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
    Once for each window the server is asked what it really loaded (`/api/ps`), since a machine without the memory gets
    less: then that is the window, and a reply to a prompt that may have been cut is refused, too.
    Without a tokenizer a prompt is taken to have a token for every three bytes, which is more than text or code has.
    Everything else is as in `OpenAICompatibleModel`, but `options` go into the request's `options`, and a key is looked
    for in `OLLAMA_API_KEY`.
    """

    _streaming: ClassVar[Mapping[str, Any]] = {"stream": True}
    _form: ClassVar[Form] = Form(_pieces, _joined, lambda event: event.get("done"))

    def __init__(
        self, model: str, base_url: str = "http://localhost:11434", *, context_size: int | None = None, **more: Any
    ) -> None:
        settings: dict[str, Any] = {"name": f"ollama/{model}", "key_variable": KEY_VARIABLE, **more}
        super().__init__(model, base_url, **settings)
        self.context_size = context_size
        self._window = context_size or WINDOW
        self._length: int | None = None
        self._asked = False
        self._checked: dict[int, int | None] = {}  # by window asked for, what the server loaded
        self._growing = OwnLock()

    @property
    def window(self) -> int | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        """`context_size`, else the length that the server states; `None` where it does not answer in time."""
        return self.context_size or self._longest()

    def _longest(self) -> int | None:
        """The most tokens that a prompt and its reply may have together here, as far as the server says."""
        with self._growing:
            if not self._asked:
                self._asked = True  # answered or not: a silent server would cost every run its time
                self._length = self._stated_length()
        known = [n for n in (self.context_size, self._length) if n is not None]
        return min(known, default=None)

    def _ask(self, prompt: Prompt, settings: Mapping[str, Any]) -> Mapping[str, Any]:
        limit = settings.get("max_tokens") or ROOM
        needed = _most_tokens(prompt)
        size = self._fitting(needed, limit)
        names = {"max_tokens": "num_predict", "temperature": "temperature", "seed": "seed"}
        given = {names[k]: v for k, v in settings.items() if k in names}
        stop = {"stop": list(prompt.stop)} if prompt.stop else {}
        body: dict[str, Any] = {
            "model": self.model,
            "messages": _messages(prompt),
            "stream": bool(settings.get("stream")),
            "options": {**given, **stop, **self._options, "num_ctx": size},
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
        loaded = self._check(size, needed)
        return _as_chat(answer, cast("Mapping[str, Any]", message), size, loaded)

    def _check(self, size: int, needed: int) -> int | None:
        """The window that the server loaded for the one asked for; `None` where it does not say.

        Raises `RequestRejected` where it is smaller and the prompt may have been cut.
        """
        with self._growing:
            if size not in self._checked:
                self._checked[size] = self._loaded()
            loaded = self._checked[size]
            if loaded is None or loaded >= size:
                return loaded
            if self._length is None or loaded < self._length:
                _log.warning("%s was asked for a window of %d tokens and has %d", self.name, size, loaded)
                self._length = loaded
        if needed > loaded:
            raise RequestRejected(
                f"the server loaded {self.name} with a window of {loaded:,} tokens, not the {size:,} asked for, and "
                f"may have cut this prompt of up to {needed:,}: free memory there, or set context_size={loaded}",
                self.name,
            )
        return loaded

    def _loaded(self) -> int | None:
        """The window of the model as the server has it in memory; older servers do not say."""
        from rlm_loop.models.http import Lost, TooLate

        try:
            running: Any = self._http().get("/api/ps", timeout=5.0).json()["models"]
            ours = [m for m in running if self.model in (m["name"], str(m["name"]).removesuffix(":latest"))]
            found = ours[0]["context_length"]
        except (Lost, TooLate, ValueError, KeyError, TypeError, IndexError):
            return None
        return found if isinstance(found, int) and found > 0 else None

    def _fitting(self, needed: int, limit: int) -> int:
        """The window for a prompt that may need so many tokens."""
        most = self._longest()
        if most is not None and needed > most:
            raise RequestRejected(
                f"the prompt does not fit the window of {self.name}: it may need {needed:,} tokens of {most:,}"
                + ("; raise context_size" if self.context_size is not None else ""),
                self.name,
            )
        with self._growing:
            while self.context_size is None and self._window < needed + limit and (most is None or self._window < most):
                self._window *= 2
                _log.info("%s gets a window of %d tokens for a prompt of about %d", self.name, self._window, needed)
            return self._window if most is None else min(self._window, most)

    def _stated_length(self) -> int | None:
        """Return the length that the model has, from what the server tells of it; None where it does not."""
        from rlm_loop.models.http import BadAddress, Lost, TooLate

        try:
            stated: Any = self._http().post("/api/show", {"model": self.model}, timeout=QUICK).json()
            lengths = [v for k, v in stated["model_info"].items() if str(k).endswith(".context_length")]
        except (BadAddress, Lost, TooLate, ValueError, KeyError, TypeError, AttributeError):
            return None  # the request itself will say so
        return lengths[0] if lengths and isinstance(lengths[0], int) else None


def _most_tokens(prompt: Prompt) -> int:
    """The tokens that a prompt may have: one for every three bytes, which is more than text or code has."""
    parts = prompt.to_dict().values()
    return sum(len(json.dumps(part, ensure_ascii=False).encode("utf-8", "replace")) for part in parts) // 3 + 1


def _messages(prompt: Prompt) -> list[dict[str, Any]]:
    """The messages in Ollama's form: arguments are objects, and a result names its tool."""
    tools: dict[str, str] = {}
    found: list[dict[str, Any]] = []
    for message in prompt.messages:
        said: dict[str, Any] = {"role": message.role, "content": message.text}
        if message.tool_calls:
            tools |= {call.id or "": call.name for call in message.tool_calls}
            said["tool_calls"] = [
                {"function": {"name": call.name, "arguments": arguments_object(call.arguments)}}
                for call in message.tool_calls
            ]
        if message.tool_call_id is not None:
            said["tool_name"] = tools.get(message.tool_call_id, "")
        found.append(said)
    return found


def _as_chat(answer: Mapping[str, Any], message: Mapping[str, Any], window: int, loaded: int | None) -> dict[str, Any]:
    """The answer in the shape of the chat API; what was read from a cache and what was thought is not said."""
    said = {"prompt_tokens": answer.get("prompt_eval_count"), "completion_tokens": answer.get("eval_count")}
    taken = ("message", "done", "done_reason", "prompt_eval_count", "eval_count")
    calls = message.get("tool_calls")
    finish = answer.get("done_reason")
    return {
        **{k: v for k, v in answer.items() if k not in taken},
        "num_ctx": window,
        **({} if loaded is None else {"context_length": loaded}),
        "choices": [{"message": message, "finish_reason": "tool_calls" if calls and finish == "stop" else finish}],
        "usage": said,
    }

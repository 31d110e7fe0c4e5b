"""A model on this machine, run by llama.cpp in this process."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from rlm_loop.accounting.attribution import Part
from rlm_loop.accounting.own_lock import OwnLock
from rlm_loop.messages import Prompt, Reply, Span
from rlm_loop.models import catalog, weights, wire
from rlm_loop.models.base import Model, RequestRejected
from rlm_loop.models.llama_server import LlamaServer, ServerSettings, shared
from rlm_loop.models.measure import measure

_KEEP = 8


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class LocalModel(Model):
    """A GGUF model run by llama.cpp in this process.

    `path_or_name` is a known name (`rlm-loop models list`) or the path of a GGUF file.  It is loaded at the first
    call, and models with the same file and settings share one loaded copy.  More `slots` answer calls side by side.
    What was read of earlier prompts is not read again; but read in other pieces, a prompt may get another reply.
    With `prompt_cache=False` every prompt is read whole, and with one slot the same prompt and seed then give the
    same text, at the price of the reading.
    `context_size` is the window in tokens, `max_tokens` limits a reply where the call does not.  Generation costs
    nothing, so the price is known and zero.
    """

    interruptible = True
    price = (0.0, 0.0)

    def __init__(
        self,
        path_or_name: str | os.PathLike[str] = "local",
        *,
        context_size: int = 8192,
        threads: int | None = None,
        seed: int = 0,
        temperature: float = 0.0,
        slots: int = 1,
        prompt_cache: bool = True,
        max_tokens: int = 512,
    ) -> None:
        counts = {"context_size": context_size, "threads": threads or 1, "slots": slots, "max_tokens": max_tokens}
        for setting, value in counts.items():
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"LocalModel: {setting} is a whole number of at least 1, not {value!r}")
        self._where = os.fspath(path_or_name)
        self._known = catalog.find(self._where)
        self.name = f"local:{self._known.name if self._known else Path(self._where).name}"
        self.window: int = context_size  # pyright: ignore[reportIncompatibleVariableOverride]
        self.threads = threads or _cores()
        self.seed = seed
        self.temperature = temperature
        self.slots = slots
        self.prompt_cache = prompt_cache
        self.max_tokens = max_tokens
        self._settings: ServerSettings | None = None
        self._measured: list[tuple[Prompt, list[Part]]] = []
        self._lock = OwnLock()

    @property
    def sampling(self) -> dict[str, Any]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The settings sent with every prompt, so that two models can be compared."""
        own = {"temperature": self.temperature, "seed": self.seed, "max_tokens": self.max_tokens}
        cache = {} if self.prompt_cache else {"prompt_cache": False}  # as it was before it could be off
        return {**own, "context_size": self.window, **cache}

    @property
    def weights_hash(self) -> str | None:
        """The SHA-256 of the weights: of a known model as the catalog has it; `None` where the file is not here."""
        if self._known is not None:
            return self._known.sha256  # the file is checked against it before it is loaded
        try:
            return weights.hash_of(self._file())
        except OSError:
            return None

    def load(self) -> LlamaServer:
        """Load the model now rather than at the first call.

        Raises `ModelNotFound` where the file is not here, `ModelError` where it cannot be loaded.
        """
        if self._settings is None:
            self._settings = ServerSettings(self._file(), self.window, self.threads, self.slots)
        return shared(self._settings)

    def complete(self, prompt: Prompt, *, max_tokens: int | None = None) -> Reply:
        """Return one reply.  `extra["timings"]` holds llama.cpp's own times (milliseconds, tokens a second).

        It goes on with a last message that is the assistant's; several of them at the end are joined to one.

        Raises `RequestRejected` where llama.cpp or the chat template refuses the messages or they do not fit.
        """
        server = self.load()
        prompt = _ends_in_one(prompt)
        body = {
            **self._body(server, prompt),
            "max_tokens": self.max_tokens if max_tokens is None else max_tokens,
            "temperature": self.temperature,
            "seed": self.seed,
            "cache_prompt": self.prompt_cache,
            **prompt.sampling,
        }
        start = time.perf_counter()
        answer = server.chat(body)
        answer["model"] = self.name  # llama.cpp states the path of the file here, which belongs in no trace
        reply = wire.to_reply(answer, model=self.name, seconds=time.perf_counter() - start, cost=0.0)
        if prompt.messages and prompt.messages[-1].role == "assistant":  # llama.cpp sends the text it goes on with
            reply = replace(reply, text=reply.text.removeprefix(prompt.messages[-1].text))
        return reply

    def measure(self, prompt: Prompt) -> list[Part]:
        """Return the exact parts of a prompt, in the order in which the model reads them.

        They sum to the prompt tokens that the reply will report.
        """
        with self._lock:
            for seen, parts in self._measured:
                if seen == prompt:
                    return list(parts)
        server, sent = self.load(), _ends_in_one(prompt)
        parts = measure(sent, self._body(server, sent), server.render, server.tokenize, server.trailer)
        with self._lock:
            self._measured = [(prompt, parts), *self._measured[: _KEEP - 1]]
        return list(parts)

    def count(self, text: str) -> int:
        """Count the tokens of a text on its own, without any chat template."""
        return len(self.load().tokenize(text))

    def _body(self, server: LlamaServer, prompt: Prompt) -> dict[str, Any]:
        if prompt.tools and not server.takes_tools:
            raise RequestRejected(
                f"the chat template of {self.name} has no place for native tools: present them as text", self.name
            )
        body = prompt.to_dict()
        for message in body["messages"]:
            for call in message.get("tool_calls", ()):
                # A call without arguments means `{}` (semantics 30), and the template wants to see JSON.
                call["function"]["arguments"] = call["function"]["arguments"] or "{}"
        return body

    def _file(self) -> Path:
        path = Path(self._where).expanduser()
        if self._known is None and (path.suffix == ".gguf" or path.is_file() or path.name != self._where):
            return path.resolve()
        return weights.path(self._where)

    def __repr__(self) -> str:
        return f"LocalModel({self._where!r}, context_size={self.window}, slots={self.slots})"


def _ends_in_one(prompt: Prompt) -> Prompt:
    """Join the assistant's messages at a prompt's end, since llama.cpp refuses several (rlms ends so)."""
    messages = list(prompt.messages)
    while len(messages) > 1 and all(m.role == "assistant" and not m.tool_calls for m in messages[-2:]):
        last, before = messages.pop(), messages.pop()
        between = Span("\n\n", last.spans[0].cause if last.spans else "assistant")
        messages.append(replace(before, spans=(*before.spans, between, *last.spans)))
    return prompt if len(messages) == len(prompt.messages) else replace(prompt, messages=tuple(messages))

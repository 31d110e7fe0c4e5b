"""A model on this machine, run by llama.cpp in this process."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from rlm_loop.accounting.attribution import Part
from rlm_loop.accounting.prices import Price
from rlm_loop.messages import Prompt, Reply, Span
from rlm_loop.models import weights
from rlm_loop.models.base import RequestRejected, RetryPolicy
from rlm_loop.models.llama_server import LlamaServer, shared
from rlm_loop.models.measure import measure
from rlm_loop.models.openai_compatible import OpenAICompatibleModel
from rlm_loop.models.wire import to_reply


class LocalModel(OpenAICompatibleModel):
    """A GGUF model run by llama.cpp in this process.

    `path_or_name` is a known name (`rlm-loop models list`) or the path of a GGUF file.  It is loaded at the first
    call, and models with the same file and settings share one loaded copy.  More `slots` answer calls side by side.
    What was read of earlier prompts is not read again; but read in other pieces, a prompt may get another reply.
    With `prompt_cache=False` every prompt is read whole, and with one slot the same prompt and seed then give the
    same text, at the price of the reading.
    `context_size` is the window in tokens, `max_tokens` limits a reply where the call does not.  Generation costs
    nothing, so the price is known and zero.
    """

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
        self._where = os.fspath(path_or_name)
        self._known = weights.find(self._where)
        name = f"local:{self._known.name if self._known else Path(self._where).name}"
        own: dict[str, Any] = {"temperature": temperature, "seed": seed, "max_tokens": max_tokens}
        own |= {"timeout": None, "retry": RetryPolicy(attempts=1), "price": Price(0.0, 0.0)}
        super().__init__(name, "http://llama.cpp", name=name, **own)
        self.window: int = context_size  # pyright: ignore[reportIncompatibleVariableOverride]
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self.threads = threads or cores
        self.slots = slots
        self.prompt_cache = prompt_cache

    @property
    def sampling(self) -> dict[str, Any]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The settings sent with every prompt, so that two models can be compared."""
        cache = {} if self.prompt_cache else {"prompt_cache": False}  # as it was before it could be off
        return {**super().sampling, "context_size": self.window, **cache}

    @property
    def weights_hash(self) -> str | None:
        """The SHA-256 of the weights: of a known model as it is pinned; `None` where the file is not here."""
        if self._known is not None:
            return self._known.sha256  # the file was checked against it when it was pulled
        try:
            return weights.sha256_of(self._file())
        except OSError:
            return None

    def load(self) -> LlamaServer:
        """Load the model now rather than at the first call.

        Raises `ModelNotFound` where the file is not here, `ModelError` where it cannot be loaded.
        """
        return shared(self._file(), self.window, self.threads, self.slots)

    def complete(self, prompt: Prompt, *, max_tokens: int | None = None) -> Reply:
        """Return one reply.  `extra["timings"]` holds llama.cpp's own times (milliseconds, tokens a second).

        It goes on with a last message that is the assistant's; several of them at the end are joined to one.  Raises
        `RequestRejected` where llama.cpp or the chat template refuses the messages or they do not fit.
        """
        prompt = _ends_in_one(prompt)
        reply = super().complete(prompt, max_tokens=max_tokens)
        if prompt.messages and prompt.messages[-1].role == "assistant":  # llama.cpp sends the text it goes on with
            reply = replace(reply, text=reply.text.removeprefix(prompt.messages[-1].text))
        return reply

    def _http(self, timeout: float | None) -> LlamaServer:
        return self.load()

    def _ask(self, request: Mapping[str, Any]) -> Reply:
        answer = self.send("/v1/chat/completions", {**self._body(request), "cache_prompt": self.prompt_cache})
        answer["model"] = self.name  # llama.cpp states the path of the file here, which belongs in no trace
        return to_reply(answer, model=self.name)

    def measure(self, prompt: Prompt) -> list[Part]:
        """Return the exact parts of a prompt, in the order in which the model reads them."""
        sent = _ends_in_one(prompt)
        body = self._body(sent.to_dict())
        return measure(sent, body, lambda body: str(self.send("/apply-template", body)["prompt"]), self._tokens)

    def count(self, text: str) -> int:
        """Count the tokens of a text on its own, without any chat template."""
        return len(self._tokens(text))

    def _tokens(self, text: str) -> list[bytes]:
        """Return the tokens of a rendered text, as the bytes that each stands for."""
        request = {"content": text, "add_special": True, "parse_special": True, "with_pieces": True}
        pieces = [token["piece"] for token in self.send("/tokenize", request)["tokens"]]
        return [piece.encode() if isinstance(piece, str) else bytes(piece) for piece in pieces]

    def _body(self, request: Mapping[str, Any]) -> dict[str, Any]:
        if "tools" in request and not self.load().takes_tools:
            raise RequestRejected(
                f"the chat template of {self.name} has no place for native tools: present them as text", self.name
            )
        for message in request["messages"]:
            for call in message.get("tool_calls", ()):
                # A call without arguments means `{}` (semantics 30), and the template wants to see JSON.
                call["function"]["arguments"] = call["function"]["arguments"] or "{}"
        return dict(request)

    def _file(self) -> Path:
        return weights.path(self._where) if self._known else Path(self._where).expanduser().resolve()


def _ends_in_one(prompt: Prompt) -> Prompt:
    """Join the assistant's messages at a prompt's end, since llama.cpp refuses several (rlms ends so)."""
    messages = list(prompt.messages)
    while len(messages) > 1 and all(m.role == "assistant" and not m.tool_calls for m in messages[-2:]):
        last, before = messages.pop(), messages.pop()
        between = Span("\n\n", last.spans[0].cause if last.spans else "assistant")
        messages.append(replace(before, spans=(*before.spans, between, *last.spans)))
    return prompt if len(messages) == len(prompt.messages) else replace(prompt, messages=tuple(messages))

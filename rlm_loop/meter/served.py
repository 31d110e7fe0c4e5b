"""The model behind the meter: timed, and counted by another model's tokenizer where that is asked for."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from rlm_loop.accounting.ledger import Part
from rlm_loop.messages import Prompt, Reply, Usage
from rlm_loop.models.base import Measuring, Model, ModelError
from rlm_loop.models.remote import RemoteModel

_NETWORK = 32  # requests under way at once to a model that is elsewhere


class Served:
    """A model whose replies say how long they took.

    With `counter`, input tokens are those of the counter's template and tokenizer, output tokens those of the
    reply's text and calls; nothing is known of a cache then.
    """

    def __init__(self, model: Model, counter: Measuring | None = None) -> None:
        self.model = model
        self.counter = counter
        self._last = threading.local()
        for name, source in (("measure", model), ("recorded_size", model), ("price", model)):
            if hasattr(source, name):  # what a model can do is told by the methods that it has
                setattr(self, name, getattr(source, name))
        if counter is not None:
            self.measure = self._counted

    @property
    def name(self) -> str:
        return self.model.name

    def complete(self, prompt: Prompt, *, max_tokens: int | None = None) -> Reply:
        """The model's reply; its `seconds` are the model's own where it states them, else measured here."""
        start = time.perf_counter()
        reply = self.model.complete(prompt, max_tokens=max_tokens)
        took = reply.seconds or time.perf_counter() - start
        if self.counter is not None:
            cost = None if reply.usage is None else reply.usage.cost
            entered = sum(part.tokens for part in self._counted(prompt))
            return replace(reply, usage=Usage(entered, self._written(reply), cost=cost), seconds=took)
        return replace(reply, seconds=took)

    def _counted(self, prompt: Prompt) -> Sequence[Part]:
        """The counter's parts, counted once for a request: before it is made and after it."""
        assert self.counter is not None
        if getattr(self._last, "prompt", None) is not prompt:
            self._last.prompt, self._last.parts = prompt, self.counter.measure(prompt)
        return self._last.parts

    def _written(self, reply: Reply) -> int:
        calls = [f'{{"name": "{call.name}", "arguments": {call.arguments or "{}"}}}' for call in reply.tool_calls]
        texts = [text for text in (reply.text, *calls) if text]
        count: Any = getattr(self.counter, "count", None)
        if count is not None:
            return sum(int(count(text)) for text in texts)
        return sum(-(-len(text) // 4) for text in texts)


@dataclass(frozen=True)
class Heard:
    """A provider's model whose reply has come already; `counter` says where its prompt's tokens are."""

    name: str
    reply: Reply
    counter: Measuring | None = None

    immediate = True

    def complete(self, prompt: Prompt, *, max_tokens: int | None = None) -> Reply:
        """The reply."""
        return self.reply

    @property
    def measure(self) -> Any:
        """The counter's; it may refuse what its template has no place for, and nothing is counted then."""
        if self.counter is None:
            raise AttributeError("measure")
        return self._measured

    def _measured(self, prompt: Prompt) -> Sequence[Part]:
        assert self.counter is not None
        try:
            return self.counter.measure(prompt)
        except ModelError:
            return ()


def at_once(model: Model) -> int:
    """How many requests a model takes at a time: its slots where it has any, many where it is elsewhere, else one."""
    slots = getattr(model, "slots", None)
    if isinstance(slots, int):
        return slots
    return _NETWORK if isinstance(model, RemoteModel) else 1

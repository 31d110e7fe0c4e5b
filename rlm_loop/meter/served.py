"""The model behind the meter: timed, and counted by another model's tokenizer where that is asked for."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rlm_loop.accounting.ledger import Part
from rlm_loop.messages import Prompt, Reply, Usage
from rlm_loop.models.base import Model, ModelError


class Served(Model):
    """A model whose replies say how long they took.

    With `counter`, input tokens are those of the counter's template and tokenizer, output tokens those of the
    reply's text and calls; nothing is known of a cache then.
    """

    loop_retry = None  # the client is told that it may try again

    def __init__(self, model: Model, counter: Model | None = None) -> None:
        self.model = model
        self.counter = counter
        self.name, self.price = model.name, model.price

    def measure(self, prompt: Prompt) -> Sequence[Part] | None:
        """Return the counter's parts, where there is one, else the model's."""
        return (self.counter or self.model).measure(prompt)

    def estimate(self, prompt: Prompt) -> int:
        """Return the model's own estimate."""
        return self.model.estimate(prompt)

    def complete(self, prompt: Prompt, *, max_tokens: int | None = None) -> Reply:
        """The model's reply; its `seconds` are the model's own where it states them, else measured here."""
        start = time.perf_counter()
        reply = self.model.complete(prompt, max_tokens=max_tokens)
        reply = replace(reply, seconds=reply.seconds or time.perf_counter() - start)
        if self.counter is None:
            return reply
        cost = None if reply.usage is None else reply.usage.cost
        entered = self.counter.prompt_tokens(prompt)
        calls = [f'{{"name": "{call.name}", "arguments": {call.arguments or "{}"}}}' for call in reply.tool_calls]
        written = sum(self.counter.count(text) for text in (reply.text, *calls) if text)
        return replace(reply, usage=Usage(entered, written, cost=cost))


@dataclass
class Heard(Model):
    """A provider's model whose reply has come already; `counter` says where its prompt's tokens are."""

    name: str
    reply: Reply
    counter: Model | None = None

    immediate = True
    loop_retry = None

    def complete(self, prompt: Prompt, *, max_tokens: int | None = None) -> Reply:
        """The reply."""
        return self.reply

    def measure(self, prompt: Prompt) -> Sequence[Part] | None:
        """Return the counter's parts; none where its template has no place for the prompt."""
        if self.counter is None:
            return None
        try:
            return self.counter.measure(prompt)
        except ModelError:
            return ()

"""A model whose replies are given beforehand: for tests, for examples, and to measure the harness itself."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import cast

from rlm_loop.accounting.ledger import Part
from rlm_loop.accounting.scope import OwnLock
from rlm_loop.messages import Prompt, Reply, ToolCall, Usage, common
from rlm_loop.models.base import Model, ModelError, RequestRejected

Written = str | Reply | BaseException | type[BaseException]
Scripted = Written | Callable[[Prompt], Written]

_MARKERS = 4  # tokens around each message
_ASKING = 3  # tokens that ask for a reply
_CHARACTERS = 4  # of a token


def text_tokens(text: str) -> int:
    """Return the tokens of a text by this model's rule: one for every four characters begun."""
    return -(-len(text) // _CHARACTERS)


def _call_tokens(calls: Sequence[ToolCall]) -> int:
    return sum([text_tokens(call.name + call.arguments) for call in calls]) if calls else 0


class ScriptedModel(Model):
    """Gives the replies it was made with, in order.

    A reply is a string, a `Reply`, an exception to raise, or a callable that gets the prompt and returns one of
    these.  `prompts` holds every prompt it was given.  When the replies run out it raises `ModelError`.

    It counts tokens by a rule, and `measure` follows the same one: every span of a message and every reply text
    of n characters is ceil(n / 4) tokens; a tool call counts by its name and arguments together, a tool schema
    by its JSON text; each message has 4 tokens of template, and 3 more ask for the reply.  `cache_read_tokens` are
    the tokens of the messages at the start that are the same as in its previous prompt (tool schemas included;
    none if the schemas changed).  A `Reply` that states its usage keeps it.

    A reply that is longer than `max_tokens` is cut to that many tokens, loses its tool calls, and ends with
    `finish_reason="length"`.  Stop strings are not looked at: the replies come as they were written.
    `price` is US dollars per input and output token, `None` for not known.  A prompt of more tokens than its `window`
    is refused, as providers do (`RequestRejected`).
    """

    interruptible = True
    loop_retry = None

    def __init__(
        self,
        replies: Iterable[Scripted],
        *,
        name: str = "scripted",
        price: tuple[float, float] | None = None,
        window: int | None = None,
    ) -> None:
        self.prompts: list[Prompt] = []
        self._replies = list(replies)
        self.name = name
        self.price = price
        self.window = window
        self._lock = OwnLock()

    def complete(self, prompt: Prompt, *, max_tokens: int | None = None) -> Reply:
        """Return the next reply."""
        if self.window is not None and (size := self.prompt_tokens(prompt)) > self.window:
            raise RequestRejected(f"the prompt has {size} tokens but the window is {self.window}", self.name)
        with self._lock:
            number = len(self.prompts)
            previous = self.prompts[-1] if self.prompts else None
            self.prompts.append(prompt)
        if number >= len(self._replies):
            raise ModelError(f"{self.name} was given {number} replies and asked for one more: give it more", self.name)
        given = self._replies[number]
        if not isinstance(given, str | Reply | BaseException | type):
            given = given(prompt)
        if not isinstance(given, str | Reply):
            raise cast("BaseException", given)
        reply = Reply(given) if isinstance(given, str) else given
        if max_tokens is not None and text_tokens(reply.text) + _call_tokens(reply.tool_calls) > max_tokens:
            text = reply.text[: max_tokens * _CHARACTERS]
            reply = replace(reply, text=text, tool_calls=(), finish_reason="length")
        return replace(reply, usage=self._usage(prompt, previous, reply)) if reply.usage is None else reply

    def measure(self, prompt: Prompt) -> list[Part]:
        """Return the parts of the prompt by the rule of this class, in reading order."""
        parts = [Part("tool_schema", 0, -1, text_tokens(json.dumps(dict(tool)))) for tool in prompt.tools]
        for index, message in enumerate(prompt.messages):
            parts.append(Part("template", message.turn, index, _MARKERS))
            for span in message.spans:
                if span.text:
                    parts.append(Part(span.cause, message.turn, index, text_tokens(span.text)))
            if message.tool_calls:
                parts.append(Part("assistant", message.turn, index, _call_tokens(message.tool_calls)))
        return [*parts, Part("template", 0, len(prompt.messages), _ASKING)]

    def _usage(self, prompt: Prompt, previous: Prompt | None, reply: Reply) -> Usage:
        parts = self.measure(prompt)
        entered = sum([part.tokens for part in parts])
        left = text_tokens(reply.text) + _call_tokens(reply.tool_calls)
        known = () if previous is None or previous.tools != prompt.tools else previous.messages
        same = common(known, prompt.messages)
        cached = sum([part.tokens for part in parts if part.message < same]) if same else 0
        cost = None if self.price is None else entered * self.price[0] + left * self.price[1]
        return Usage(entered, left, cached, cost=cost)

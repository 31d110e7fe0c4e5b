"""Five ways to show a model that its last action failed, as a model around another one, so that no loop is changed."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from rlm_loop.messages import Message, Prompt, Reply, Span
from rlm_loop.models.base import Model

#: Said in place of a conversation, by the way `fresh`.
AGAIN = "\n\nAn earlier attempt failed with this error:\n{error}\nSolve the task anew."
WARM = 0.7
_RESULTS = ("repl_output", "tool_result")
_RAISED = re.compile(r"(?:\w+\.)*\w*(?:Error|Exception|Interrupt|StopIteration)\b")


def is_error(span: Span) -> bool:
    """Say whether a result is an error: of the reply's form, of a tool, or an exception that a cell raised."""
    raised = span.cause in _RESULTS and _RAISED.match(_last_line(span.text))
    return span.cause == "error" or bool(raised)


def failed(prompt: Prompt) -> bool:
    """Say whether the latest turn of a request has an error."""
    last = max((message.turn for message in prompt.messages), default=0)
    return last > 0 and any(is_error(s) for m in prompt.messages if m.turn == last for s in m.spans)


def today(prompt: Prompt) -> Prompt:
    """Leave the request as it is: the whole error."""
    return prompt


def short(prompt: Prompt) -> Prompt:
    """Leave the last line of each error."""
    return replace(prompt, messages=tuple(_shortened(message) for message in prompt.messages))


def dropped(prompt: Prompt) -> Prompt:
    """Leave out the replies that failed; their errors stay."""
    turns = {m.turn for m in prompt.messages if m.turn and any(is_error(s) for s in m.spans)}
    return replace(
        prompt, messages=_joined([m for m in prompt.messages if m.role != "assistant" or m.turn not in turns])
    )


def warm(prompt: Prompt) -> Prompt:
    """Raise the temperature for the reply that follows a failure."""
    return replace(prompt, sampling={**prompt.sampling, "temperature": WARM})


def fresh(prompt: Prompt) -> Prompt:
    """Begin anew: the task, and the last line of the latest error."""
    errors = [s.text for m in prompt.messages for s in m.spans if is_error(s)]
    before = [m for m in prompt.messages if not m.turn]
    said = Message("user", (Span(AGAIN.format(error=_last_line(errors[-1])), "error"),))
    return replace(prompt, messages=_joined([*before, said]))


WAYS: Mapping[str, Callable[[Prompt], Prompt]] = {
    "today": today,
    "short": short,
    "dropped": dropped,
    "warm": warm,
    "fresh": fresh,
}


class Shown(Model):
    """A model that is shown failures in another way; all else goes to the model within."""

    interruptible = True

    def __init__(self, inner: Model, way: str) -> None:
        self.inner, self.way = inner, way
        self.name, self.price, self.window = inner.name, inner.price, inner.window
        self.temperature = inner.temperature

    def complete(self, prompt: Prompt, *, max_tokens: int | None = None) -> Reply:
        return self.inner.complete(self._as_shown(prompt), max_tokens=max_tokens)

    def measure(self, prompt: Prompt) -> Any:
        return self.inner.measure(self._as_shown(prompt))

    def _as_shown(self, prompt: Prompt) -> Prompt:
        return WAYS[self.way](prompt) if failed(prompt) else prompt


def _last_line(text: str) -> str:
    return next((line for line in reversed(text.strip().splitlines()) if line.strip()), text)


def _shortened(message: Message) -> Message:
    spans = (
        replace(s, text="\n" * s.text.startswith("\n") + _last_line(s.text)) if is_error(s) else s
        for s in message.spans
    )
    return replace(message, spans=tuple(spans))


def _joined(messages: list[Message]) -> tuple[Message, ...]:
    """Join neighbours of one role: some templates refuse two users in a row."""
    found: list[Message] = []
    for message in messages:
        if found and found[-1].role == message.role == "user" and not found[-1].tool_calls:
            between = Span("\n\n", message.spans[0].cause) if not message.text.startswith("\n") else None
            spans = (*found[-1].spans, *([between] if between else []), *message.spans)
            found[-1] = replace(found[-1], spans=spans)
        else:
            found.append(message)
    return tuple(found)

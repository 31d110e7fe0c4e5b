"""A further question of a conversation: it is put after the messages that are there, not before a model that is new."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from rlm_loop.actions import Answer
from rlm_loop.dialects.attempt_context import AttemptContext
from rlm_loop.dialects.base import Dialect, Problem
from rlm_loop.dialects.wrapped import Wrapped
from rlm_loop.messages import Message, Prompt, Reply, Span
from rlm_loop.outcome import Turn
from rlm_loop.tools.function import Tool


@dataclass(frozen=True)
class FollowUp(AttemptContext):
    """The conversation until now.  `messages` are those that the question follows.

    `tells_context` says that the question comes with a context of its own, which the model has to be told of.  With
    `asks` off the messages hold the question already: the run goes on in the middle of it, and nothing is put.
    """

    messages: tuple[Message, ...] = ()
    tells_context: bool = False
    asks: bool = True

    def around(self, dialect: Dialect) -> Dialect:
        return FollowUpDialect(dialect, self)


@dataclass(frozen=True)
class FollowUpDialect(Wrapped):
    """A dialect that puts the task after the messages of earlier questions; all else is the dialect's own.

    What the dialect says as the user comes as always.  Its system text stands at the beginning already.
    """

    earlier: FollowUp

    def format_task(self, problem: Problem, tools: Mapping[str, Tool]) -> Prompt:
        told = problem if self.earlier.tells_context else replace(problem, context="", inline="")
        prompt = self.dialect.format_task(told, tools)
        if not self.earlier.asks:
            return replace(prompt, messages=self.earlier.messages)
        asked = [m for m in prompt.messages if m.role != "system"]
        return replace(prompt, messages=joined(self.earlier.messages, asked))


def follow_up(messages: tuple[Message, ...], tells_context: bool = False, asks: bool = True) -> FollowUp:
    """The question that follows these messages; of the turns in them only the numbers are known."""
    numbers = dict.fromkeys(m.turn for m in messages if m.turn)
    turns = tuple(Turn(number, Reply(), (), ()) for number in numbers)
    return FollowUp(turns, messages=messages, tells_context=tells_context, asks=asks)


def joined(messages: Sequence[Message], asked: Sequence[Message]) -> tuple[Message, ...]:
    """The messages and a question after them, as part of the latest turn.

    It is put into the last message where that is the user's too, since some templates refuse two users in a row.
    """
    there, rest = list(messages), list(asked)
    last = max((m.turn for m in there), default=0)
    if there and rest and there[-1].role == rest[0].role == "user":
        spans = list(rest.pop(0).spans)
        spans[:1] = [Span("\n\n" + spans[0].text, spans[0].cause)] if spans else []
        there[-1] = replace(there[-1], spans=(*there[-1].spans, *spans))
    return (*there, *(replace(m, turn=last) for m in rest))


def with_turn(messages: tuple[Message, ...], dialect: Dialect, turn: Turn) -> tuple[Message, ...]:
    """The messages and those of a turn that ended its run; a text that was the answer has no result to be told of."""
    said = list(dialect.format_turn(turn))
    if said and said[-1].role == "user" and all(isinstance(action, Answer) for action in turn.actions):
        said.pop()
    return (*messages, *said)

"""The beginning of a run: its task alone, or after an earlier attempt, or after earlier questions of a session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from rlm_loop.actions import Answer
from rlm_loop.dialects.base import Dialect, Problem
from rlm_loop.dialects.injectors import appended
from rlm_loop.messages import Message, Prompt, Reply, Span
from rlm_loop.outcome import Turn
from rlm_loop.tools.function import Tool


@dataclass(frozen=True)
class AttemptContext:
    """`turns` of an earlier attempt are shown as if they were this one's; `text` follows, charged to
    `scaffold:<name>`; `patch` is applied to the workspace before the attempt begins."""

    turns: tuple[Turn, ...] = ()
    text: str = ""
    patch: str = ""
    name: str = "repair"

    def prompt(self, dialect: Dialect, problem: Problem, tools: Mapping[str, Tool]) -> Prompt:
        """The first prompt of the run."""
        prompt, last = dialect.format_task(problem, tools), 0
        for turn in self.turns:
            prompt, last = prompt + dialect.format_turn(turn), turn.index
        return replace(prompt, messages=appended(prompt.messages, [(self.name, self.text)], last))


#: Nothing came before the first attempt.
FIRST_ATTEMPT = AttemptContext()


@dataclass(frozen=True)
class FollowUp(AttemptContext):
    """`messages` of a session so far, which the question follows; the system text stands among them already.

    `tells_context` says that the question comes with a context of its own, which the model has to be told of.  With
    `asks` off the messages hold the question already: the run goes on in the middle of it.
    """

    messages: tuple[Message, ...] = ()
    tells_context: bool = False
    asks: bool = True

    def prompt(self, dialect: Dialect, problem: Problem, tools: Mapping[str, Tool]) -> Prompt:
        told = problem if self.tells_context else replace(problem, context="", inline="")
        prompt = dialect.format_task(told, tools)
        asked = [m for m in prompt.messages if m.role != "system"] if self.asks else []
        return replace(prompt, messages=joined(self.messages, asked))


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

"""The messages of a run: how they grow, and how a long history is made to fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from rlm_loop.actions import Answer
from rlm_loop.agents.compaction import Compaction, History, window_of
from rlm_loop.agents.meter import Meter
from rlm_loop.dialects.base import Dialect, Problem
from rlm_loop.dialects.injectors import Injector, told_first
from rlm_loop.messages import Message, Prompt, Span
from rlm_loop.outcome import Turn
from rlm_loop.tools.function import Tool


@dataclass
class Conversation:
    """Messages between a model and its environment, from which each request is made.

    `dialect` puts tasks, reads replies and shows turns; `compaction` shortens a long history (`None`: not before the
    model's window is full).  `turns` are those that the messages show, and `number` is that of the latest turn of the
    task, shown or not.  A session keeps one conversation for all of its questions.
    """

    dialect: Dialect
    compaction: Compaction | None = None
    prompt: Prompt = field(default_factory=Prompt)
    turns: list[Turn] = field(default_factory=list[Turn])
    number: int = 0
    _history: History | None = field(default=None, repr=False)

    def start(
        self,
        problem: Problem,
        tools: Mapping[str, Tool],
        meter: Meter,
        brief: Sequence[Injector] = (),
        *,
        asks: bool = True,
    ) -> None:
        """Put a task, after what was said before; the texts of `brief` follow the question.

        With `asks` off the messages hold the question already.
        """
        bounded = self.compaction is not None or window_of(meter.model) is not None
        self._history = History(self.compaction, meter) if bounded else None
        task = told_first(self.dialect, tuple(brief)).format_task(problem, tools)
        if self.prompt.messages:
            asked = [m for m in task.messages if m.role != "system"] if asks else []
            task = replace(task, messages=followed(self.earlier(), asked))
        self.prompt = task

    def next_prompt(self) -> Prompt:
        """Return the next request, shortened where it is too long.

        Raises `BudgetSpent` (`window`) where nothing that may be shortened is left.
        """
        if self._history is not None:
            self.prompt = self._history.shortened(self.prompt, self.turns)
        return self.prompt

    def add(self, turn: Turn) -> Turn:
        """Show a turn to the model from now on; return it with results clipped to what is left of the window."""
        if self._history is not None:
            turn = self._history.fit(self.dialect, self.prompt, turn)
        self.turns.append(turn)
        self.number = max(self.number, turn.index)
        self.prompt += self.dialect.format_turn(turn)
        return turn

    def earlier(self) -> tuple[Message, ...]:
        """The messages so far, for a question that follows; a text that was the answer has no result to be told of."""
        messages = self.prompt.messages
        last = self.turns[-1] if self.turns else None
        if last is None or not last.actions or not all(isinstance(action, Answer) for action in last.actions):
            return messages
        ends = messages[-1].role == "user" and messages[-1].turn == last.index
        return messages[:-1] if ends else messages


def followed(messages: Sequence[Message], asked: Sequence[Message]) -> tuple[Message, ...]:
    """The messages and a question after them, as part of the latest turn.

    It is put into the last message where that is the user's too, since some templates refuse two users in a row.
    """
    before, rest = list(messages), list(asked)
    last = max((m.turn for m in before), default=0)
    if before and rest and before[-1].role == rest[0].role == "user":
        spans = list(rest.pop(0).spans)
        spans[:1] = [Span("\n\n" + spans[0].text, spans[0].cause)] if spans else []
        before[-1] = replace(before[-1], spans=(*before[-1].spans, *spans))
    return (*before, *(replace(m, turn=last) for m in rest))

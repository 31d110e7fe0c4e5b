"""Texts that a strategy adds around a dialect, each metered under a cause of its own.

ReAct's extra text is a list of these; the lean loop is the empty list.  A loop with one injector more is an
ablation arm, and the same injector at several sizes is a dose-response curve.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from rlm_loop.actions import Action
from rlm_loop.dialects.base import NO_TOOLS, ActionMode, Dialect, Problem
from rlm_loop.dialects.wording import NUDGE, REACT_INITIATOR, REACT_THOUGHT
from rlm_loop.messages import Message, Prompt, Reply, Span
from rlm_loop.outcome import Turn
from rlm_loop.tools.function import Tool


class Injector:
    """Text that is added before the first reply (`opening`) and after every turn (`after`); "" adds nothing.

    Where `leads` is true, the opening comes right before the question, not after it.
    """

    name: str
    leads: bool = False

    def opening(self, problem: Problem) -> str:
        return ""

    def after(self, turn: Turn) -> str:
        return ""


@dataclass(frozen=True)
class Told(Injector):
    """A text said once, after the question."""

    text: str
    name: str

    def opening(self, problem: Problem) -> str:
        return self.text


@dataclass(frozen=True)
class Initiator(Told):
    """A goal template said once, before the first reply: what ReAct frameworks open with."""

    text: str = REACT_INITIATOR
    name: str = "initiator"


@dataclass(frozen=True)
class FormatReminder(Injector):
    """A reminder of the reply's format after every turn, as prompt-programming frameworks have it."""

    text: str
    name: str = "format_reminder"

    def after(self, turn: Turn) -> str:
        return self.text


@dataclass(frozen=True)
class Nudge(FormatReminder):
    """A line after every result on how to end; nothing is said before there is a result."""

    text: str = NUDGE
    name: str = "nudge"


@dataclass(frozen=True)
class ThoughtPrompt(Nudge):
    """The same request to think, before the first reply and after every turn."""

    text: str = REACT_THOUGHT
    name: str = "thought"

    def opening(self, problem: Problem) -> str:
        return self.text


@dataclass(frozen=True)
class TurnCounter(Injector):
    """`Turn 3/20:` before every reply, as the reference RLM has it."""

    limit: int
    name: str = "turn_counter"

    def opening(self, problem: Problem) -> str:
        return f"Turn 1/{self.limit}:"

    def after(self, turn: Turn) -> str:
        return f"Turn {turn.index + 1}/{self.limit}:"


@dataclass(frozen=True)
class Injected(Dialect):
    """A dialect with injectors around it; it reads replies exactly as the dialect does."""

    dialect: Dialect
    injectors: tuple[Injector, ...]

    @property
    def name(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return "+".join([self.dialect.name, *(i.name for i in self.injectors)])

    @property
    def action_mode(self) -> ActionMode:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.dialect.action_mode

    @property
    def observation_cap(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.dialect.observation_cap

    def format_task(self, problem: Problem, tools: Mapping[str, Tool]) -> Prompt:
        prompt = self.dialect.format_task(problem, tools)
        said = [(i, i.opening(problem)) for i in self.injectors]
        return replace(prompt, messages=_added(prompt.messages, said, 0))

    def parse_reply(self, reply: Reply, tools: Mapping[str, Tool] = NO_TOOLS) -> Sequence[Action]:
        return self.dialect.parse_reply(reply, tools)

    def format_turn(self, turn: Turn) -> Sequence[Message]:
        said = [(i, i.after(turn)) for i in self.injectors]
        return _added(tuple(self.dialect.format_turn(turn)), said, turn.index)


def told_first(dialect: Dialect, told: tuple[Injector, ...]) -> Dialect:
    """Return the dialect with injectors whose text comes right after the question, before that of any others."""
    inner = dialect if isinstance(dialect, Injected) else Injected(dialect, ())
    return replace(inner, injectors=(*told, *inner.injectors)) if told else dialect


def _added(messages: tuple[Message, ...], said: Sequence[tuple[Injector, str]], turn: int) -> tuple[Message, ...]:
    """Return the messages and some texts: in the last message if that is the user's, else in one of their own.

    Openings of injectors that lead come before that message's own text, exactly as they are; else each begins a line.
    """
    *earlier, last = messages if messages and messages[-1].role == "user" else (*messages, Message("user", turn=turn))
    before = [Span(text, f"scaffold:{i.name}") for i, text in said if text and i.leads and not turn]
    spans = [*before, *last.spans]
    for injector, text in said:
        if text and (turn or not injector.leads):
            spans.append(Span(("\n" if spans else "") + text, f"scaffold:{injector.name}"))
    return (*earlier, replace(last, spans=tuple(spans))) if any(text for _, text in said) else messages

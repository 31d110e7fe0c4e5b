"""Text that does not stay where it was said: injectors that change earlier messages, so that the prefix does not grow.

`history.rewriting` applies them before each request, as a `compaction` event in the trace.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from rlm_loop.actions import CallTool, RunCode
from rlm_loop.dialects.base import Problem
from rlm_loop.dialects.injectors import AddsNothing, Injector
from rlm_loop.dialects.peer_injectors import TEXTS
from rlm_loop.messages import Message, Prompt, Span
from rlm_loop.outcome import Turn


@runtime_checkable
class Rewriting(Protocol):
    """An injector with a say in what was said before: `rewrite` makes the next request of the one that grew."""

    @property
    def name(self) -> str: ...

    def rewrite(self, prompt: Prompt, turns: Sequence[Turn]) -> Prompt: ...


@dataclass(frozen=True)
class LatestOnly:
    """The injector's text at the end of the newest request only: it is taken out of all messages before the last."""

    injector: Injector

    @property
    def name(self) -> str:
        return self.injector.name

    def opening(self, problem: Problem) -> str:
        return self.injector.opening(problem)

    def after(self, turn: Turn) -> str:
        return self.injector.after(turn)

    def rewrite(self, prompt: Prompt, turns: Sequence[Turn]) -> Prompt:
        if not turns:
            return prompt
        cause, last = f"scaffold:{self.name}", len(prompt.messages) - 1
        kept = [m if i == last else _without(m, cause) for i, m in enumerate(prompt.messages)]
        return replace(prompt, messages=tuple(m for m in kept if m is not None))


@dataclass(frozen=True)
class DspyHistory(AddsNothing):
    """dspy's way to show the past: no messages of the turns, but one user text that is rendered anew in every request.

    Turns with code are shown as `dspy.RLM` shows them (reasoning, code, output), turns with tool calls as `dspy.ReAct`
    does (thought, tool, arguments, observation).  Reasoning is what a reply says before its first code block or call.
    Labels are charged to the injector, what they stand before to what it is.
    """

    name: str = "dspy_history"

    def opening(self, problem: Problem) -> str:
        return TEXTS["DSPY_FIELD"].format(name="repl_history") + TEXTS["DSPY_EMPTY"]

    def rewrite(self, prompt: Prompt, turns: Sequence[Turn]) -> Prompt:
        if not turns:
            return prompt
        cause = f"scaffold:{self.name}"
        brief = [left for m in prompt.messages if not m.turn and (left := _without(m, cause)) is not None]
        newest = [s for m in prompt.messages if m.turn == turns[-1].index for s in m.spans]
        tail = [s for s in newest if s.cause.startswith("scaffold:") and s.cause not in (cause, _LABEL)]
        calls = any(isinstance(a, CallTool) for t in turns for a in t.actions)
        shown = list((_trajectory if calls else _steps)(turns, cause))
        return replace(prompt, messages=(*brief, Message("user", (*shown, *tail), turn=turns[-1].index)))


_LABEL = "scaffold:observation_label"  # text ReAct's own, in front of a result


def _without(message: Message, cause: str) -> Message | None:
    """The message without the spans of a cause; `None` where there were no others."""
    spans = tuple(s for s in message.spans if s.cause != cause)
    return message if len(spans) == len(message.spans) else replace(message, spans=spans) if spans else None


def _steps(turns: Sequence[Turn], label: str) -> Iterator[Span]:
    """The turns as `REPLHistory.format` writes them."""
    yield Span(TEXTS["DSPY_FIELD"].format(name="repl_history"), label)
    for number, turn in enumerate(turns, 1):
        yield Span(("\n" if number > 1 else "") + TEXTS["DSPY_STEP"].format(number=number), label)
        code = "\n\n".join(a.code.strip() for a in turn.actions if isinstance(a, RunCode))
        if reasoning := _reasoning(turn, code):
            yield from _around(TEXTS["DSPY_REASONING"], "{reasoning}", Span(reasoning, "assistant"), label)
        yield from _around(TEXTS["DSPY_CODE"], "{code}", Span(code, "assistant"), label)
        results = [Span(o.text.rstrip("\n"), o.cause) for o in turn.observations]
        length = sum(len(s.text) for s in results) + max(0, len(results) - 1)
        yield Span(TEXTS["DSPY_OUTPUT"].format(length=length, output=""), label)
        for place, result in enumerate(results):
            yield replace(result, text=("\n" if place else "") + result.text)


def _trajectory(turns: Sequence[Turn], label: str) -> Iterator[Span]:
    """The turns as `dspy.ReAct` writes its trajectory; every call is a step of its own."""
    yield Span(TEXTS["DSPY_FIELD"].format(name="trajectory"), label)
    number = 0
    for turn in turns:
        thought = _reasoning(turn, "")
        for action, seen in zip(turn.actions, turn.observations, strict=True):
            tool = action.name if isinstance(action, CallTool) else "python" if isinstance(action, RunCode) else ""
            given = action.arguments if isinstance(action, CallTool) else getattr(action, "code", "")
            fields = [
                ("thought", Span(thought, "assistant")),
                ("tool_name", Span(tool, "assistant")),
                ("tool_args", Span(given, "assistant")),
                ("observation", Span(seen.text.rstrip("\n"), seen.cause)),
            ]
            for field, value in fields:
                gap = "\n\n" if number or field != "thought" else ""
                yield Span(gap + TEXTS["DSPY_FIELD"].format(name=f"{field}_{number}"), label)
                yield value
            number, thought = number + 1, ""


def _reasoning(turn: Turn, code: str) -> str:
    """What a reply says before its first code block or call; all of it where there is neither."""
    text = turn.reply.text
    acts = [p for p in (text.find("```"), text.find("~~~"), text.find('{"name"'), text.find("\nAction:")) if p >= 0]
    return text[: min(acts)].strip() if acts and (code or turn.actions) else text.strip()


def _around(template: str, field: str, value: Span, label: str) -> Iterator[Span]:
    head, _, tail = template.partition(field)
    yield Span(head, label)
    yield value
    yield Span(tail, label)

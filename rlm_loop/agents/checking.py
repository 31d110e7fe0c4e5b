"""Arguments of agents of a wrong type are refused when the agent is made, in a line that says what to give."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from rlm_loop.accounting.budget import Budget
from rlm_loop.agents.answers import adapter_of
from rlm_loop.agents.compaction import plan_of
from rlm_loop.agents.localise import Localise
from rlm_loop.agents.rules import Rules, SubCalls
from rlm_loop.errors import nearest
from rlm_loop.models.base import Model
from rlm_loop.repl import KINDS
from rlm_loop.repl.base import ReplTool, Session
from rlm_loop.tools.function import as_tool

#: The highest temperature that any provider takes.
HOTTEST = 2


def limited(budget: Budget, max_steps: int | None, seconds: float | None) -> Budget:
    """Return the budget with the limits that are not `None` in place of its own.

    Raises `TypeError` for what is no number, `ValueError` for a limit that cannot be.
    """
    if max_steps is not None:
        _number("max_steps", max_steps, whole=True)
        budget = replace(budget, steps=max_steps)
    if seconds is not None:
        _number("seconds", seconds, whole=False)
        budget = replace(budget, seconds=seconds)
    return budget


def checked(agent: Any) -> None:
    """Raises `TypeError` or `ValueError` for a field that cannot be meant."""
    if not isinstance(budget := agent.budget, Budget):
        number = isinstance(budget, (int, float)) and not isinstance(budget, bool)
        meant = f"; for a number of steps write max_steps={budget}" if number else ""
        raise TypeError(f"budget is a Budget, such as Budget(steps=25, seconds=300), not {budget!r:.60}{meant}")
    if not isinstance(agent.model, Model) and not (isinstance(agent.model, str) and agent.model.strip()):
        raise TypeError(
            'model must be a name ("local", "ollama/...", "openai/...") or a Model (derive yours from '
            f"rlm_loop.models.Model), got {agent.model!r:.60}"
        )
    for name, kind in (("subcalls", SubCalls), ("rules", Rules)):
        if not isinstance(value := getattr(agent, name), kind):
            raise TypeError(f"{name} must be {kind.__name__}(...), got {value!r:.60}")
    if isinstance(agent.repl, str) and agent.repl not in KINDS:
        raise ValueError(f"no REPL of kind {agent.repl!r}; there are: {', '.join(KINDS)}{nearest(agent.repl, KINDS)}")
    if agent.system is not None and not isinstance(agent.system, str):
        raise TypeError(f"system is a text, or None for the strategy's own, not {agent.system!r:.60}")
    if agent.max_tokens is not None:
        _number("max_tokens", agent.max_tokens, whole=True, unit="the tokens of one reply, ")
    if agent.temperature is not None:
        _number("temperature", agent.temperature, whole=False)
        if agent.temperature > HOTTEST:
            raise ValueError(f"temperature is a number from 0 to {HOTTEST}, not {agent.temperature!r}")
    plan_of(agent.history)
    if agent.answer_type is not None:
        adapter_of(agent.answer_type)
    if agent.verify is not None and not callable(agent.verify):
        raise TypeError(f"verify is a function of the answer, or None, not {agent.verify!r:.60}")


def listed(name: str, value: Any, one: str) -> tuple[Any, ...]:
    """A list as a tuple; a single thing in its place is refused with what to write."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        shown = getattr(value, "__name__", None) or getattr(value, "name", None) or type(value).__name__
        raise TypeError(f"{name} is a list of {one}, not {value!r:.60}: write {name}=[{shown}]")
    found = tuple(value)  # pyright: ignore[reportUnknownArgumentType]
    for each in found:
        if name == "tools":
            as_tool(each)
        elif name == "injectors" and not isinstance(each, Localise) and not callable(getattr(each, "opening", None)):
            raise TypeError(
                f"an injector has name, opening(problem) and after(turn), such as Nudge(), not {each!r:.60}"
            )
    return found


def session_in(tool: Any) -> Session | None:
    """The session that a tool is, such as a `PythonREPL` or what its `as_tool` returned."""
    held = tool.session if isinstance(tool, ReplTool) else tool
    return held if isinstance(held, Session) else None


def repl_of(repl: Any, tools: tuple[Any, ...]) -> Any:
    """The session among the tools, else `repl`: it is the tool `python` of a loop of calls, and stays the caller's.

    Raises `ValueError` for two sessions, and for one beside a kind of session.
    """
    sessions = [found for tool in tools if (found := session_in(tool)) is not None]
    if not sessions:
        return repl
    if len(sessions) > 1 or (isinstance(repl, str) and repl != "auto"):
        why = "two of them" if len(sessions) > 1 else f"repl={repl!r} beside it"
        raise ValueError(f"a session among the tools is the run's REPL, and there is {why}: give one")
    return sessions[0]


def one_of(name: str, value: Any, known: Sequence[str | None]) -> None:
    """Raises `ValueError` for a word that is none of those that are known."""
    if not any(value is word or (isinstance(value, str) and value == word) for word in known):
        words = " or ".join("None" if word is None else f'"{word}"' for word in known)
        raise ValueError(f"{name} is {words}, not {value!r:.60}{nearest(str(value), filter(None, known))}")


def _number(name: str, value: Any, *, whole: bool, unit: str = "") -> None:
    what = f"{name} is {unit}{'a whole number' if whole else 'a number'}, 0 or more, or None"
    if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)):
        raise TypeError(f"{what}, not {value!r:.60}")
    if not value >= 0:  # NaN is not either
        raise ValueError(f"{what}, not {value!r}")

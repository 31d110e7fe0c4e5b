"""The checks of what agents and runs are given: a line says what to give in place of a wrong type."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import Any, get_args

from rlm_loop.accounting.budget import Budget
from rlm_loop.agents.compaction import plan_of
from rlm_loop.agents.localise import Localise
from rlm_loop.agents.rules import Rules, SubCalls, adapter_of
from rlm_loop.dialects.base import Problem
from rlm_loop.dialects.function_calls import Presentation
from rlm_loop.dialects.injectors import Injector
from rlm_loop.errors import nearest
from rlm_loop.models.base import Model
from rlm_loop.outcome import Score
from rlm_loop.repl import KINDS
from rlm_loop.repl.contexts.context import describe_workspace
from rlm_loop.repl.contexts.on_disk import as_context
from rlm_loop.tasks.attempt import Attempt
from rlm_loop.tasks.base import Task

_NAME = 256  # characters: no longer text is taken for a file's name


#: Fields of an agent, their types, and what a line says that they must be.
_FIELDS: Sequence[tuple[str, Any, str]] = (
    ("budget", Budget, "a Budget, such as Budget(...)"),
    ("subcalls", SubCalls, "a SubCalls, such as SubCalls(...)"),
    ("rules", Rules, "a Rules, such as Rules(...)"),
    ("model", (str, Model), 'a name ("local", "ollama/...") or a Model (derive yours from rlm_loop.models.Model)'),
    ("system", (str, type(None)), "a text or None"),
    ("temperature", (int, float, type(None)), "a number, 0 or more, or None"),
    ("max_tokens", (int, type(None)), "a whole number, 0 or more, or None"),
)


def checked(agent: Any) -> None:
    """Raise `TypeError` or `ValueError` for a field that cannot be meant."""
    for name, kind, meant in _FIELDS:
        value = getattr(agent, name)
        if not isinstance(value, kind) or (isinstance(value, (int, float)) and not value >= 0):  # NaN is not either
            raise TypeError(f"{name} must be {meant}, got {value!r:.60}")
    for name in ("tools", "injectors", "hooks"):
        value = getattr(agent, name)
        if isinstance(value, str) or not isinstance(value, Iterable):
            raise TypeError(f"{name} must be a list, got {value!r:.60}: write {name}=[...]")
        object.__setattr__(agent, name, tuple(value))  # pyright: ignore[reportUnknownArgumentType]: never shared with the caller
    for injector in agent.injectors:
        if not isinstance(injector, (Injector, Localise)):
            meant = "Injector (derive yours from rlm_loop.dialects.Injector)"
            raise TypeError(f"injectors must be {meant}, got {injector!r:.60}")
    for name, known in (("repl", KINDS), ("presentation", get_args(Presentation)), ("form", ("text", "calls"))):
        word = getattr(agent, name, None)
        if isinstance(word, str) and word not in known:
            words = ", ".join(f'"{one}"' for one in known)
            raise ValueError(f"{name} must be one of {words}, got {word!r:.60}{nearest(word, known)}")
    if getattr(agent, "presentation", None) == "constrained" and (agent.rules.may_block or not agent.answer_tool):
        raise ValueError('with presentation="constrained" a reply is a call: leave may_block off and answer_tool on')
    if getattr(agent, "scaffold", None) is not None and agent.form != "calls":
        raise ValueError('scaffold is for form="calls"; the text form has its template instead (system=...)')
    plan_of(agent.history)
    if agent.answer_type is not None:
        adapter_of(agent.answer_type)


def refuse_settings(agent: Any, name: str) -> None:
    """Raise `TypeError` for a keyword that a run does not have, and say whether it is the agent's."""
    kind = type(agent).__name__
    if name in signature(type(agent)).parameters:
        raise TypeError(f"{name} is a setting of the agent, not of a run: {kind}({name}=...).run(...)")
    raise TypeError(f"{kind}.run() has no argument {name!r}{nearest(name, signature(agent.run).parameters)}")


def unscored(attempt: Attempt) -> Score:
    """The score of a question that no suite asked."""
    return Score(False, 0.0, "a question of the user's has no truth to compare with")


def asked(question: str, context: Any) -> Task:
    """A question of the user's as a task; raises `TypeError` and `ValueError` for what is none."""
    if isinstance(question, str) and not question.strip():
        raise ValueError("the question is empty; say what is to be done")
    if isinstance(context, str) and len(context) < _NAME and "\n" not in context and Path(context).is_file():
        meant = f"context is the text {context!r}, not the file of that name: was Path({context!r}) meant?"
        warnings.warn(meant, stacklevel=3)
    return Task("question", question, unscored, context=context)


def in_workspace(problem: Problem, tools: Iterable[str]) -> Problem:
    """The problem with a line about the workspace, where one is open."""
    seen = filter(None, [problem.context, describe_workspace(tools)])
    return replace(problem, context="\n".join(seen))


def with_context(task: Task) -> Task:
    """The task with its context as a value that a run can use."""
    context = as_context(task.material())
    return task if context is task.context else replace(task, context=context)

"""Questions and tasks as a run takes them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from rlm_loop.dialects.base import Problem
from rlm_loop.outcome import Score
from rlm_loop.repl.contexts.context import describe_workspace
from rlm_loop.repl.contexts.on_disk import as_context
from rlm_loop.tasks.attempt import Attempt
from rlm_loop.tasks.base import Task


def unscored(attempt: Attempt) -> Score:
    """The score of a question that no suite asked."""
    return Score(False, 0.0, "a question of the user's has no truth to compare with")


def asked(question: str, context: Any) -> Task:
    """A question of the user's as a task; raises `TypeError` and `ValueError` for what is none."""
    if not isinstance(question, str):
        raise TypeError(f"the question is a text, not {question!r:.60}; data goes into context=")
    if not question.strip():
        raise ValueError("the question is empty; say what is to be done")
    return Task("question", question, unscored, context=context)


def in_workspace(problem: Problem, tools: Iterable[str]) -> Problem:
    """The problem with a line about the workspace, where one is open."""
    seen = filter(None, [problem.context, describe_workspace(tools)])
    return replace(problem, context="\n".join(seen))


def with_context(task: Task) -> Task:
    """The task with its context as a value that a run can use."""
    context = as_context(task.material())
    return task if context is task.context else replace(task, context=context)

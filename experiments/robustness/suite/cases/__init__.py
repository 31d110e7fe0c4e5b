"""The cases, one module a theme."""

from __future__ import annotations

from experiments.robustness.suite.case import CellCase, ReplyCase
from experiments.robustness.suite.cases import (
    blocking,
    contexts,
    descriptors,
    endings,
    endless,
    isolation,
    leftovers,
    namespace,
    output,
    patches,
    reply_answers,
    reply_calls,
    reply_fences,
    reply_texts,
    reply_turns,
    resources,
    values,
)

CELL_CASES: tuple[CellCase, ...] = (
    *endless.CASES,
    *blocking.CASES,
    *resources.CASES,
    *output.CASES,
    *descriptors.CASES,
    *endings.CASES,
    *patches.CASES,
    *leftovers.CASES,
    *values.CASES,
    *contexts.CASES,
    *namespace.CASES,
    *isolation.CASES,
)
REPLY_CASES: tuple[ReplyCase, ...] = (
    *reply_fences.CASES,
    *reply_texts.CASES,
    *reply_answers.CASES,
    *reply_turns.CASES,
    *reply_calls.CASES,
)
CASES: tuple[CellCase | ReplyCase, ...] = (*CELL_CASES, *REPLY_CASES)


def named(name: str) -> CellCase | ReplyCase:
    """The case of that name; raises `ValueError` where there is none."""
    for case in CASES:
        if case.name == name:
            return case
    raise ValueError(f"no robustness case is called {name!r}; `python experiments/robustness/suite` lists them")

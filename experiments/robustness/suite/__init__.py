"""The robustness suite: named hostile or clumsy cells and replies for REPLs, and what must be true after each.

    from experiments.robustness.suite import CELL_CASES, KINDS, run_cells
    subject = KINDS["plain"].open()
    verdicts = [run_cells(case, subject) for case in CELL_CASES if not case.fresh]

Any interpreter can be put to the cases: give it the methods of `Subject`.  `run_apart` puts a case to it in a process
of its own, with a world around it in which the cases on isolation mean something.
"""

from __future__ import annotations

from experiments.robustness.suite.apart import Report, run_apart
from experiments.robustness.suite.case import (
    Case,
    CaseResult,
    CellCase,
    CellStep,
    Played,
    ReplyCase,
    ScriptedReply,
    Seen,
    block,
)
from experiments.robustness.suite.cases import CASES, CELL_CASES, REPLY_CASES, named
from experiments.robustness.suite.forks import Forks
from experiments.robustness.suite.kinds import KINDS, Kind
from experiments.robustness.suite.runner import run_cells, run_replies
from experiments.robustness.suite.subject import FEATURES, Subject
from experiments.robustness.suite.world import Surroundings, World

__all__ = [
    "CASES",
    "CELL_CASES",
    "FEATURES",
    "KINDS",
    "REPLY_CASES",
    "Case",
    "CaseResult",
    "CellCase",
    "CellStep",
    "Forks",
    "Kind",
    "Played",
    "ReplyCase",
    "Report",
    "ScriptedReply",
    "Seen",
    "Subject",
    "Surroundings",
    "World",
    "block",
    "named",
    "run_apart",
    "run_cells",
    "run_replies",
]

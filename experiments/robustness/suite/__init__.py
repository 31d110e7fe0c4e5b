"""The robustness suite: named hostile or clumsy cells and replies for REPLs, and what must be true after each.

    from robustness.suite import CELL_CASES, KINDS, run_cells
    subject = KINDS["plain"].open()
    verdicts = [run_cells(case, subject) for case in CELL_CASES if not case.fresh]

Any interpreter can be put to the cases: give it the methods of `Subject`.  `run_apart` puts a case to it in a process
of its own, with a world around it in which the cases on isolation mean something.
"""

from __future__ import annotations

from robustness.suite.apart import Report, run_apart
from robustness.suite.case import Case, CaseResult, CellCase, CellStep, Played, ReplyCase, ScriptedReply, Seen, block
from robustness.suite.cases import CASES, CELL_CASES, REPLY_CASES, named
from robustness.suite.forks import Forks
from robustness.suite.kinds import KINDS, Kind
from robustness.suite.runner import run_cells, run_replies
from robustness.suite.subject import FEATURES, Subject
from robustness.suite.world import Surroundings, World

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

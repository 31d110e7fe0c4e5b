"""A torture suite for REPLs that run a model's code: named hostile or clumsy cells and replies, and what must be true.

    from rlm_loop.torture import CELL_CASES, KINDS, run_cells
    subject = KINDS["plain"].open()
    verdicts = [run_cells(case, subject) for case in CELL_CASES if not case.fresh]

Any interpreter can be put to the cases: give it the methods of `Subject`.  `run_apart` puts a case to it in a process
of its own, with a world around it in which the cases on isolation mean something.
"""

from __future__ import annotations

from rlm_loop.torture.apart import Report, run_apart
from rlm_loop.torture.case import Case, CellCase, Played, ReplyCase, Said, Seen, Step, Verdict, block
from rlm_loop.torture.cases import CASES, CELL_CASES, REPLY_CASES, named
from rlm_loop.torture.forks import Forks
from rlm_loop.torture.kinds import KINDS, Kind
from rlm_loop.torture.runner import run_cells, run_replies
from rlm_loop.torture.subject import FEATURES, Subject
from rlm_loop.torture.world import Place, World

__all__ = [
    "CASES",
    "CELL_CASES",
    "FEATURES",
    "KINDS",
    "REPLY_CASES",
    "Case",
    "CellCase",
    "Forks",
    "Kind",
    "Place",
    "Played",
    "ReplyCase",
    "Report",
    "Said",
    "Seen",
    "Step",
    "Subject",
    "Verdict",
    "World",
    "block",
    "named",
    "run_apart",
    "run_cells",
    "run_replies",
]

"""Studies: a grid of arms, models, tasks and seeds in; resumable rows and tidy frames out.

>>> study = Study("mine", {"code": ToolLoopAgent(), "lean": LeanAgent()}, suite)   # doctest: +SKIP
>>> study.run("runs/mine").by_arm()                                                # doctest: +SKIP
"""

from __future__ import annotations

from rlm_loop.study.archive import export, read_trace
from rlm_loop.study.contract import Contract, Unfair, contract
from rlm_loop.study.errors import StudyError, StudyInterrupted
from rlm_loop.study.factors import FACTORS
from rlm_loop.study.failures import diagnose_episodes
from rlm_loop.study.grid import Cell
from rlm_loop.study.loader import load_study_file
from rlm_loop.study.results import Results
from rlm_loop.study.study import Study, load_study
from rlm_loop.study.summary import ArmSummary
from rlm_loop.study.verify import verify_traces

__all__ = [
    "FACTORS",
    "ArmSummary",
    "Cell",
    "Contract",
    "Results",
    "Study",
    "StudyError",
    "StudyInterrupted",
    "Unfair",
    "contract",
    "diagnose_episodes",
    "export",
    "load_study",
    "load_study_file",
    "read_trace",
    "verify_traces",
]

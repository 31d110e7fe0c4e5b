"""Studies: a grid of arms, models, tasks and seeds in; resumable rows and tidy frames out.

>>> study = Study("mine", {"code": ToolLoopAgent(), "lean": LeanAgent()}, suite)   # doctest: +SKIP
>>> study.run("runs/mine").by_arm()                                                # doctest: +SKIP
"""

from __future__ import annotations

from rlm_loop.study.analysis import Analysis
from rlm_loop.study.archive import export, read_trace
from rlm_loop.study.attempts import resolve_rates
from rlm_loop.study.compaction import compact
from rlm_loop.study.comparison import Comparison, compare
from rlm_loop.study.contract import Contract, Unfair, contract
from rlm_loop.study.contrast import MEASURES, Contrast
from rlm_loop.study.errors import StudyError, StudyInterrupted, StudyWarning
from rlm_loop.study.executors import executor_of
from rlm_loop.study.factors import FACTORS
from rlm_loop.study.failures import diagnose_episodes
from rlm_loop.study.grid import Cell
from rlm_loop.study.load import load_study
from rlm_loop.study.loader import load_study_file
from rlm_loop.study.results import Results
from rlm_loop.study.run_on import WorkerLost, run_on
from rlm_loop.study.sequential import sequential
from rlm_loop.study.status import Status, status
from rlm_loop.study.study import Study
from rlm_loop.study.summary import ArmSummary
from rlm_loop.study.verify import verify_traces

__all__ = [
    "FACTORS",
    "MEASURES",
    "Analysis",
    "ArmSummary",
    "Cell",
    "Comparison",
    "Contract",
    "Contrast",
    "Results",
    "Status",
    "Study",
    "StudyError",
    "StudyInterrupted",
    "StudyWarning",
    "Unfair",
    "WorkerLost",
    "compact",
    "compare",
    "contract",
    "diagnose_episodes",
    "executor_of",
    "export",
    "load_study",
    "load_study_file",
    "read_trace",
    "resolve_rates",
    "run_on",
    "sequential",
    "status",
    "verify_traces",
]

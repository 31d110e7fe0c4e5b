"""Studies: a grid of arms, models, tasks and seeds in; resumable rows and tidy frames out.

>>> study = Study("mine", {"code": ToolLoopAgent(), "lean": LeanAgent()}, suite)   # doctest: +SKIP
>>> study.run("runs/mine").by_arm()                                                # doctest: +SKIP
"""

from __future__ import annotations

from rlm_loop.study.compare.comparison import Comparison, compare
from rlm_loop.study.compare.contrast import MEASURES, Contrast
from rlm_loop.study.compare.pair_keys import is_resolved
from rlm_loop.study.compare.patches import study_predictions, with_report
from rlm_loop.study.compare.sequential import sequential
from rlm_loop.study.compare.summary import ArmSummary
from rlm_loop.study.errors import StudyError, StudyInterrupted, StudyWarning
from rlm_loop.study.law import LoopTokens
from rlm_loop.study.plan.analysis import Analysis
from rlm_loop.study.plan.fairness import FACTORS, FairnessCheck, Unfair, fairness_check
from rlm_loop.study.plan.grid import Episode
from rlm_loop.study.plan.loader import load_study_file
from rlm_loop.study.results import Results, load_study
from rlm_loop.study.run.episode import rescore
from rlm_loop.study.run.progress import Status, status
from rlm_loop.study.run.submit import submit
from rlm_loop.study.store.archive import export, read_trace, verify_traces
from rlm_loop.study.study import Study

__all__ = [
    "FACTORS",
    "MEASURES",
    "Analysis",
    "ArmSummary",
    "Comparison",
    "Contrast",
    "Episode",
    "FairnessCheck",
    "LoopTokens",
    "Results",
    "Status",
    "Study",
    "StudyError",
    "StudyInterrupted",
    "StudyWarning",
    "Unfair",
    "compare",
    "export",
    "fairness_check",
    "is_resolved",
    "load_study",
    "load_study_file",
    "read_trace",
    "rescore",
    "sequential",
    "status",
    "study_predictions",
    "submit",
    "verify_traces",
    "with_report",
]

"""Patches: made by an agent, tried again, handed on to a stronger model, chosen, scored at any time, diagnosed.

>>> result = generate_patch(task, retry(LeanAgent(), check=visible_tests()))  # doctest: +SKIP
"""

from __future__ import annotations

from rlm_loop.agents.attempts.anytime import Anytime, State, anytime
from rlm_loop.agents.attempts.best_of import BestOf, best_of
from rlm_loop.agents.attempts.checks import Check, Command, Tests, command, visible_tests
from rlm_loop.agents.attempts.escalate import Escalate, escalate
from rlm_loop.agents.attempts.evidence import TestsRun
from rlm_loop.agents.attempts.generate import PatchResult, generate_patch
from rlm_loop.agents.attempts.retry import RepairTemplate, Retry, retry
from rlm_loop.agents.attempts.scores import load_scores, save_scores
from rlm_loop.tasks.base import CheckResult

__all__ = [
    "Anytime",
    "BestOf",
    "Check",
    "CheckResult",
    "Command",
    "Escalate",
    "PatchResult",
    "RepairTemplate",
    "Retry",
    "State",
    "Tests",
    "TestsRun",
    "anytime",
    "best_of",
    "command",
    "escalate",
    "generate_patch",
    "load_scores",
    "retry",
    "save_scores",
    "visible_tests",
]

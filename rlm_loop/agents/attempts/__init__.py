"""Patches: made by an agent, tried again, handed on to a stronger model.

>>> result = generate_patch(task, retry(LeanAgent(), check=visible_tests()))  # doctest: +SKIP
"""

from __future__ import annotations

from rlm_loop.agents.attempts.checks import Check, Tests, visible_tests
from rlm_loop.agents.attempts.escalate import Escalate, escalate
from rlm_loop.agents.attempts.generate import PatchResult, generate_patch
from rlm_loop.agents.attempts.retry import RepairTemplate, Retry, retry
from rlm_loop.tasks.base import CheckResult

__all__ = [
    "Check",
    "CheckResult",
    "Escalate",
    "PatchResult",
    "RepairTemplate",
    "Retry",
    "Tests",
    "escalate",
    "generate_patch",
    "retry",
    "visible_tests",
]

"""Problems to give to agents, and how an answer is judged."""

from rlm_loop.outcome import Score
from rlm_loop.tasks.attempt import Attempt
from rlm_loop.tasks.base import CheckResult, Deferred, Split, Suite, Task
from rlm_loop.tasks.hub import dataset_suite
from rlm_loop.tasks.jsonl import SuiteFileError, read_suite
from rlm_loop.tasks.match import Match, matches
from rlm_loop.tasks.registry import get_suite, list_suites

__all__ = [
    "Attempt",
    "CheckResult",
    "Deferred",
    "Match",
    "Score",
    "Split",
    "Suite",
    "SuiteFileError",
    "Task",
    "dataset_suite",
    "get_suite",
    "list_suites",
    "matches",
    "read_suite",
]

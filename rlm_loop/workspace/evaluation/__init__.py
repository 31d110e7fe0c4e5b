"""Judge a patch by the tests of a repository, which the patch cannot change."""

from rlm_loop.workspace.evaluation.evaluate import evaluate
from rlm_loop.workspace.evaluation.result import Evaluation, ListedOutcome, TestsCannotRun

__all__ = ["Evaluation", "ListedOutcome", "TestsCannotRun", "evaluate"]

"""Judge a patch by the tests of a repository, which the patch cannot change."""

from rlm_loop.workspace.evaluation.evaluate import Evaluation, ListedOutcome, TestsCannotRun, evaluate

__all__ = ["Evaluation", "ListedOutcome", "TestsCannotRun", "evaluate"]

"""Run the tests of a repository, apart from this process and from the repository itself."""

from rlm_loop.workspace.testing.places import Place
from rlm_loop.workspace.testing.result import Outcome, TestRun
from rlm_loop.workspace.testing.run import LIMITS, run_tests
from rlm_loop.workspace.testing.tool import summary, tests_tool

__all__ = ["LIMITS", "Outcome", "Place", "TestRun", "run_tests", "summary", "tests_tool"]

"""Run the tests of a repository, apart from this process and from the repository itself."""

from rlm_loop.testing.places import Place
from rlm_loop.testing.result import Outcome, TestRun
from rlm_loop.testing.run import LIMITS, run_tests
from rlm_loop.testing.tool import summary, tests_tool

__all__ = ["LIMITS", "Outcome", "Place", "TestRun", "run_tests", "summary", "tests_tool"]

"""Run the tests of a repository, apart from this process and from the repository itself."""

from rlm_loop.workspace.testing.isolation import Isolation
from rlm_loop.workspace.testing.reports import TestOutcome, TestRun
from rlm_loop.workspace.testing.run import LIMITS, run_tests
from rlm_loop.workspace.testing.tool import summary, tests_tool

__all__ = ["LIMITS", "Isolation", "TestOutcome", "TestRun", "run_tests", "summary", "tests_tool"]

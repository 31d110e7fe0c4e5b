"""Run the tests of a repository, apart from this process and from the repository itself."""

from rlm_loop.workspace.testing.isolation import Isolation
from rlm_loop.workspace.testing.run import TestOutcome, TestRun, run_tests
from rlm_loop.workspace.testing.tool import summary, tests_tool

__all__ = ["Isolation", "TestOutcome", "TestRun", "run_tests", "summary", "tests_tool"]

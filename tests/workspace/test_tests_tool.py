"""The tool by which a model runs the tests of its workspace."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rlm_loop.tools import ToolGateway
from rlm_loop.workspace import Workspace
from rlm_loop.workspace.testing import TestRun, summary, tests_tool

TEST = """
from pkg import add
def test_add():
    open("dropping", "w").close()
    assert add(1, 2) == 3
def test_none(): assert add(0, 0) == 0
"""


@pytest.fixture(scope="module")
def space() -> Iterator[Workspace]:
    with Workspace({"pkg.py": "def add(a, b): return a - b\n", "tests/test_pkg.py": TEST}) as space:
        yield space


@pytest.fixture(scope="module")
def gateway(space: Workspace) -> ToolGateway:
    return ToolGateway([tests_tool(space, place="plain")])


@pytest.mark.slow
def test_a_model_runs_tests_and_the_diff_stays_clean(gateway: ToolGateway, space: Workspace) -> None:
    result = gateway.call("run_tests", "")
    assert result.ok, result.text
    assert result.text.startswith("1 passed, 1 failed, 0 errors\nFAILED tests/test_pkg.py::test_add\n")
    assert "assert -1 == 3" in result.text
    assert "rlm-tests-" not in result.text
    assert (space.diff(), space.snapshot()) == ("", space.base)


def test_one_test(gateway: ToolGateway) -> None:
    result = gateway.call("run_tests", '{"selector": "./tests/test_pkg.py::test_none"}')
    assert result.text == "1 passed, 0 failed, 0 errors"


def test_no_such_test(gateway: ToolGateway) -> None:
    result = gateway.call("run_tests", '{"selector": "tests/test_no.py"}')
    assert (result.error, result.message) == ("invalid_arguments", "no test has one of these ids: tests/test_no.py")


@pytest.mark.parametrize(
    ("run", "text"),
    [
        (TestRun({"a": "passed"}), "1 passed, 0 failed, 0 errors"),
        (TestRun({"a": "skipped"}, cut_short="stopped"), "0 passed, 0 failed, 0 errors, 1 skipped\nstopped"),
        (
            TestRun({"a": "failed", "b": "error", "c": "failed"}, messages={"a": "x\ny\n", "b": "z"}),
            "0 passed, 2 failed, 1 errors\nFAILED a\nx\ny\nERROR b\nFAILED c",
        ),
        (
            TestRun({"a": "failed"}, messages={"a": "\n".join(str(n) for n in range(20))}),
            "0 passed, 1 failed, 0 errors\nFAILED a\n...\n" + "\n".join(str(n) for n in range(5, 20)),
        ),
    ],
)
def test_summaries(run: TestRun, text: str) -> None:
    assert summary(run, failures=1 if "b" in run.results else 3) == text


def test_summaries_are_bounded() -> None:
    run = TestRun({f"t{n}": "failed" for n in range(1000)}, messages={f"t{n}": "x" * 90 for n in range(1000)})
    lines = summary(run).splitlines()
    assert (len(lines), lines[-1]) == (1 + 3 * 2 + 20 + 1, "... 977 more")

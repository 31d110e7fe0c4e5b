"""What the process of the tests tells is not believed further than it has to be."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_loop.repl import Launch
from rlm_loop.tools.processes import Finished
from rlm_loop.workspace.testing import TestRun
from rlm_loop.workspace.testing.run import Reports


def told(*lines: tuple[str, dict[str, object]]) -> TestRun:
    reports = Reports("word")
    for kind, fields in lines:
        reports.hear(b"word" + json.dumps({"kind": kind, **fields}).encode())
    return reports.result(Finished(0, "", False, 1.0), Launch((), {}, "plain"), ["a.py"], "/folder", ())


def result(outcome: str, name: str = "a.py::test_a") -> tuple[str, dict[str, object]]:
    return "result", {"id": name, "outcome": outcome, "text": ""}


CONTROL, FINISH, END = [(kind, {"text": text}) for kind, text in (("control", ""), ("finish", ""), ("end", "0"))]
FOOLED = ("control", {"text": "x"})


@pytest.mark.parametrize(
    ("lines", "outcome", "distrusted"),
    [
        ([result("passed"), CONTROL, FINISH, END], "passed", ""),
        ([result("passed"), result("failed"), CONTROL, FINISH, END], "failed", ""),
        ([result("failed"), result("passed"), CONTROL, FINISH, END], "failed", ""),  # a result never improves
        ([result("failed"), CONTROL, FINISH, result("passed"), END], "failed", ""),
        ([CONTROL, FINISH, result("passed"), END], None, ""),  # the end has been told
        ([result("passed")], "passed", "the run did not come to its end, after the last test"),
        ([result("passed"), FINISH, END], "passed", "control tests, which have to fail, passed: which were not run"),
        ([result("passed"), FOOLED, FINISH], "passed", "control tests, which have to fail, passed: x"),
    ],
)
def test_results(lines: list[tuple[str, dict[str, object]]], outcome: str | None, distrusted: str) -> None:
    run = told(*lines)
    assert (run.results.get("a.py::test_a"), run.distrusted) == (outcome, distrusted)


@given(st.binary() | st.recursive(st.none() | st.text(), st.lists).map(lambda value: json.dumps(value).encode()))
def test_any_line_is_borne(line: bytes) -> None:
    reports = Reports("word")
    for text in (line, b"word" + line, b"word" + b'{"kind": "result"}', b"word" + b"[" * 100_000):
        reports.hear(text)
    assert reports.results == {}

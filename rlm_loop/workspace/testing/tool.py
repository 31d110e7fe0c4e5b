"""The tool by which a model runs the tests of its workspace: counts and the first failures, in few tokens."""

# ruff: noqa: PT028 - what is here is called a test and is none

from __future__ import annotations

from rlm_loop.repl.text import clip
from rlm_loop.tools.function import Tool, ToolError
from rlm_loop.workspace import Workspace
from rlm_loop.workspace.testing.isolation import Isolation
from rlm_loop.workspace.testing.run import TestOutcome, TestRun, run_tests

_AROUND = 60.0  # seconds for all but the tests, before the call is given up
_CAP = 4000  # characters of a result


def tests_tool(workspace: Workspace, *, timeout: float = 120.0, place: Isolation = "auto") -> Tool:
    """A tool `run_tests(selector)` for the files of a workspace as they are at the call.

    Tests run in a copy, so that nothing of theirs gets into the diff.  The arguments are as in `testing.run_tests`.
    """

    def call(selector: str = "") -> str:
        chosen = selector.strip().removeprefix("./")
        ids = [] if chosen in ("", ".") else [chosen]
        run = run_tests(workspace.root, ids, timeout=timeout, place=place)
        if run.complaint and not run.cut_short:
            if ids:
                raise ToolError("invalid_arguments", f"{run.complaint}: {selector}")
            raise ToolError("runtime", run.complaint)
        return clip(summary(run), _CAP)[0]

    help_line = "Run the tests of a file, a folder or one test (file.py::test); empty runs all."
    return Tool("run_tests", help_line, call, timeout + _AROUND)


tests_tool.__test__ = False  # pyright: ignore[reportFunctionMemberAccess] - for pytest, where a test imports it


def summary(run: TestRun, failures: int = 3) -> str:
    """A run in a few lines for a model.  It has no times, so that the same run reads the same."""
    names: dict[TestOutcome, str] = {"passed": "passed", "failed": "failed", "error": "errors", "skipped": "skipped"}
    outcomes = list(run.results.values())
    counted = {name: outcomes.count(outcome) for outcome, name in names.items()}
    counts = ", ".join(f"{count} {name}" for name, count in counted.items() if count or name != "skipped")
    bad = [name for name, outcome in run.results.items() if outcome in ("failed", "error")]
    lines = [counts, *([run.cut_short] if run.cut_short else [])]
    for name in bad[:failures]:
        text = run.messages.get(name, "").strip().splitlines()  # at its end is the error itself
        lines += [f"{run.results[name].upper()} {name}", *(text if len(text) <= 15 else ["...", *text[-15:]])]
    lines += [f"{run.results[name].upper()} {name}" for name in bad[failures : failures + 20]]
    rest = len(bad) - failures - 20
    return "\n".join(lines + ([f"... {rest} more"] if rest > 0 else []))

"""The tool by which a model runs the tests of its workspace: counts and the first failures, in few tokens."""

# ruff: noqa: PT028 - what is here is called a test and is none

from __future__ import annotations

from collections.abc import Callable

from rlm_loop.repl.text import clip
from rlm_loop.tools.function import Tool, ToolError, tool
from rlm_loop.workspace import Workspace
from rlm_loop.workspace.testing.isolation import Isolation
from rlm_loop.workspace.testing.reports import TestRun
from rlm_loop.workspace.testing.run import run_tests

_AROUND = 60.0  # seconds for all but the tests, before the call is given up
_CAP = 4000  # characters of a result


def tests_tool(
    workspace: Workspace,
    *,
    python: str | None = None,
    timeout: float = 120.0,
    place: Isolation = "auto",
    on_run: Callable[[TestRun], None] | None = None,
) -> Tool:
    """A tool `run_tests(selector)` for the files of a workspace as they are at the call.

    Tests run in a copy, so that nothing of theirs gets into the diff.  `on_run` is given each run, as evidence for a
    caller.  The other arguments are as in `testing.run_tests`.
    """

    @tool(timeout=timeout + _AROUND)
    def run_tests_(selector: str = "") -> str:
        """Run the tests of a file, a folder or one test (file.py::test); empty runs all."""
        chosen = selector.strip().removeprefix("./")
        ids = [] if chosen in ("", ".") else [chosen]
        run = run_tests(workspace.root, ids, python=python, timeout=timeout, place=place)
        if on_run is not None:
            on_run(run)
        if run.complaint and not run.cut_short:
            kind = "invalid_arguments" if ids and run.missing else "runtime"
            raise ToolError(kind, f"{run.complaint}: {selector}" if kind == "invalid_arguments" else run.complaint)
        return clip(summary(run), _CAP)[0]

    return Tool("run_tests", run_tests_.description, run_tests_.function, run_tests_.timeout)


tests_tool.__test__ = False  # pyright: ignore[reportFunctionMemberAccess] - for pytest, where a test imports it


def summary(run: TestRun, failures: int = 3) -> str:
    """A run in a few lines for a model.  It has no times, so that the same run reads the same."""
    names = {"passed": "passed", "failed": "failed", "error": "errors", "skipped": "skipped"}
    counts = ", ".join(f"{count} {names[name]}" for name, count in run.counts.items() if count or name != "skipped")
    bad = [name for name, outcome in run.results.items() if outcome in ("failed", "error")]
    lines = [counts, *([run.cut_short] if run.cut_short else [])]
    for name in bad[:failures]:
        lines += [f"{run.results[name].upper()} {name}", *_last_lines(run.messages.get(name, ""))]
    lines += [f"{run.results[name].upper()} {name}" for name in bad[failures : failures + 20]]
    rest = len(bad) - failures - 20
    return "\n".join(lines + ([f"... {rest} more"] if rest > 0 else []))


def _last_lines(text: str, most: int = 15) -> list[str]:
    """The end of a failure's text, where the error itself is."""
    lines = text.strip().splitlines()
    return lines if len(lines) <= most else ["...", *lines[-most:]]

"""Runs pytest on the folder it is started in, and reports each test as a line of JSON: `python child.py`.

The job is JSON on standard input (`run.py` makes it).  Reports go to what standard output was at the start, and all
that is printed to standard error.  A report begins with the job's word, so nothing that a test prints is one; code that
looks for the word in this process finds it (docs/repositories.md).  Python 3.8 or newer runs it, with pytest alone.
"""

from __future__ import annotations

import sys

if __name__ == "__main__":  # this folder would let tests import our files
    sys.path[:] = [p for p in sys.path if p != __file__.rpartition("/")[0]]

import contextlib
import json
import os
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

_MESSAGES = 50  # failures that are told with their text; the rest by name
_TEXT = 6000  # characters of one of them
_FILE = 1 << 30  # bytes: a test that writes without end fills no disk

#: Plugins that change the order, split the run or write files; absent ones are no error.
_WITHOUT = ("cacheprovider", "xdist", "randomly", "random_order", "pytest_cov", "sugar")

#: After the repository's own options, so that these win.
_OPTIONS = (
    *(word for name in _WITHOUT for word in ("-p", "no:" + name)),
    "--maxfail=0",
    "--continue-on-collection-errors",
    "--color=no",
    "--tb=short",
    "-o",
    "required_plugins=",
)


def reporter(word: str, descriptor: int) -> Any:
    """Return a function that tells of an event, from this process only: a child that a test forks has it too."""
    process = os.getpid()

    def tell(kind: str, text: str = "", **fields: str) -> None:
        data = memoryview((word + json.dumps({"kind": kind, "text": text, **fields}) + "\n").encode())
        while data and os.getpid() == process:
            data = data[os.write(descriptor, data) :]

    return tell


def recorder(tell: Any, ids: Sequence[str], own: int) -> Any:
    """Return the plugin.  `own` is how many of the arguments, at the end, are not the repository's."""
    import pytest

    hook: Any = pytest.hookimpl
    wanted = {name.rstrip("/") for name in ids}  # whole, or the beginning of others (a folder, a file, a class)

    def chosen(name: str) -> bool:
        beginnings = (name[: cut.start()] for cut in re.finditer(r"/|::|\[", name))
        return not wanted or not wanted.isdisjoint([name, ".", *beginnings])

    class Recorder:
        outcome = text = ""
        told = 0
        expected = True  # to fail, where it did so as an expected failure

        @hook(hookwrapper=True)
        def pytest_load_initial_conftests(self, parser: Any, args: list[str]) -> Iterator[None]:
            """Drop options of plugins that are not here or not wanted (`--cov`, `-n auto`): they only stop pytest."""
            yield
            unknown = set(parser.parse_known_and_unknown_args(list(args))[1])
            kept, dropped = [], False
            for word in args[:-own]:
                dropped = word in unknown if word.startswith("-") else dropped  # a value goes with its option
                kept += [] if dropped else [word]
            args[:-own] = kept

        @hook(hookwrapper=True, tryfirst=True)
        def pytest_collection_modifyitems(self, items: list[Any]) -> Iterator[None]:
            yield
            items[:] = [item for item in items if chosen(item.nodeid)]

        def pytest_collectreport(self, report: Any) -> None:
            if report.failed:
                self._final(report.nodeid, "error", report.longreprtext)
            elif report.skipped:
                self._final(report.nodeid, "skipped", "")

        @hook(hookwrapper=True, tryfirst=True)
        def pytest_runtestloop(self, session: Any) -> Iterator[None]:
            yield
            if not session.config.option.collectonly:
                tell("control", ", ".join(_controls_that_pass(session)))

        @hook(hookwrapper=True, tryfirst=True)
        def pytest_runtest_protocol(self, item: Any) -> Iterator[None]:
            self.outcome = self.text = ""
            self.expected = True
            tell("running", item.nodeid)
            try:
                yield
            finally:
                self._final(item.nodeid, self.outcome or "error", self.text)

        @hook(tryfirst=True)
        def pytest_runtest_makereport(self, item: Any, call: Any) -> None:
            self.expected = call.excinfo is None or not _from_elsewhere(item, call.excinfo)

        @hook(tryfirst=True)
        def pytest_runtest_logreport(self, report: Any) -> None:
            """Keep the worst of setup, call, teardown and subtests; the failure of an expected failure is none."""
            if report.failed:
                worst = "failed" if report.when == "call" else "error"
                self.outcome = self.outcome if self.outcome in ("failed", "error") else worst
                self.text = self.text or report.longreprtext
            elif report.skipped and self.outcome in ("", "passed"):
                expected = hasattr(report, "wasxfail") and self.expected
                self.outcome = "passed" if expected else self.outcome or "skipped"
            elif report.passed and report.when == "call" and self.outcome in ("", "skipped"):
                self.outcome = "passed"

        @hook(tryfirst=True)
        def pytest_sessionfinish(self) -> None:
            tell("finish")  # what comes now may end the process, and has no part in a test

        def _final(self, name: str, outcome: str, text: str) -> None:
            bad = outcome in ("failed", "error") and self.told < _MESSAGES
            self.told += bad
            if len(text) > _TEXT:
                text = text[: _TEXT // 3] + "\n...\n" + text[-2 * _TEXT // 3 :]
            tell("result", text if bad else "", id=name, outcome=outcome)

    return Recorder()


def _from_elsewhere(item: Any, error: Any) -> bool:
    """Return whether what is under test called `pytest.xfail()`: only a test may say that it is to fail."""
    import pytest

    if not isinstance(error.value, pytest.xfail.Exception):
        return False
    callers = [str(entry.path) for entry in error.traceback if "_pytest" not in str(entry.path)]  # none: a mark
    return bool(callers) and callers[-1] != str(item.fspath) and os.path.basename(callers[-1]) != "conftest.py"


def _fails() -> None:
    raise AssertionError("as it should be")


def _raises_nothing() -> None:
    import pytest

    with pytest.raises(KeyError):
        pass


def _asserts_in_unittest() -> None:
    import unittest

    result = unittest.TestResult()  # code under test could replace the assertions of a case, or how it is run
    unittest.FunctionTestCase(lambda: unittest.TestCase().assertEqual(1, 2)).run(result)  # noqa: PT009
    if not result.wasSuccessful():
        _fails()


_CONTROLS = {"a failed assertion": _fails, "pytest.raises": _raises_nothing, "unittest": _asserts_in_unittest}


def _controls_that_pass(session: Any) -> list[str]:
    """Return the tests that must fail and do not: it shows who has changed what runs the tests, so that all pass.

    They run as the repository's tests do, with all hooks, but only we are told.
    """
    import pytest
    from _pytest.runner import runtestprotocol

    session.obj = None  # of a test's parent, pytest before 8 asks it for a `setup` in nose's manner
    passed: list[str] = []
    for name, function in _CONTROLS.items():
        with contextlib.suppress(Exception):  # a hook that knows what to do with the repository's own tests only
            item: Any = pytest.Function.from_parent(session, name="control", callobj=function)
            item.fixturenames[:] = []  # those of the repository have nothing to do here
            item.repr_failure = str  # to put a traceback into words takes 20 ms
            reports: Any = runtestprotocol(item, log=False, nextitem=None)
            if any(report.when == "call" and (report.passed or hasattr(report, "wasxfail")) for report in reports):
                passed.append(name)
    return passed


def main() -> None:
    job = json.loads(sys.stdin.buffer.read())
    with contextlib.suppress(OSError):
        os.ftruncate(0, 0)  # a process around us may hold it open, where the code under test can see it
    reports = os.dup(1)  # not inherited by what tests start
    os.dup2(2, 1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    tell = reporter(job.pop("word"), reports)
    if job["orphan"]:  # do not outlive a host that is killed (prctl(2), PR_SET_PDEATHSIG); Linux only
        with contextlib.suppress(ImportError, OSError, AttributeError):
            import ctypes

            ctypes.CDLL(None).prctl(1, 9)
    with contextlib.suppress(ImportError, OSError, ValueError):  # a lower limit of the machine stays
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (_FILE, _FILE))
    try:
        import pytest  # before the repository's folders are searched, which may hold a file of that name
    except ImportError as error:
        tell("broken", f"{type(error).__name__}: {error}")
        return
    os.environ.update(job["env"])
    sys.path[:0] = job["path"]
    os.environ["PYTHONPATH"] = os.pathsep.join(job["path"])
    asked = sorted({os.path.normpath(name.partition("::")[0]) for name in job["ids"]})
    paths = [p for p in asked if os.path.exists(p) and not p.startswith((os.sep, os.pardir))]
    code = 5  # nothing to collect
    if paths or not job["ids"]:
        own = [*_OPTIONS, "--rootdir=" + os.getcwd(), *paths]
        code = int(pytest.main(own, plugins=[recorder(tell, job["ids"], len(own))]))
    tell("end", str(code))


if __name__ == "__main__":
    main()

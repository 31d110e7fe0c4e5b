"""Run a copy of a repository's tests with pytest in a process of its own, and tell what came of each."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Literal

from rlm_loop.repl.host.clearing import temporary
from rlm_loop.repl.host.launch import Launch
from rlm_loop.tools.processes import Finished
from rlm_loop.workspace.testing.isolation import Isolation, isolated_command, run_command

TestOutcome = Literal["passed", "failed", "error", "skipped"]


@dataclass(frozen=True)
class TestRun:
    """A run of pytest.

    `results` maps each test's node id (relative to the repository) to what came of it; a file that could not be
    collected is an `error` under its own path.  A test that was expected to fail, by its own file, has `passed`
    (as SWE-bench has it).  `messages` are the texts of the first failures.  The test that ran when the time was up or
    the interpreter ended is an `error`; those after it have no result, and `cut_short` says in a line why.
    `complaint` says why nothing ran at all; `broken` is true where that is for want of an interpreter with pytest, and
    so says nothing of the repository.

    `output` is what it printed (its middle left out beyond a cap), `place` the isolation that was in force (`plain`,
    `hardened`, `sandbox`, `container`).
    `touched` are those of the files to keep that something wrote to, moved or removed, also where they were put back.
    `distrusted` says why not to believe the results: a test that has to fail passed, or no end was told.
    """

    __test__: ClassVar[bool] = False  # no class of tests, whatever its name is

    results: Mapping[str, TestOutcome] = field(default_factory=dict[str, TestOutcome])
    output: str = ""
    complaint: str = ""
    cut_short: str = ""
    messages: Mapping[str, str] = field(default_factory=dict[str, str])
    place: str = "plain"
    broken: bool = False
    touched: tuple[str, ...] = ()
    distrusted: str = ""


_WORSE: tuple[TestOutcome, ...] = ("passed", "skipped", "failed", "error")


class Reports:
    """Collects the reports of one run, which come from the process that runs the code under test.

    So a result never improves: of two for one test the worse one counts; after the last test nothing does.
    """

    def __init__(self, word: str) -> None:
        self._word = word.encode()
        self._told: dict[str, str] = {}
        self.results: dict[str, TestOutcome] = {}
        self._messages: dict[str, str] = {}

    def hear(self, line: bytes) -> None:
        """Take a line of output; what is no report is left out."""
        told = None
        if line.startswith(self._word):
            with contextlib.suppress(ValueError, RecursionError):
                told = json.loads(line[len(self._word) :])
        match told:
            case {"kind": "result", "id": str(name), "outcome": outcome, "text": str(text)} if outcome in _WORSE:
                if "finish" not in self._told:
                    self._told["running"] = ""
                    worst = max(_WORSE.index(outcome), _WORSE.index(self.results.get(name, "passed")))
                    self.results[name] = _WORSE[worst]
                    self._messages |= {name: text} if text else {}
            case {"kind": str(kind), "text": str(text)}:
                self._told[kind] = text
            case _:
                pass

    def result(
        self, ended: Finished, command: Launch, ids: Sequence[str], folder: str, touched: tuple[str, ...]
    ) -> TestRun:
        """Return what was reported; the name of the copy, another one each time, is left out of all texts."""
        output, running = ended.output.replace(folder, "."), self._told.get("running", "")
        messages = {name: text.replace(folder, ".") for name, text in self._messages.items()}
        if (cut := self._cut(ended, f" in {running}" if running else "")) and running:
            self.results[running] = "error"
            messages[running] = cut
        return TestRun(
            results=self.results,
            output=output,
            complaint="" if self.results else self._why(output, cut, ids),
            cut_short=cut,
            messages=messages,
            place=command.kind,
            broken="broken" in self._told,
            touched=touched,
            distrusted=self._distrusted() if self.results else "",
        )

    def _distrusted(self) -> str:
        if "finish" not in self._told:
            return "the run did not come to its end, after the last test"
        fooled = self._told.get("control", "which were not run")
        return f"control tests, which have to fail, passed: {fooled}" if fooled else ""

    def _cut(self, ended: Finished, where: str) -> str:
        if ended.timed_out:
            return f"stopped after {ended.seconds:.0f} s{where}"
        if "end" not in self._told:
            status = f"signal {-ended.code}" if ended.code < 0 else f"exit status {ended.code}"
            return f"the interpreter ended early ({status}){where}"
        early = self._told["end"] in ("2", "3", "4")  # interrupted, an error of its own, settings that it cannot use
        return f"pytest ended early (exit status {self._told['end']}){where}" if early else ""

    def _why(self, output: str, cut: str, ids: Sequence[str]) -> str:
        if "broken" in self._told:
            return f"pytest does not start: {self._told['broken']}"
        if cut:
            return f"no test ran: {cut}: {output.strip()[-400:]}"
        return "no test has one of these ids" if ids else "pytest found no tests"


#: Not copied.  Byte code can be made to hide the source beside it (PEP 552, unchecked); a checkout's `.git` leads
#: back to the repository that it was made from.
LEFT_OUT = (".git", "__pycache__", ".pytest_cache", "*.pyc")


def copy_tree(source: Path, target: Path) -> None:
    """Copy the files below `source`, with modes and times; links stay links, devices and sockets are left out."""

    def copy(origin: str, to: str) -> None:
        if os.path.isfile(origin):
            shutil.copy2(origin, to)

    shutil.copytree(source, target, symlinks=True, ignore=shutil.ignore_patterns(*LEFT_OUT), copy_function=copy)


def stamps(root: Path, names: Iterable[str]) -> Mapping[str, tuple[int, int, int]]:
    """Return the inode, the ctime and the mode of each of these files; a ctime cannot be put back as a content can."""
    stamped: dict[str, tuple[int, int, int]] = {}
    for name in names:
        with contextlib.suppress(OSError):
            about = os.lstat(root / name)
            stamped[name] = (about.st_ino, about.st_ctime_ns, about.st_mode)
    return stamped


def run_tests(
    root: Path,
    ids: Sequence[str] = (),
    *,
    python: str | None = None,
    timeout: float = 300.0,
    env: Mapping[str, str] | None = None,
    place: Isolation = "auto",
    kept: Sequence[str] = (),
) -> TestRun:
    """Run the tests below `root`, all that pytest finds or those of `ids`, in a copy of the folder.

    An id is a pytest node id, or what it begins with: a folder, a file, a class, a test with all its parameters.
    `python` is the interpreter (default: this one), which needs pytest and what the repository imports; the folder
    itself, and `src` in it, come first in its search path, whatever `PYTHONPATH` is.
    `timeout` is the wall time of the whole run in seconds.  `env` is added to an environment cut down to an allow-list.
    `place` is where it runs (see `Isolation`).  `kept` names files that the run should leave as they are, or absent;
    those that it wrote to all the same are `TestRun.touched`.

    The repository's own configuration counts, but: no plugin that shuffles, splits or repeats across processes or
    measures coverage, no end at the first failure.  What a repository or its tests do is never raised.
    Raises `ReplError` where `place` does not work on this machine, and `OSError` where the folder cannot be copied or
    the process not started.
    """
    program = shutil.which(python) if python else sys.executable
    if program is None:
        return TestRun(complaint=f"there is no interpreter {python!r}: name a Python that has pytest", broken=True)
    with temporary("rlm-tests-") as home:
        copy_tree(root, home / "work")
        (home / "pytest.ini").touch()  # the search for a configuration goes upward, and ends here
        # What the tests start is known by its environment, and reports by a word that is in no environment.
        word, mark = secrets.token_hex(16), secrets.token_hex(8)
        given = dict(env or {})
        command = isolated_command(place, program, home, {**given, "RLM_LOOP_TESTS": mark})
        # `src` where packages lie in it: one that is installed in editable mode would be the original's
        source = home / "work" / "src"
        sources = [str(source)] if source.is_dir() and not (source / "__init__.py").exists() else []
        path = [str(home / "work"), *sources]
        job = {"word": word, "ids": list(ids), "path": path, "env": given, "orphan": command.kind != "container"}
        run = Reports(word)
        before = stamps(home / "work", kept)
        ended = run_command(command, home, job, timeout=timeout, on_line=run.hear, mark=f"RLM_LOOP_TESTS={mark}")
        after = stamps(home / "work", kept)
    touched = tuple(name for name in kept if after.get(name) != before.get(name))
    return run.result(ended, command, ids, str(home / "work"), touched)

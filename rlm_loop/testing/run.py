"""Run a repository's tests with pytest in a process of its own, and tell what came of each."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from rlm_loop.repl.base import ReplError
from rlm_loop.repl.limits import Limits
from rlm_loop.testing.copies import copy_tree
from rlm_loop.testing.places import Place, Placed, default_python, placed
from rlm_loop.testing.result import Outcome, TestRun
from rlm_loop.testing.watch import Watched, watch

#: A test that writes without end fills no disk.
LIMITS = Limits(file_size=1 << 30)
_OUTCOMES = ("passed", "failed", "error", "skipped")


def run_tests(
    root: Path,
    ids: Sequence[str] = (),
    *,
    python: str | None = None,
    timeout: float = 300.0,
    test_timeout: float | None = None,
    env: Mapping[str, str] | None = None,
    place: Place = "auto",
    limits: Limits = LIMITS,
    cap: int = 65536,
) -> TestRun:
    """Run the tests below `root`, all that pytest finds or those of `ids`, in a copy of the folder.

    An id is a pytest node id, or what it begins with: a folder, a file, a class, a test with all its parameters.
    `python` is the interpreter (default: this one), which needs pytest and what the repository imports; the folder
    itself, and `src` in it, come first in its search path, then a `PYTHONPATH` of `env`, relative to the folder.
    `timeout` is the wall time of the whole run in seconds, `test_timeout` that of one test, which is interrupted and
    failed; the rest goes on.  `env` is added to an environment cut down to an allow-list.  `place` is where it
    runs (see `Place`), `limits` hold for each process there, `cap` is the most bytes of output kept.

    The repository's own configuration counts, but: no plugin that shuffles, splits or repeats across processes or
    measures coverage, no end at the first failure.  What a repository or its tests do is never raised.
    Raises `ReplError` where `place` does not work on this machine, and `OSError` where the folder cannot be copied.
    """
    program = shutil.which(python) if python else default_python()
    if program is None:
        return TestRun(
            complaint=f"there is no interpreter {python!r}: give the path of a Python with pytest", broken=True
        )
    root = Path(root).resolve()
    if not root.is_dir():
        return TestRun(complaint=f"{root.name!r} is no folder: give the top of a repository")
    with tempfile.TemporaryDirectory(prefix="rlm-tests-", ignore_cleanup_errors=True) as folder:
        home = Path(folder).resolve()
        copy_tree(root, home / "work")
        (home / "pytest.ini").touch()  # the search for a configuration goes upward, and ends here
        word = secrets.token_hex(8)
        given = dict(env or {})
        asked = [p for p in given.pop("PYTHONPATH", "").split(os.pathsep) if p]
        outside = [p for p in asked if os.path.isabs(p) and os.path.exists(p)]
        command = placed(place, program, home, {**given, "RLM_LOOP_TESTS": word}, outside)
        job = {
            "word": word,
            "ids": list(ids),
            "path": [".", *_source_folders(root), *asked],
            "env": given,
            "limits": _limits(limits),
            "test_timeout": test_timeout,
            "orphan": command.kind != "container",
        }
        run = _Run(word)
        try:
            ended = watch(
                command.argv,
                cwd=home / "work",
                env=command.env,
                stdin=json.dumps(job).encode(),
                timeout=timeout,
                on_line=run.hear,
                cap=cap,
                mark=f"RLM_LOOP_TESTS={word}",
            )
        except OSError as error:
            raise ReplError(f"the tests' process cannot be started: {error}") from error
        finally:
            command.cleanup()
    return run.result(ended, command, ids, str(home / "work"))


def _source_folders(root: Path) -> list[str]:
    """`src` where the packages lie in it: one that is installed in editable mode would be the original's."""
    return ["src"] if (root / "src").is_dir() and not (root / "src" / "__init__.py").exists() else []


def _limits(limits: Limits) -> dict[str, int]:
    names = {
        "memory": "RLIMIT_DATA",
        "cpu_seconds": "RLIMIT_CPU",
        "open_files": "RLIMIT_NOFILE",
        "file_size": "RLIMIT_FSIZE",
    }
    return {names[name]: value for name, value in limits.as_options().items() if name in names}


class _Run:
    """Collects the reports of one run."""

    def __init__(self, word: str) -> None:
        self._word = word.encode()
        self.results: dict[str, Outcome] = {}
        self.messages: dict[str, str] = {}
        self._running = ""
        self._complaint = ""
        self._internal = ""
        self._end: int | None = None

    def hear(self, line: bytes) -> None:
        if not line.startswith(self._word):
            return
        try:
            told = cast("dict[str, Any]", json.loads(line[len(self._word) :]))
        except ValueError:
            return
        match told.get("kind"):
            case "start":
                self._running = str(told["id"])
            case "result" if told["outcome"] in _OUTCOMES:
                self._running = ""
                self.results[str(told["id"])] = told["outcome"]
                if told["text"]:
                    self.messages[str(told["id"])] = str(told["text"])
            case "complaint":
                self._complaint = str(told["text"])
            case "internal":
                self._internal = str(told["text"])
            case "end":
                self._end = int(told["code"])
            case _:
                pass

    def result(self, ended: Watched, command: Placed, ids: Sequence[str], folder: str) -> TestRun:
        """What was reported; the name of the copy, another one each time, is left out of all texts."""
        ended = replace(ended, output=ended.output.replace(folder, "."))
        self.messages = {name: text.replace(folder, ".") for name, text in self.messages.items()}
        cut = self._cut(ended)
        if cut and self._running:
            self.results[self._running] = "error"
            self.messages[self._running] = cut
        missing = tuple(n for n in ids if n not in self.results and not any(_answers(f, n) for f in self.results))
        return TestRun(
            results=self.results,
            seconds=ended.seconds,
            timed_out=ended.timed_out,
            output=ended.output,
            complaint="" if self.results else self._why(ended, cut, ids),
            cut_short=cut,
            messages=self.messages,
            missing=missing,
            place=command.kind,
            note=command.note,
            broken=bool(self._complaint),
        )

    def _cut(self, ended: Watched) -> str:
        where = f" in {self._running}" if self._running else ""
        if ended.timed_out:
            return f"stopped after {ended.seconds:.0f} s{where}"
        if self._end is None:
            return f"the interpreter ended early ({_status(ended.code)}){where}"
        if self._end in (2, 3):
            last = (self._internal.strip().splitlines() or ["interrupted"])[-1]
            return f"pytest ended early{where}: {last}"
        return ""

    def _why(self, ended: Watched, cut: str, ids: Sequence[str]) -> str:
        if self._complaint:
            return f"pytest does not start: {self._complaint}"
        last = next((line for line in reversed(ended.output.splitlines()) if line.strip()), "no output")
        if cut:
            return f"no test ran: {cut}: {last}"[:500]
        if self._end == 4:
            errors = [
                line for line in ended.output.splitlines() if line.startswith(("ERROR", "E ")) or "error:" in line
            ]
            return f"pytest cannot use the repository's settings: {(errors or [last])[0]}"[:500]
        return "no test has one of these ids" if ids else "pytest found no tests"


def _answers(found: str, asked: str) -> bool:
    asked = asked.rstrip("/")
    return found == asked or asked == "." or found.startswith((asked + "::", asked + "[", asked + "/"))


def _status(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit status {code}"

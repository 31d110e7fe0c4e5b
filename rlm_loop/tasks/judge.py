"""Run a solution against its tests, isolated as cells are, with limits of time and memory."""

from __future__ import annotations

import json
import math
import secrets
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rlm_loop.repl.host.clearing import temporary
from rlm_loop.repl.isolation.launchers import warn_once, weaker
from rlm_loop.repl.isolation.readable import Script
from rlm_loop.repl.worker import tasks_of_user
from rlm_loop.tasks import judge_child
from rlm_loop.tools.processes import refuse_full_disk
from rlm_loop.workspace.testing.isolation import Isolation, isolated_command, run_command
from rlm_loop.workspace.testing.run import copy_tree

MEMORY = 1 << 30  # bytes of address space: Python needs about 30 MB
PROCESSES = 256  # and threads, at one time
FILE = 1 << 20  # bytes of a file that is written

#: Apart from the machine as with -I, but for the hash seed: the order of a set must not decide a verdict.
_CHILD = Script(Path(judge_child.__file__), ("-P", "-s", "-S"))


class JudgeFailed(RuntimeError):
    """The machine did not get as far as the solution, or may not run it: nothing can be said of it."""


@dataclass(frozen=True)
class JudgeResult:
    """The verdict of tests; where they failed, `reason` is one line, and `timed_out` says that time ran out.

    `isolation` is what kept the solution apart from this machine, by the names that cells' isolation has.
    """

    passed: bool
    reason: str = ""
    timed_out: bool = False
    isolation: str = ""


def judge(
    candidates: Sequence[tuple[str, str]],
    tests: str,
    entry: str,
    *,
    given: str = "",
    timeout: float = 10.0,
    folder: str | Path | None = None,
    place: Isolation = "auto",
    cells: str = "",
) -> JudgeResult:
    """Run `check(entry)` of `tests` on the first candidate that compiles and defines `entry` at its top level.

    A candidate is source to run before (imports, helpers) and the solution's source; `given` is what the tests need
    of that (they never see the solution's own).  The solution runs in a process of its own, at `place` (see
    `testing.Isolation`), and only plain values pass between it and the tests (see `judge_child`), so that it cannot say
    of itself that it passed.  It works in a copy of `folder`, by default an empty one, and may import from it.  It
    gets the standard library only, whatever is installed, so a verdict is the same everywhere; an early exit or a
    killed process does not pass.  `timeout` is wall time in seconds, the start of the interpreter included.

    `cells` is the isolation that the attempt's cells had: the judge's is as strong, or it refuses.
    Raises `JudgeFailed` where it refuses, where the solution was never begun and where the tests hand it what has no
    plain form, `ReplError` where `place` does not work here, and `OSError` where the disk is full.
    """
    word = secrets.token_hex(8)
    limits = {
        "RLIMIT_AS": MEMORY,
        "RLIMIT_CPU": math.ceil(timeout) + 1,
        "RLIMIT_FSIZE": FILE,
        "RLIMIT_NPROC": PROCESSES + tasks_of_user(),  # the kernel counts all of the user's
        "RLIMIT_CORE": 0,
    }
    job = {
        "candidates": list(candidates),
        "given": given,
        "tests": tests,
        "entry": entry,
        "word": word,
        "importable": folder is not None,
        "limits": limits,
    }
    lines: list[bytes] = []
    with temporary("rlm-judge-") as home:
        if folder is None:
            (home / "work").mkdir()
        else:
            copy_tree(Path(folder), home / "work")
        mark = secrets.token_hex(8)  # not the word: the solution's process has it in its environment
        command = isolated_command(place, sys.executable, home, {"RLM_LOOP_JUDGE": mark}, _CHILD)
        if weaker(command.kind, cells):
            command.cleanup()
            raise JudgeFailed(
                f"the answer is not run: its cells were isolated as {cells!r}, here it would run as {command.kind!r}; "
                "`rlm-loop doctor` says what is missing and how to get it"
            )
        if command.kind == "plain" and command.note:
            warn_once(f"answers that are code are run with your rights to judge them ({command.note})")
        ends_alone = command.kind in ("sandbox", "container")  # with all that was started in it
        done = run_command(
            command,
            home,
            job,
            timeout=timeout,
            on_line=lines.append,
            mark="" if ends_alone else f"RLM_LOOP_JUDGE={mark}",
        )
    if lines[:1] != [word.encode()]:
        refuse_full_disk()
        how = f"nothing within {timeout:g} s" if done.timed_out else f"exit status {done.code}: {done.output[-200:]}"
        raise JudgeFailed(f"the judge's process did not begin ({how})")
    if done.timed_out:
        return JudgeResult(False, f"no result within {timeout:g} s", True, command.kind)
    try:
        report = json.loads(lines[1])
        reason, fault, told = str(report["reason"]), str(report["fault"]), report["word"] == word
    except (ValueError, KeyError, TypeError, IndexError):
        told, reason, fault = False, "", ""
    if not told:
        refuse_full_disk()
        return JudgeResult(False, f"the process ended without a result (exit status {done.code})", False, command.kind)
    if fault:
        raise JudgeFailed(fault)
    return JudgeResult(not reason, reason, False, command.kind)

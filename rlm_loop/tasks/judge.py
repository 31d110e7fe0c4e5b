"""Run a solution against its tests in a process of its own, with limits of time and memory."""

from __future__ import annotations

import json
import math
import secrets
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rlm_loop.processes import refuse_full_disk, run_group
from rlm_loop.tasks import judge_child

MEMORY = 1 << 30  # bytes of address space: Python needs about 30 MB


class JudgeFailed(RuntimeError):
    """The machine did not get as far as the solution: nothing can be said of it."""


@dataclass(frozen=True)
class Verdict:
    """Whether the tests passed; if not, `reason` is one line of why, and `timed_out` whether time ran out."""

    passed: bool
    reason: str = ""
    timed_out: bool = False


def judge(
    candidates: Sequence[tuple[str, str]],
    tests: str,
    entry: str,
    *,
    timeout: float = 10.0,
    folder: str | Path | None = None,
) -> Verdict:
    """Run `check(entry)` of `tests` on the first candidate that compiles and defines `entry` at its top level.

    A candidate is source to run before (imports, helpers) and the solution's source.  `folder` is where it runs
    and may import from; by default an empty temporary one.  The solution gets the standard library only, whatever
    is installed, so a verdict is the same everywhere; an early exit or a killed process does not pass.  `timeout`
    is wall time in seconds, the start of the interpreter included.

    Raises `JudgeFailed` where the solution was never begun, and `OSError` where the disk is full.
    """
    nonce = secrets.token_hex(8)
    job = {
        "candidates": list(candidates),
        "tests": tests,
        "entry": entry,
        "nonce": nonce,
        "importable": folder is not None,
        "memory": MEMORY,
        "seconds": math.ceil(timeout) + 1,
    }
    with tempfile.TemporaryDirectory(prefix="rlm-judge-") as empty:
        # Apart from the machine as with -I, but for the hash seed: the order of a set must not decide a verdict.
        argv = [sys.executable, "-P", "-s", "-S", judge_child.__file__]
        given = json.dumps(job).encode()
        done = run_group(argv, cwd=folder or empty, timeout=timeout, env={"PYTHONHASHSEED": "0"}, stdin=given)
    begun, _, output = done.output.partition("\n")
    if begun != nonce:
        refuse_full_disk()
        how = f"nothing within {timeout:g} s" if done.timed_out else f"exit status {done.code}: {done.output[-200:]}"
        raise JudgeFailed(f"the judge's process did not begin ({how})")
    if done.timed_out:
        return Verdict(False, f"no result within {timeout:g} s", True)
    try:
        report = json.loads(output)
        reason = str(report["reason"])
        told = report["nonce"] == nonce
    except (ValueError, KeyError, TypeError):
        told, reason = False, ""
    if not told:
        refuse_full_disk()
        return Verdict(False, f"the process ended without a result (exit status {done.code})")
    return Verdict(not reason, reason)

"""The child side of `judge`: runs a solution against its tests and reports one JSON line.  Standard library only.

It guards against accidents (endless memory, network, deleted files, an early exit), not against attacks.
"""

from __future__ import annotations

import json
import linecache
import os
import random
import re
import sys
import traceback
from typing import Any

#: Audit events that no solution of a coding exercise has a reason for.
_REFUSED = ("socket.", "subprocess.", "os.system", "os.fork", "os.exec", "os.posix_spawn", "os.kill", "os.remove",
            "os.rename", "os.rmdir", "os.chmod", "os.chown", "shutil.", "ctypes.")  # fmt: skip


def main() -> None:
    job: dict[str, Any] = json.loads(sys.stdin.buffer.read())
    report = os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):  # prints of the solution are neither shown nor mixed with the report
        os.dup2(nothing, descriptor)
    os.write(report, f"{job['nonce']}\n".encode())  # from here on it is the solution that is to blame
    _limit(int(job["memory"]), int(job["seconds"]))
    try:
        reason = _run(job)
    except BaseException as error:  # a solution may exit, or raise whatever it likes
        reason = _explain(error)
    os.write(report, json.dumps({"nonce": job["nonce"], "reason": reason[:500]}).encode())
    os._exit(0)  # threads that the solution left behind do not matter


def _run(job: dict[str, Any]) -> str:
    entry, chosen = job["entry"], None
    defines = re.compile(rf"^(async\s+def|def|class)\s+{entry}\b|^{entry}\s*(:.*)?=", re.MULTILINE)
    problem = f"no function {entry} in the answer"
    for before, source in job["candidates"]:
        if defines.search(source):
            try:
                chosen = chosen or (compile(before, "<given>", "exec"), compile(source, "<solution>", "exec"))
            except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
                problem = _explain(error)
    if chosen is None:
        return problem
    linecache.cache["<tests>"] = (len(job["tests"]), None, job["tests"].splitlines(True), "<tests>")
    if job["importable"]:
        sys.path.insert(0, os.getcwd())
    sys.addaudithook(_refuse)
    random.seed(0)  # some tests draw their cases: the same ones every time
    names: dict[str, Any] = {"__name__": "solution"}
    for part in (*chosen, compile(job["tests"], "<tests>", "exec")):
        exec(part, names)
    names["check"](names[entry])
    return ""


def _refuse(event: str, _: tuple[Any, ...]) -> None:
    if event.startswith(_REFUSED):
        raise PermissionError(f"{event} is not allowed here")


def _limit(memory: int, seconds: int) -> None:
    try:
        import resource
    except ImportError:  # not on Windows
        return
    for name, value in (("RLIMIT_AS", memory), ("RLIMIT_CPU", seconds), ("RLIMIT_FSIZE", 1 << 20), ("RLIMIT_CORE", 0)):
        try:
            resource.setrlimit(getattr(resource, name), (value, value))
        except (ValueError, OSError, AttributeError):  # macOS has no limit of address space
            continue


def _explain(error: BaseException) -> str:
    """One line: the exception, and the line of the tests that met it."""
    try:
        text = " ".join(f"{type(error).__name__}: {error}".split()).removesuffix(":")
    except Exception:  # an exception whose own text raises
        text = type(error).__name__
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == "<tests>"]
    return f"{text} at: {frames[-1].line}" if frames else text


if __name__ == "__main__":
    main()

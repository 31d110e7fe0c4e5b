"""What all drivers share: a JSON job comes in, a JSON result goes out.  Standard library only.

A job has `url` and `key` of the metered endpoint, the `model` name to ask for, the `task` text, `steps` (most model
calls), `max_tokens` of a reply (`null`: not said), `temperature` and `seed` (`null`: not said), `tool` (see `tool_of`)
and `observation` (what the tool `look` returns).  A job with a `context` is a question about a long text, which goes
where the framework takes one; `depth` is how deep sub-calls may go, where the framework lets one say.  The current
folder is the job's own.
"""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Job = dict[str, Any]

#: Characters of output that a tool shows at most.
MOST = 4000


def read() -> Job:
    """The job: a JSON text as the argument, or else on stdin."""
    return json.loads(sys.argv[1] if len(sys.argv) > 1 else sys.stdin.read())


def main(play: Callable[[Job], dict[str, Any]], package: str) -> None:
    """Run one job and print its result; what the framework prints goes to stderr, its exceptions into the result."""
    job, out = read(), sys.stdout
    sys.stdout = sys.stderr
    began = time.perf_counter()
    try:
        done = play(job)
    except BaseException as error:  # a row with the reason, whatever it is
        done = {"answer": None, "error": f"{type(error).__name__}: {' '.join(str(error).split())[:400]}"}
    row = {"answer": None, "error": None, "reported_input_tokens": None, **done}
    row["answer"] = None if row["answer"] is None else str(row["answer"])
    row["seconds"] = round(time.perf_counter() - began, 4)
    row["version"] = _version(package)
    print(json.dumps(row), file=out, flush=True)


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:  # ours, from a working tree
        return None


def look_of(job: Job) -> Callable[[int], str]:
    """The tool of the scripted session: it returns the same text each time."""
    text = job["observation"]

    def look(number: int) -> str:
        """Look at a record.

        Args:
            number: The number of the record.

        Returns:
            The text of the record.
        """
        return text

    return look


def python(code: str) -> str:
    """Run Python code and return what it prints.

    Args:
        code: The code; use print() to see values.

    Returns:
        What the code printed.
    """
    try:
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=20)
    except subprocess.TimeoutExpired:
        return "stopped after 20 s"
    return (done.stdout + done.stderr)[-MOST:] or "(nothing was printed)"


def shell(command: str) -> str:
    """Run a shell command in the folder of the task and return its output.

    Args:
        command: The command.

    Returns:
        What the command printed.
    """
    try:
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60)
    except subprocess.TimeoutExpired:
        return "stopped after 60 s"
    return (done.stdout + done.stderr)[-MOST:] or "(nothing was printed)"


def tool_of(job: Job) -> Callable[..., str]:
    """The one tool of a framework that calls functions: `look`, `python` or `shell`."""
    return {"look": look_of(job), "python": python, "shell": shell}[job["tool"]]


def tools_beside_code(job: Job) -> list[Callable[..., str]]:
    """What a framework that runs code is given besides its own interpreter: the shell, where the task needs it."""
    return [shell] if job["tool"] == "shell" else []


def sampling(job: Job) -> dict[str, Any]:
    """The sampling settings that the job states, by their names in the chat API."""
    return {key: job[key] for key in ("temperature", "seed", "max_tokens") if job.get(key) is not None}


def record(job: Job) -> None:
    """The observation as a file, for a framework that has a shell and nothing else."""
    Path("record.txt").write_text(job["observation"] + "\n", encoding="utf-8")

"""The isolation of a repository's tests: one of those that cells have, or a plain process."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from rlm_loop.repl.base import ReplError
from rlm_loop.repl.host.launch import Launch
from rlm_loop.repl.isolation.container import Container
from rlm_loop.repl.isolation.launchers import Hardened, Sandbox
from rlm_loop.repl.isolation.readable import Script
from rlm_loop.tools.processes import Finished, child_environment, watch

Isolation = Literal["auto", "plain", "hardened", "sandbox"] | Hardened | Sandbox | Container
"""`auto` is the strongest that works here: a sandbox, else hardened, else plain."""

TESTS = Script(Path(__file__).with_name("child.py"))


def isolated_command(
    place: Isolation, python: str, home: Path, env: Mapping[str, str], read: Sequence[str] = (), script: Script = TESTS
) -> Launch:
    """Return the command that runs a script in `home/work`, for `run_command`.

    `env` is added to the environment, `read` to the folders that may be read.
    Raises `ReplError` where a place that was asked for does not work here, `ValueError` for an unknown name.
    """
    script = replace(script, env=env)
    options = {"path": [str(home / "work")], "home": str(home)}
    named = {"auto": (Sandbox(), Hardened()), "sandbox": (Sandbox(),), "hardened": (Hardened(),), "plain": ()}
    if isinstance(place, str) and place not in named:
        raise ValueError(f"place must be auto, plain, hardened, sandbox, or an object such as Container, got {place!r}")
    reasons: list[str] = []
    for launcher in named[place] if isinstance(place, str) else (place,):
        try:
            if not (problem := launcher.problem(python)):
                return replace(launcher, read=(*launcher.read, *read))(python, options, script)
        except ReplError as error:
            problem = str(error)
        reasons.append(f"{launcher.kind}: {problem}")
    if place not in ("auto", "plain"):
        raise ReplError(f"code cannot run there ({'; '.join(reasons)}); use another place")
    return replace(_plain(python, home, script), note=f"not isolated: {'; '.join(reasons)}" if reasons else "")


def run_command(command: Launch, home: Path, job: Mapping[str, Any], **options: Any) -> Finished:
    """Run it with a job, JSON on its standard input, and clear up after it; `options` are those of `watch`."""
    given = json.dumps(job).encode()
    try:
        return watch(command.argv, cwd=home / "work", env=command.env, stdin=given, **options)
    finally:
        command.cleanup()


def _plain(python: str, home: Path, script: Script) -> Launch:
    temporary = home / "tmp"
    temporary.mkdir(exist_ok=True)
    own = {"HOME": str(temporary), "TMPDIR": str(temporary), "PYTHONIOENCODING": "utf-8", "PYTHONHASHSEED": "0"}
    given = {**child_environment(), **own}
    del given["PYTHONDONTWRITEBYTECODE"]  # the folder is a copy
    return Launch((python, *script.flags, str(script.file)), {**given, **(script.env or {})}, "plain")

"""The isolation of a repository's tests: one of those that cells have, or a plain process."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from rlm_loop.repl.base import ReplError
from rlm_loop.repl.host.launch import Launch
from rlm_loop.repl.isolation.container import Container
from rlm_loop.repl.isolation.launchers import Hardened, Sandbox
from rlm_loop.repl.isolation.readable import Script
from rlm_loop.tools.processes import Finished, watch

Isolation = Literal["auto", "plain", "hardened", "sandbox"] | Hardened | Sandbox | Container
"""`auto` is the strongest that works here: a sandbox, else hardened, else plain."""

TESTS = Script(Path(__file__).with_name("child.py"))


def isolated_command(
    place: Isolation, python: str, home: Path, env: Mapping[str, str], script: Script = TESTS
) -> Launch:
    """Return the command that runs a script in `home/work`, for `run_command`; `env` is added to its environment.

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
                return launcher(python, options, script)
        except ReplError as error:
            problem = str(error)
        reasons.append(f"{launcher.kind}: {problem}")
    if place not in ("auto", "plain"):
        raise ReplError(f"code cannot run there ({'; '.join(reasons)}); use another place")
    temporary = home / "tmp"
    temporary.mkdir(exist_ok=True)
    argv = (python, *script.flags, str(script.file))
    note = f"not isolated: {'; '.join(reasons)}" if reasons else ""
    return Launch(argv, script.environment(str(temporary)), "plain", note)


def run_command(command: Launch, home: Path, job: Mapping[str, Any], **options: Any) -> Finished:
    """Run it with a job, JSON on its standard input, and clear up after it; `options` are those of `watch`."""
    try:
        return watch(command.argv, cwd=home / "work", env=command.env, stdin=json.dumps(job).encode(), **options)
    finally:
        command.cleanup()

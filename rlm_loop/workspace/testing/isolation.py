"""Where a repository's tests run: in one of the isolations that cells have, or as a plain process."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from rlm_loop.repl.base import ReplError
from rlm_loop.repl.host.launch import Launch, isolated_environment
from rlm_loop.repl.host.launch import script as byte_code
from rlm_loop.repl.isolation.container import Container
from rlm_loop.repl.isolation.hardened import Hardened
from rlm_loop.repl.isolation.readable import HARDEN, readable
from rlm_loop.repl.isolation.sandbox import Sandbox
from rlm_loop.tools.processes import Finished, child_environment, watch

Isolation = Literal["auto", "plain", "hardened", "sandbox"] | Hardened | Sandbox | Container
"""`auto` is the strongest that works here: a sandbox, else hardened, else plain."""

CHILD = Path(__file__).with_name("child.py")
_INSIDE = "/rlm-loop-script.py"  # where a container has it


@dataclass(frozen=True)
class Script:
    """What is run: a file, which needs nothing beside it, and the interpreter's options."""

    file: Path = CHILD
    options: tuple[str, ...] = ("-u",)


TESTS = Script()


def isolated_command(
    place: Isolation, python: str, home: Path, env: Mapping[str, str], read: Sequence[str] = (), script: Script = TESTS
) -> Launch:
    """Return the command that runs a script in `home/work`, for `run_command`.

    `env` is added to the environment, `read` to the folders that may be read.
    Raises `ReplError` where a place that was asked for does not work here, `ValueError` for an unknown name.
    """
    if not isinstance(place, str):
        if problem := place.problem(python):
            raise ReplError(f"code cannot run there: {problem}")
        return _placed(place, python, home, env, read, script)
    if place == "plain":
        return _plain(python, home, env, script)
    launchers = [kind() for kind in (Sandbox, Hardened) if place in ("auto", kind.kind)]
    if not launchers:
        raise ValueError(f"no place is called {place!r}; there are: auto, plain, hardened, sandbox, or Container(...)")
    reasons: list[str] = []
    for launcher in launchers:
        try:
            if not (problem := launcher.problem(python)):
                return _placed(launcher, python, home, env, read, script)
        except ReplError as error:
            problem = str(error)
        reasons.append(f"{launcher.kind}: {problem}")
    if place != "auto":
        raise ReplError(f"code cannot run there ({'; '.join(reasons)}); use another place")
    return replace(_plain(python, home, env, script), note="not isolated: " + "; ".join(reasons))


def run_command(command: Launch, home: Path, job: Mapping[str, Any], **options: Any) -> Finished:
    """Run it with a job, JSON on its standard input, and clear up after it; `options` are those of `watch`."""
    given = json.dumps(job).encode()
    try:
        return watch(command.argv, cwd=home / "work", env=command.env, stdin=given, **options)
    finally:
        command.cleanup()


def _plain(python: str, home: Path, env: Mapping[str, str], script: Script) -> Launch:
    temporary = home / "tmp"
    temporary.mkdir(exist_ok=True)
    own = {"HOME": str(temporary), "TMPDIR": str(temporary), "PYTHONIOENCODING": "utf-8", **_FIXED}
    given = {**child_environment(), **own}
    del given["PYTHONDONTWRITEBYTECODE"]  # the folder is a copy
    return Launch((python, *script.options, str(script.file)), {**given, **env}, "plain")


def _placed(
    place: Hardened | Sandbox | Container,
    python: str,
    home: Path,
    env: Mapping[str, str],
    read: Sequence[str],
    script: Script,
) -> Launch:
    work = home / "work"
    options = json.dumps({"path": [str(work)], "home": str(home)})
    if isinstance(place, Container):
        words = tuple(word for name, value in env.items() for word in ("--env", f"{name}={value}"))
        given = replace(place, read=(*place.read, *read), options=(*place.options, *words))
        argv, environment, cleanup = given.command(options, [(script.file, _INSIDE)])
        return Launch((*argv, place.python, *script.options, _INSIDE), environment, place.kind, "", cleanup)
    place = replace(place, read=(*place.read, *read))
    harden, run = (byte_code(file, python, options) for file in (HARDEN, script.file))
    if isinstance(place, Hardened):
        confined = replace(place, read=(*place.read, script.file)).confinement(python, options)
        argv = (python, *script.options, harden, json.dumps(confined.rights), run)
        return Launch(argv, {**_cleared(confined.env), **env}, place.kind, confined.note)
    environment = isolated_environment("/tmp")
    needed = readable(python, _cleared(environment), place.read)
    command = place.command(work, home, needed, [harden, run], [python, *script.options])
    return Launch(tuple(command), {**_cleared(environment), **env}, place.kind)


#: Made once: the same order of sets, whoever starts it.
_FIXED = {"PYTHONHASHSEED": "0"}


def _cleared(env: Mapping[str, str]) -> dict[str, str]:
    """Leave out the search path of this process: tests import the repository's modules and the interpreter's."""
    return {**{name: value for name, value in env.items() if name != "PYTHONPATH"}, **_FIXED}


def default_python() -> str:
    """Return the interpreter of this process."""
    return sys.executable or "python3"

"""The other projects: what is installed for each, in an environment of its own in the user's cache folder."""

from __future__ import annotations

import fcntl
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from platformdirs import user_cache_path

from experiments.robustness.suite.world import with_search_path

HERE = Path(__file__).resolve().parent

#: What is installed for each; what that needs is pinned in `constraints/`.
PEERS = {
    "rlms": ("rlms==0.1.3",),
    "smolagents": ("smolagents==1.26.0",),
    "dspy": ("dspy==3.4.1", "deno==2.9.8"),
    "dspy_local": ("dspy==3.4.1", "deno==2.9.8"),
    "mellea": ("mellea==0.8.0",),
}

_PROBE_SECONDS = 180


@dataclass(frozen=True)
class Offer:
    """What an adapter says of its project: its features, whether it has a loop over code, the longest that an endless
    cell may take in seconds (`None`: it has no time limit), and why it cannot be run here (empty: it can)."""

    features: frozenset[str]
    loops: bool
    bound: float | None
    problem: str = ""


def command_for(name: str) -> list[str]:
    """The command that hosts a case for a project; installs it first.  Raises `RuntimeError` where that fails."""
    return [str(environment(name) / "bin" / "python"), str(HERE / "adapters" / "host.py"), name]


def environment(name: str) -> Path:
    """The project's environment, made where it is missing or older than what is pinned."""
    project = name.partition("_")[0]
    pins = HERE / "constraints" / f"{project}.txt"
    return environment_in(user_cache_path("rlm-loop") / "robustness" / project, PEERS[name], pins)


def environment_in(folder: Path, packages: tuple[str, ...], pins: Path) -> Path:
    """An environment in this folder with these packages, what they need pinned as the file says; made where it is
    missing or older than that.  Raises `RuntimeError` where it cannot be made."""
    wanted = "\n".join(packages) + "\n" + pins.read_text("utf-8")
    ready = folder / "installed.txt"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _alone(folder.with_suffix(".lock")):  # several may share one, and run side by side
        if not ready.exists() or ready.read_text("utf-8") != wanted:
            print(f"installing {' '.join(packages)} into {folder} ...", file=sys.stderr)
            _install(folder, packages, pins)
            ready.write_text(wanted, "utf-8")
    return folder


def _install(folder: Path, packages: tuple[str, ...], pins: Path) -> None:
    made = _run([sys.executable, "-m", "venv", "--clear", str(folder)])
    if made.returncode:
        last = _last(made, "no message")
        raise RuntimeError(f"no environment could be made in {folder} ({last}): install Python's venv (python3-venv)")
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    done = _run([*pip, "-c", str(pins), *packages])
    if done.returncode:
        what = " ".join(packages)
        raise RuntimeError(
            f"{what} could not be installed ({_last(done, 'pip failed')}): check that `pip download --no-deps"
            f" {packages[0]}` finds it in your package index, then run this again"
        )


def offer_of(name: str, command: list[str]) -> Offer:
    """Ask the adapter, in the project's environment.  Raises `RuntimeError` where it does not even start."""
    try:
        done = _run([*command, "--probe"], env=with_search_path(), timeout=_PROBE_SECONDS)
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"the adapter for {name} was not ready after {_PROBE_SECONDS} s") from None
    if done.returncode:
        raise RuntimeError(f"the adapter for {name} does not start ({_last(done, 'no message')})")
    said: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return Offer(frozenset(said["features"]), said["loops"], said["bound"], said["problem"])


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    with lock.open("w") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        yield


def _run(argv: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL, **options)


def _last(done: subprocess.CompletedProcess[str], otherwise: str) -> str:
    lines = [line for line in (done.stderr.strip() or done.stdout.strip()).splitlines() if "notice" not in line]
    errors = [line for line in lines if line.startswith("ERROR")] or lines
    return errors[-1].removeprefix("ERROR: ") if errors else otherwise

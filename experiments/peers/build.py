"""Make the environments of the other frameworks: each of its own, from the package index, with pinned versions.

    python experiments/peers/build.py [--peers rlms,dspy_rlm] [--cache FOLDER]

What is there already is kept.  A framework that cannot be installed is named with the reason, and the others go on.
"""

from __future__ import annotations

import argparse
import fcntl
import subprocess
import sys
from pathlib import Path

from contenders import Contender, chosen
from platformdirs import user_cache_path

CACHE = user_cache_path("rlm-loop") / "peers"


def python_of(one: Contender, cache: Path) -> Path:
    """The Python of a framework's environment, made where it is missing.  Raises `RuntimeError` where it cannot be."""
    return environment_in(cache / one.environment, one.packages, one.pins) / "bin" / "python"


def environment_in(folder: Path, packages: tuple[str, ...], pins: Path) -> Path:
    """Return a folder's environment with these packages and pins, made if missing or older.  Raises `RuntimeError`."""
    wanted = "\n".join(packages) + "\n" + pins.read_text("utf-8")
    ready = folder / "installed.txt"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:  # several may share one, and run side by side
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not ready.exists() or ready.read_text("utf-8") != wanted:
            print(f"installing {' '.join(packages)} into {folder} ...", file=sys.stderr)
            _run(sys.executable, "-m", "venv", "--clear", str(folder))
            _run(str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "-c", str(pins), *packages)
            ready.write_text(wanted, "utf-8")
    return folder


def _run(*argv: str) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        lines = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()
        raise RuntimeError(f"`{' '.join(argv)}` failed: {next((x for x in lines if x.startswith('ERROR')), lines[-1])}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--peers", default="", help="names, separated by commas (default: all)")
    parser.add_argument("--cache", type=Path, default=CACHE, help="folder of the environments")
    options = parser.parse_args()
    for one in chosen(options.peers):
        if not one.ours:
            try:
                print(f"{one.name}: {python_of(one, options.cache)}")
            except RuntimeError as error:
                print(f"{one.name}: {error}", file=sys.stderr)


if __name__ == "__main__":
    main()

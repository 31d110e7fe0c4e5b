"""Break each promise in a copy of the package, and see its tests fail.

    python tests/repl/mutants.py [LINE ...] [--timeout SECONDS]

Takes a minute or two on an idle machine.  Ends with status 1 where a mutant survives, or where the text that it
changes is not there (any more) exactly once.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(Path(__file__).parent), str(ROOT), str(ROOT / "tests" / "robustness")]
from semantics_table import PROMISES, Mutant, Promise  # noqa: E402
from suite.world import marked  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("lines", nargs="*", help="lines of the table, such as 17; default: all that have a mutant")
    parser.add_argument("--timeout", type=float, default=300, help="seconds for the tests of one mutant")
    given = parser.parse_args()
    bad = 0
    for entry in PROMISES:
        if entry.mutant is None or (given.lines and entry.line not in given.lines):
            continue
        verdict = _try(entry, entry.mutant, given.timeout)
        bad += not verdict.startswith("killed")
        print(f"{entry.line:<7} {verdict:<40} {entry.says}", flush=True)
    return 1 if bad else 0


def _try(entry: Promise, mutant: Mutant, timeout: float) -> str:
    with tempfile.TemporaryDirectory(prefix="mutant-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        for part in ("rlm_loop", "tests"):
            shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", folder)
        files = [p for p in (folder / "rlm_loop").rglob("*.py") if mutant.old in p.read_text("utf-8")]
        if len(files) != 1 or files[0].read_text("utf-8").count(mutant.old) != 1:
            return f"the text is in {len(files)} files"
        files[0].write_text(files[0].read_text("utf-8").replace(mutant.old, mutant.new), "utf-8")
        tests = [f"tests/{t}" for t in entry.tests if "conftest" not in t]
        env = {**os.environ, "PYTHONPATH": name, "PYTHONDONTWRITEBYTECODE": "1"}
        argv = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
        run = subprocess.Popen(argv, cwd=folder, env=env, stdout=subprocess.PIPE, text=True, start_new_session=True)
        try:
            out, _ = run.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(run.pid, 9)
            run.communicate()
            return "killed (the tests hang)"
        finally:
            for pid in marked(folder.name):  # a mutant may well leave processes behind
                with contextlib.suppress(OSError):
                    os.kill(pid, 9)
        last = (out.strip().splitlines() or ["no output"])[-1]
        told = [line for line in out.splitlines() if line.startswith(("FAILED ", "ERROR ")) and "::" in line]
        if run.returncode != 1 or not told:
            return f"SURVIVED: {last}"
        return "killed by " + told[0].split("::", 1)[1].split(" - ")[0]


if __name__ == "__main__":
    sys.exit(main())

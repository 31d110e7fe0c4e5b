"""What judging a patch costs beside running the same tests with pytest directly.

    python benchmarks/evaluation.py [--tests 300] [--work 0.02] [--files 500] [--rounds 3] [--place plain sandbox]

Makes a repository whose suite takes about `tests * work` seconds of processor time, and takes turns: pytest by itself
in a checkout that is there already, then `evaluate`, which makes the checkout, applies a patch, brings the tests back,
copies, isolates, and runs them.  Prints the median of wall and of processor seconds (this process and all it
started), each with its ratio to pytest's; on a machine that does other work, only the latter say something.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from rlm_loop.workspace import Workspace
from rlm_loop.workspace.evaluation import evaluate

TESTS = """import time
import pytest
from pkg import answer

@pytest.mark.parametrize("n", range({count}))
def test_work(n):
    end = time.process_time() + {work}
    while time.process_time() < end:
        pass
    assert answer() == 42
"""


def repository(tests: int, work: float, files: int) -> dict[str, str | bytes]:
    """A package with a bug, a suite that finds it, and modules of 4 kB around."""
    made: dict[str, str | bytes] = {
        "pkg/__init__.py": "def answer():\n    return 41\n",
        "tests/test_work.py": TESTS.format(count=tests, work=work),
    }
    body = "".join(f"def f{n}(x):\n    return x + {n}\n\n\n" for n in range(100))
    return made | {f"pkg/part{n // 50}/module{n}.py": body for n in range(files)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tests", type=int, default=300)
    parser.add_argument("--work", type=float, default=0.02)
    parser.add_argument("--files", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--place", nargs="+", default=["plain", "hardened", "sandbox"])
    given = parser.parse_args()
    files = repository(given.tests, given.work, given.files)
    with Workspace(files) as space:
        (space.root / "pkg" / "__init__.py").write_text("def answer():\n    return 42\n")
        patch = space.diff()
    ids = [f"tests/test_work.py::test_work[{n}]" for n in range(given.tests)]
    spent: dict[str, list[tuple[float, float]]] = {name: [] for name in ("pytest", *given.place)}
    with tempfile.TemporaryDirectory() as folder:
        for name, content in files.items():
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        Path(folder, "pkg", "__init__.py").write_text("def answer():\n    return 42\n")
        for _ in range(given.rounds):
            spent["pytest"].append(direct(folder))
            for place in given.place:
                spent[place].append(judged(files, patch, ids, place))
    base = medians(spent["pytest"])
    for name, seconds in spent.items():
        wall, cpu = medians(seconds)
        print(f"{name:10} wall {wall:6.2f} s, x {wall / base[0]:.3f}   processor {cpu:6.2f} s, x {cpu / base[1]:.3f}")


def medians(spent: list[tuple[float, float]]) -> tuple[float, float]:
    return statistics.median(wall for wall, _ in spent), statistics.median(cpu for _, cpu in spent)


def clocks() -> tuple[float, float]:
    times = os.times()
    return time.perf_counter(), times.user + times.system + times.children_user + times.children_system


def since(began: tuple[float, float]) -> tuple[float, float]:
    now = clocks()
    return now[0] - began[0], now[1] - began[1]


def direct(folder: str) -> tuple[float, float]:
    began = clocks()
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"]
    subprocess.run(argv, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return since(began)


def judged(files: dict[str, str | bytes], patch: str, ids: list[str], place: Any) -> tuple[float, float]:
    began = clocks()
    found = evaluate(lambda: Workspace(files), patch, fail_to_pass=ids, pass_to_pass=(), place=place)
    spent = since(began)
    if not found.resolved or found.place != place:
        raise SystemExit(f"the tests did not pass in {place}: {found.reason}")
    return spent


if __name__ == "__main__":
    main()

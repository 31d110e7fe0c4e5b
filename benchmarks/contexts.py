"""What a context of 1 GB costs: the host's memory, and the time until the first cell has run.

    python benchmarks/contexts.py [--bytes 1000000000] [--kind subprocess] [--cold]

Prints, for a file and for a text of the host: by how much the host's memory grew at most, as a part of the context
(`VmHWM` of Linux; it is to be below 0.05), and the seconds to the end of the first cell beside those of reading the
file once (the difference is to be below 0.5).  `untouched` cells do not name the context, `read` ones take its length
and its end.  With `--cold` the file is dropped from the page cache before each measurement.  Each line is measured
in a process of its own, after a small run that does the imports.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rlm_loop import Budget, ToolLoopAgent
from rlm_loop.models import ScriptedModel
from rlm_loop.repl import open_repl

LINE = b"2024-01-02T10:00:00.000Z;host-17;GET /index.html;200;failed;0.125\n"
CELLS = {"untouched": "print(1)", "read": "print(len(context), context[-20:])"}


def make(path: Path, size: int) -> None:
    block = LINE * (1_000_000 // len(LINE) + 1)
    with path.open("wb") as f:
        while (left := size - f.tell()) > 0:
            f.write(block[:left])
        f.flush()
        os.fsync(f.fileno())


def forget(path: Path) -> None:
    """Drop a file from the page cache."""
    with path.open("rb") as f:
        os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def reading(path: Path) -> float:
    """Seconds to read the file once."""
    began = time.perf_counter()
    with path.open("rb", buffering=0) as f:
        while f.read(1 << 20):
            pass
    return time.perf_counter() - began


def memory(which: str) -> int:
    """Bytes of this process's memory: `VmRSS` now, `VmHWM` the most since `forget_most`."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(which + ":"):
            return int(line.split()[1]) << 10
    raise SystemExit(f"this needs Linux: /proc/self/status has no {which}")


def forget_most() -> None:
    """Let `VmHWM` begin anew; see proc(5)."""
    Path("/proc/self/clear_refs").write_text("5")


def one(path: Path, given: str, cell: str, kind: str, cold: bool) -> None:
    """Measure one case in this process, and print its line."""
    once = reading(path)
    if cold:
        forget(path)
        once = reading(path)
    times: list[float] = []

    def repl() -> object:
        session = open_repl(kind, timeout=600)
        run = session.run

        def timed(code: str, *, timeout: float | None = None) -> object:
            result = run(code, timeout=timeout)
            times.append(time.perf_counter() - began)
            return result

        session.run = timed  # type: ignore[method-assign]
        return session

    model = ScriptedModel([f"```python\n{CELLS[cell]}\n```", "```python\nfinal_answer = 1\n```"])
    agent = ToolLoopAgent(model=model, repl=repl, budget=Budget(steps=3), cell_timeout=600.0)  # type: ignore[arg-type]
    warm = ToolLoopAgent(model=ScriptedModel(["```python\nfinal_answer = 1\n```"]), repl=kind)
    warm.run("Q?", context="a" * 10)  # imports and the first start are no part of it
    context = path if given == "file" else path.read_text()
    if cold:
        forget(path)
    forget_most()
    before = memory("VmRSS")
    began = time.perf_counter()
    outcome = agent.run("Q?", context=context)
    whole = time.perf_counter() - began
    grown = max(0, memory("VmHWM") - before) / path.stat().st_size
    assert outcome.answer == 1, outcome
    print(
        f"{given:5} {cell:9}  host memory +{grown:6.3f} of it   first cell {times[0]:6.2f} s"
        f" = reading once ({once:5.2f} s) {times[0] - once:+6.2f} s   whole run with hash {whole:6.2f} s",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--bytes", type=int, default=1_000_000_000)
    parser.add_argument("--kind", default="subprocess")
    parser.add_argument("--cold", action="store_true")
    parser.add_argument("--one", nargs=3, metavar=("FILE", "GIVEN", "CELL"), help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.one:
        one(Path(chosen.one[0]), chosen.one[1], chosen.one[2], chosen.kind, chosen.cold)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "context.log"
        make(path, chosen.bytes)
        for given in ("file", "value"):
            for cell in CELLS:
                words = ["--kind", chosen.kind, *(["--cold"] if chosen.cold else []), "--one", str(path), given, cell]
                subprocess.run([sys.executable, __file__, *words], check=True)


if __name__ == "__main__":
    main()

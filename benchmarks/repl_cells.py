"""What a cell costs: the REPL's round trip beside `exec` in this process.

    python benchmarks/repl_cells.py [--cells 2000]

Prints minimum and median.  The process costs what it buys: it can be interrupted, killed and replaced.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

from rlm_loop.repl import PythonREPL


def timed(work: Callable[[], object], times: int) -> list[float]:
    """Seconds of each call."""
    spent: list[float] = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        spent.append(time.perf_counter() - began)
    return spent


def show(what: str, seconds: list[float], unit: float, name: str) -> None:
    low, middle = min(seconds) * unit, statistics.median(seconds) * unit
    print(f"{what:<44} {low:9.1f} {middle:9.1f} {name}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", type=int, default=2000)
    cells = parser.parse_args().cells

    namespace: dict[str, object] = {}
    inside = timed(lambda: exec("x = 1", namespace), cells)
    firsts: list[float] = []
    for _ in range(5):
        began = time.perf_counter()
        with PythonREPL(launcher="plain") as repl:
            repl.run("x = 1")
            firsts.append(time.perf_counter() - began)
    with PythonREPL(launcher="plain", grace=0.1) as repl:
        repl.add_tools({"tool": lambda x: x})
        repl.run("x = 1")
        assign = timed(lambda: repl.run("x = 1"), cells)
        printing = timed(lambda: repl.run("print(x)"), cells)
        repl.run("def many(n):\n    for _ in range(n): tool(1)")
        began = time.perf_counter()
        repl.run(f"many({cells})")
        per_call = [(time.perf_counter() - began) / cells]
        repl.run("import os")
        restart = timed(lambda: (repl.run("import os; os._exit(0)"), repl.run("x = 1")), 10)
        text = "0123456789abcde\n" * (100_000_000 // 16)
        big = timed(lambda: repl.set("context", text), 1)

    print(f"{'':<44} {'min':>9} {'median':>9}")
    show("exec in this process", inside, 1e6, "us")
    show("cell: x = 1", assign, 1e6, "us")
    show("cell: print(x)", printing, 1e6, "us")
    show("call of a host tool, inside one cell", per_call, 1e6, "us")
    show("first result of a new session", firsts, 1e3, "ms")
    show("death, fresh REPL and its first result", restart, 1e3, "ms")
    show("100 MB of text into a variable", big, 1e3, "ms")
    print(f"ratio of a cell to exec, medians: {statistics.median(assign) / statistics.median(inside):.0f}")


if __name__ == "__main__":
    main()

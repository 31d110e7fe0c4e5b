"""Measure what a fresh REPL costs: plain and isolated, beside `exec` here and an IPython kernel.

    python benchmarks/repl_start.py [--starts 10] [--cells 500] [--launcher auto] [--no-kernel]

It prints the minimum and the median of one run.  The kernel needs `pip install jupyter_client ipykernel`; without
them it is left out.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import time
from collections.abc import Callable

from rlm_loop.repl import PythonREPL

CELL = "x = 1"


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


def starts(make: Callable[[], PythonREPL], times: int) -> list[float]:
    """Seconds from nothing to the first result."""
    spent: list[float] = []
    for _ in range(times):
        began = time.perf_counter()
        with make() as repl:
            repl.run(CELL)
            spent.append(time.perf_counter() - began)
    return spent


def kernel(times: int, cells: int) -> tuple[list[float], list[float]] | None:
    """The same with `jupyter_client`: a kernel's first result, and its round trip."""
    try:
        from jupyter_client.manager import start_new_kernel
    except ImportError:
        return None
    firsts: list[float] = []
    trips: list[float] = []
    for _ in range(times):
        began = time.perf_counter()
        manager, client = start_new_kernel()
        client.execute_interactive(CELL, output_hook=lambda _: None)
        firsts.append(time.perf_counter() - began)
        if not trips:
            trips = timed(lambda c=client: c.execute_interactive(CELL, output_hook=lambda _: None), cells)
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    return firsts, trips


def byte_and_back(times: int) -> list[float]:
    """Seconds for one byte to a child process and back: what any exchange with another process costs here.

    A cell makes this way once.
    """
    there, here = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        os.close(there[1])  # so that it ends with this process
        while byte := os.read(there[0], 1):
            os.write(here[1], byte)
        os._exit(0)
    try:

        def once() -> None:
            os.write(there[1], b"x")
            os.read(here[0], 1)

        return timed(once, times)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        for fd in (*there, *here):
            os.close(fd)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--starts", type=int, default=10)
    parser.add_argument("--cells", type=int, default=500)
    parser.add_argument("--launcher", default="auto", help="the launcher to compare with plain; auto is the default")
    parser.add_argument("--no-kernel", action="store_true", help="leave out the IPython kernel, which takes longest")
    given = parser.parse_args()

    namespace: dict[str, object] = {}
    floor = byte_and_back(given.cells)
    inside = timed(lambda: exec(CELL, namespace), given.cells)
    with PythonREPL(launcher="plain") as repl:
        repl.run(CELL)
        plain_cell = timed(lambda: repl.run(CELL), given.cells)
    with PythonREPL(launcher=given.launcher) as repl:  # the first one of a process tries bubblewrap out
        trial = timed(lambda: repl.run(CELL), 1)
        other_cell = timed(lambda: repl.run(CELL), given.cells)
        kind = repl.isolation
    plain: list[float] = []
    other: list[float] = []
    for _ in range(given.starts):  # in turn, so that both meet the same machine
        plain += starts(lambda: PythonREPL(launcher="plain"), 1)
        other += starts(lambda: PythonREPL(launcher=given.launcher), 1)
    jupyter = None if given.no_kernel else kernel(max(1, given.starts // 5), max(10, given.cells // 10))
    text = "0123456789abcde\n" * (100_000_000 // 16)
    with PythonREPL(launcher="plain") as repl:
        repl.run(CELL)
        big = timed(lambda: repl.set("context", text), 1)
        after = timed(lambda: repl.run(CELL), 1)

    print(f"{'':<44} {'min':>9} {'median':>9}")
    show("a byte to another process and back", floor, 1e6, "us")
    show("cell: exec in this process", inside, 1e6, "us")
    show("cell: plain", plain_cell, 1e6, "us")
    show(f"cell: {kind}", other_cell, 1e6, "us")
    if jupyter:
        show("cell: ipykernel", jupyter[1], 1e6, "us")
    show("first result: plain", plain, 1e3, "ms")
    show(f"first result: {kind}", other, 1e3, "ms")
    show(f"first result: {kind}, first in its process", trial, 1e3, "ms")
    if jupyter:
        show("first result: ipykernel", jupyter[0], 1e3, "ms")
    show("100 MB of ASCII into a variable", big, 1e3, "ms")
    show("the cell after it", after, 1e3, "ms")


if __name__ == "__main__":
    main()

"""Does a long session grow?  Many cells and many restarts in one session: descriptors, threads and memory.

    python benchmarks/repl_soak.py [--cells 10000] [--restarts 500] [--rebuild]

Prints them before, half-way and after, for this process and for the worker's supervisor.  The journal keeps each cell
that ran (some hundred bytes), so the host grows by that.  With `--rebuild` every restart runs all earlier cells
again; without, variables are given up, and what is measured is the machinery alone.
"""

from __future__ import annotations

import argparse
import gc
import os
import threading
import time
from pathlib import Path

from rlm_loop.repl import PythonREPL


def state(pid: int) -> dict[str, int]:
    """Descriptors, threads, resident kB and child processes of a process, from Linux's /proc."""
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return {
        "descriptors": len(os.listdir(f"/proc/{pid}/fd")),
        "threads": int(status["Threads"]),
        "rss_kb": int(status["VmRSS"].split()[0]),
        "children": len(children),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", type=int, default=10_000)
    parser.add_argument("--restarts", type=int, default=500)
    parser.add_argument("--rebuild", action="store_true")
    given = parser.parse_args()
    every = max(1, given.cells // max(1, given.restarts))

    began, restarts, asked = time.monotonic(), 0, 0

    def tool(n: int) -> int:
        nonlocal asked
        asked += 1
        return n

    with PythonREPL(launcher="plain", grace=0.2, rebuild=given.rebuild) as repl:
        repl.add_tools({"tool": tool})
        repl.set("context", "text" * 1000)
        supervisor = repl.get("__import__('os').getppid()")

        def show(when: str) -> None:
            gc.collect()
            print(f"{when:<10} host {state(os.getpid())}  supervisor {state(supervisor)}", flush=True)

        for i in range(given.cells):
            if i == min(100, given.cells // 10):
                show("warm")
            if i == given.cells // 2:
                show("half-way")
            if i % every == every - 1 and restarts < given.restarts:
                restarts += 1
                assert repl.run("import os; os._exit(1)").error == "died"
            assert repl.run(f"n = tool({i})\nprint(n, len(context))").output.endswith(f"{i} 4000\n")
        show("after")
        assert repl.get("__import__('os').getppid()") == supervisor, "the supervisor was replaced"
    print(f"{given.cells} cells, {restarts} restarts, {asked} tool calls in {time.monotonic() - began:.1f} s")
    print(f"left behind: {threading.active_count() - 1} threads, folder {'kept' if repl_folder(repl) else 'removed'}")


def repl_folder(repl: PythonREPL) -> bool:
    """Whether the closed session's folder is still there."""
    home = repl._life.owned._home  # pyright: ignore[reportPrivateUsage]
    return home is not None and home.exists()


if __name__ == "__main__":
    main()

"""Does a long session grow?  Many cells and many restarts in one session: descriptors, threads and memory.

    python benchmarks/repl_soak.py [--cells 10000] [--restarts 500] [--launcher KIND] [--journal N] [--rebuild]
                                   [--json FILE]

Prints them four times (warm, one third, two thirds, after): for this process, and summed over the processes that it
started for the session.  The journal keeps each cell that ran, so the host grows by about a kB for each up to the
journal's own bound of 64 million characters; `--journal CHARACTERS` sets a smaller one, to see what else grows.  With
`--rebuild` every restart runs all earlier cells again; without, variables are given up, and what is measured is the
machinery alone.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import threading
import time
from pathlib import Path

from rlm_loop.repl import PythonREPL, journal

Figures = dict[str, int]


def figures(pids: list[int]) -> Figures:
    """Processes, descriptors, threads, and resident and private kB, summed; from Linux's /proc."""
    found = dict.fromkeys(("processes", "descriptors", "threads", "rss_kb", "private_kb"), 0)
    for pid in pids:
        status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        memory = [line.split() for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]]
        found["processes"] += 1
        found["descriptors"] += len(os.listdir(f"/proc/{pid}/fd"))
        found["threads"] += int(status["Threads"])
        found["rss_kb"] += int(status["VmRSS"].split()[0])
        found["private_kb"] += sum(int(row[1]) for row in memory if row[0].startswith("Private_"))
    return found


def below(pid: int) -> list[int]:
    """All processes that a process started, and those that they started."""
    found: list[int] = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, path.read_text().split()):
            found += [child, *below(child)]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", type=int, default=10_000)
    parser.add_argument("--restarts", type=int, default=500)
    parser.add_argument("--launcher", default="plain")
    parser.add_argument("--journal", type=int)
    parser.add_argument("--rebuild", action="store_true")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    every = max(1, given.cells // max(1, given.restarts))
    shown: dict[str, dict[str, Figures]] = {}
    points = {min(100, given.cells // 10): "warm", given.cells // 3: "one third", 2 * given.cells // 3: "two thirds"}

    if given.journal is not None:
        journal._MOST = given.journal  # pyright: ignore[reportPrivateUsage]
    began, restarts, asked = time.monotonic(), 0, 0

    def tool(n: int) -> int:
        nonlocal asked
        asked += 1
        return n

    with PythonREPL(grace=0.2, rebuild=given.rebuild, launcher=given.launcher, timeout=600) as repl:
        repl.add_tools({"tool": tool})
        repl.set("context", "text" * 1000)
        repl.start()
        first = below(os.getpid())[0]

        def show(when: str) -> None:
            repl.get("1")  # what a restart began is over
            gc.collect()
            shown[when] = {"host": figures([os.getpid()]), "session": figures(below(os.getpid()))}
            print(f"{when:<11} host {shown[when]['host']}\n{'':<11} session {shown[when]['session']}", flush=True)

        for i in range(given.cells):
            if i in points:
                show(points[i])
            if i % every == every - 1 and restarts < given.restarts:
                restarts += 1
                assert repl.run("import os; os._exit(1)").error == "died"
            assert repl.run(f"n = tool({i})\nprint(n, len(context))").output.endswith(f"{i} 4000\n")
        show("after")
        assert below(os.getpid())[0] == first, "the supervisor was replaced"
        home = repl.cwd.parent
    seconds = time.monotonic() - began
    print(f"{given.cells} cells, {restarts} restarts, {asked} tool calls in {seconds:.1f} s")
    left = {
        "threads": threading.active_count() - 1,
        "processes": len(below(os.getpid())),
        "folders": int(home.exists()),
    }
    print(f"left behind: {left}")
    if given.json:
        about = {"cells": given.cells, "restarts": restarts, "seconds": round(seconds, 1), "launcher": given.launcher}
        about["journal"] = given.journal
        machine = {"python": platform.python_version(), "system": platform.release(), "processors": os.cpu_count()}
        given.json.write_text(json.dumps({**about, **machine, "figures": shown, "left": left}, indent=1) + "\n")


if __name__ == "__main__":
    main()

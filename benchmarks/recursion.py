"""What sub-calls cost beyond the model: the wall time of a batch, and the host's own work for one call.

    python benchmarks/recursion.py [--calls 200] [--concurrency 32] [--times 5] [--json FILE]

A model that sleeps 100 ms answers a batch from a cell of a real REPL; ideal is the number of rounds times 100 ms, and
the target is 1.15 times that.  A model that answers at once is asked one call after the other, from the host (target:
1 ms each, with thread, budget, ledger, and trace in memory) and from a cell (with the way to the worker and back).
Each figure is the median of the runs.  Measure on a quiet machine.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import time
from pathlib import Path

from rlm_loop import Budget, ToolLoopAgent
from rlm_loop.accounting.budget import Account
from rlm_loop.accounting.ledger import Ledger
from rlm_loop.agents import SubCalls
from rlm_loop.agents.meter import Meter
from rlm_loop.agents.subcalls import Recursion, SubcallRunner, query_tools
from rlm_loop.messages import Prompt, Reply, Usage
from rlm_loop.models import Model
from rlm_loop.outcome import Outcome
from rlm_loop.traces.trace import Trace

SLEEP = 0.1
TIMED = "import time\nbegan = time.perf_counter()\n{}\nfinal_answer = time.perf_counter() - began"


class Script(Model):
    """The root writes one cell; whoever else is asked sleeps and says yes."""

    name = "script"

    def __init__(self, cell: str, seconds: float) -> None:
        self._cell, self._seconds = cell, seconds

    def complete(self, prompt: Prompt, *, max_tokens: int | None = None) -> Reply:
        text = prompt.messages[-1].text
        if text.startswith("p"):
            if self._seconds:
                time.sleep(self._seconds)
            return Reply("yes", usage=Usage(5, 1, 0))
        return Reply(f"```python\n{self._cell}\n```", usage=Usage(5, 1, 0))


def in_cell(cell: str, seconds: float, concurrency: int) -> float:
    """Seconds that a cell measured."""
    agent = ToolLoopAgent(
        model=Script(TIMED.format(cell), seconds), budget=Budget(), subcalls=SubCalls(concurrency=concurrency)
    )
    outcome = agent.run("Measure.", context="x")
    if not outcome.answered:
        raise SystemExit(f"the cell failed: {outcome.turns[-1].observations[-1].text}")
    return float(outcome.answer)


def on_host(calls: int) -> float:
    """Seconds of one `llm_query` of the host, model excluded."""

    def no_agent(*_: object) -> Outcome:
        raise AssertionError

    trace, recursion = Trace(), Recursion(SubCalls(concurrency=8), Budget())
    trace.start()
    metered = Meter(Script("", 0.0), Account(Budget()), Ledger(), trace, slots=recursion.calls)
    query, _ = query_tools(SubcallRunner(metered, recursion, no_agent))
    begin = time.perf_counter()
    for i in range(calls):
        query(f"prompt {i}")
    return (time.perf_counter() - begin) / calls


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--calls", type=int, default=200, help="sub-calls of a batch (default 200)")
    parser.add_argument("--concurrency", type=int, default=32, help="calls at once (default 32)")
    parser.add_argument("--times", type=int, default=5, help="runs of each (default 5)")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    options = parser.parse_args()
    n, wide, times = options.calls, options.concurrency, options.times
    ideal = math.ceil(n / wide) * SLEEP
    batch = f"llm_query_batched([f'p{{i}}' for i in range({n})])"
    pool = (
        "from concurrent.futures import ThreadPoolExecutor\n"
        f"with ThreadPoolExecutor({wide}) as p: list(p.map(llm_query, [f'p{{i}}' for i in range({n})]))"
    )
    single = f"for i in range({n}): llm_query(f'p{{i}}')"
    wall = statistics.median(in_cell(batch, SLEEP, wide) for _ in range(times))
    threads = statistics.median(in_cell(pool, SLEEP, wide) for _ in range(times))
    host = statistics.median(on_host(n) for _ in range(times))
    cell = statistics.median(in_cell(single, 0.0, wide) / n for _ in range(times))
    print(f"{n} calls of {SLEEP * 1000:.0f} ms, {wide} at once; ideal {ideal:.2f} s; median of {times}")
    print(f"llm_query_batched in a cell   {wall:.3f} s   {wall / ideal:.2f} x ideal (target 1.15)")
    print(f"llm_query in threads of it    {threads:.3f} s   {threads / ideal:.2f} x ideal")
    print(f"one llm_query on the host     {1000 * host:.2f} ms (target 1)")
    print(f"one llm_query from a cell     {1000 * cell:.2f} ms")
    if options.json:
        seconds = {"ideal": ideal, "batch": wall, "threads": threads, "host_call": host, "cell_call": cell}
        options.json.write_text(json.dumps({"python": sys.version.split()[0], "seconds": seconds}, indent=1) + "\n")


if __name__ == "__main__":
    main()

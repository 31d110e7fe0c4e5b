"""What the harness itself costs: milliseconds a turn, the model excluded.

    python benchmarks/harness_time.py [--turns 20] [--times 7] [--json FILE]
    python benchmarks/harness_time.py --http [--turns 25] [--times 3] [--peers rlms,dspy_rlm] [--json FILE]

A scripted model answers at once, so everything that is measured is ours: prompt, budget, ledger, trace, reading
the reply, the action, and its way back.  The action is a trivial cell: as a code block (`ToolLoopAgent`) or through
a tool call (`LeanAgent`, `ReActAgent`).  Starting the REPL is not in a turn and is reported on its own.  Each figure
is the median of the runs.  Measure on a quiet machine: a busy neighbour doubles these figures.

With `--http` our loops and other frameworks take turns at the same scripted endpoint on the loopback, ours through our
OpenAI-compatible model; the others need their environments (`python experiments/peers/build.py`).  The figure is the
time from a reply to the next request, so an HTTP client and the action are in it, and the endpoint is not
(`experiments/peers/times.py`).
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rlm_loop import Budget, LeanAgent, Outcome, ReActAgent, ToolLoopAgent
from rlm_loop.models import ScriptedModel


def replies(turns: int, write: Callable[[int], str], last: str) -> list[str]:
    return [*(write(i) for i in range(turns - 1)), last]


def code(i: int) -> str:
    return f"```python\nx = {i}\nprint(x)\n```"


def call(i: int) -> str:
    return json.dumps({"name": "python", "arguments": {"code": f"x = {i}\nprint(x)"}})


def react(i: int) -> str:
    return f'Thought: step {i}.\nAction: python\nAction Input: {{"code": "x = {i}\\nprint(x)"}}'


ARMS: dict[str, tuple[Any, Callable[[int], str], str]] = {
    "ToolLoopAgent": (ToolLoopAgent, code, "```python\nfinal_answer = x\n```"),
    "LeanAgent": (LeanAgent, call, '{"name": "final_answer", "arguments": {"answer": 1}}'),
    "ReActAgent": (ReActAgent, react, 'Thought: done.\nAction: finish\nAction Input: {"answer": 1}'),
}


def measure(name: str, turns: int, trace: Path | None) -> dict[str, float]:
    """Seconds of one run: of a middle turn (median, mean) and of everything outside the turns."""
    kind, write, last = ARMS[name]
    model = ScriptedModel(replies(turns, write, last), name="local:scripted")
    begin = time.perf_counter()
    outcome: Outcome = kind(model=model, budget=Budget(steps=None, tool_failures=None)).run("Count.", trace=trace)
    whole = time.perf_counter() - begin
    if outcome.steps != turns or outcome.stop != "answered":
        raise SystemExit(f"{name}: {outcome.stop} after {outcome.steps} of {turns} turns ({outcome.reason})")
    each = [turn.seconds for turn in outcome.turns[1:]]  # the first turn starts the REPL
    return {"median": statistics.median(each), "mean": statistics.mean(each), "outside": whole - sum(each)}


def over_http(options: argparse.Namespace) -> None:
    """Our loops beside other frameworks, each in its own process."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "experiments" / "peers"))
    from times import main as run_beside  # type: ignore[import-not-found]

    given = {"--turns": options.turns, "--rounds": options.times, "--peers": options.peers or None}
    given |= {"--cache": options.cache, "--out": options.json}
    run_beside([word for name, value in given.items() if value is not None for word in (name, str(value))])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--turns", type=int, help="turns of a run (default 20, the default limit of steps; HTTP: 25)")
    parser.add_argument("--times", type=int, help="runs of each (default 7, plus one that is not counted; HTTP: 3)")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    parser.add_argument("--http", action="store_true", help="over HTTP, beside other frameworks")
    parser.add_argument("--peers", default="", help="with --http: which, separated by commas (default: all, and ours)")
    parser.add_argument("--cache", type=Path, help="with --http: the folder of the environments")
    options = parser.parse_args()
    if options.http:
        over_http(options)
        return
    options.turns, options.times = options.turns or 20, options.times or 7
    rows: dict[str, dict[str, float]] = {}
    print(f"{options.turns} turns a run, {options.times} runs; milliseconds")
    print(f"{'':<32}{'a turn (median)':>16}{'a turn (mean)':>16}{'start and end':>16}")
    with tempfile.TemporaryDirectory() as folder:
        for name in ARMS:
            for kept in (False, True):
                file = Path(folder) / f"{name}.jsonl" if kept else None
                runs = [measure(name, options.turns, file) for _ in range(options.times + 1)][1:]
                row = {key: 1000 * statistics.median(r[key] for r in runs) for key in runs[0]}
                label = f"{name}{', trace on disk' if kept else ''}"
                rows[label] = row
                print(f"{label:<32}{row['median']:>16.2f}{row['mean']:>16.2f}{row['outside']:>16.1f}")
    if options.json:
        options.json.write_text(json.dumps({"python": sys.version.split()[0], "ms": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()

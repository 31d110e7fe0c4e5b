"""What it costs to read every prompt whole: recorded runs asked again, with the prompt cache and without.

    python benchmarks/prompt_cache.py [--model local] [--runs 6] [--json FILE]

The prompts are those of committed runs with three calls or more (`experiments/noise_floor/results`), each call with a
reply no longer than the recorded one.  A run is asked with the cache and right afterwards without, so the ratio is of
one machine at one time.  Loading is excluded.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path

from rlm_loop.messages import Prompt
from rlm_loop.models import LocalModel
from rlm_loop.study import load_study

RESULTS = Path(__file__).resolve().parents[1] / "experiments" / "noise_floor" / "results"
Calls = Sequence[tuple[Prompt, int]]


def recorded(most: int) -> list[tuple[str, Calls]]:
    """Runs of at least three calls at equal distances: the arm, and each prompt with the tokens of its reply."""
    results = load_study(RESULTS)
    rows = [row for row in results.rows if row["calls"] >= 3]
    chosen = [rows[index * len(rows) // most] for index in range(min(most, len(rows)))]
    return [
        (row["arm"], [(call[1], call[2].usage.output_tokens or 1) for call in results.trace(row).calls()])
        for row in chosen
    ]


def seconds(model: LocalModel, calls: Calls) -> tuple[float, int]:
    """How long the calls took one after another, and the prompt tokens that were read."""
    begin, read = time.perf_counter(), 0
    for prompt, most in calls:
        usage = model.complete(prompt, max_tokens=most).usage
        read += (usage.input_tokens or 0) - (usage.cached_tokens or 0) if usage else 0
    return time.perf_counter() - begin, read


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--model", default="local")
    parser.add_argument("--runs", type=int, default=6)
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    options = parser.parse_args()
    cached, whole = LocalModel(options.model), LocalModel(options.model, prompt_cache=False)
    cached.load()
    rows = []
    for arm, calls in recorded(options.runs):
        (with_cache, some), (without, all_of_it) = seconds(cached, calls), seconds(whole, calls)
        rows.append({"arm": arm, "calls": len(calls), "read": [some, all_of_it], "seconds": [with_cache, without]})
        print(
            f"{arm:>14} {len(calls):>3} calls: {some:,} or {all_of_it:,} tokens read, "
            f"{with_cache:.1f} or {without:.1f} s",
            flush=True,
        )
    read, took = ([sum(row[name][side] for row in rows) for side in (0, 1)] for name in ("read", "seconds"))
    print(
        f"without the cache: {read[1] / read[0]:.1f} times the tokens read, {took[1] / took[0]:.2f} times the seconds"
    )
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()

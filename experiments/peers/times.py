"""Harness time: milliseconds between a reply of the scripted endpoint and the next request, framework by framework.

    python experiments/peers/times.py [--peers dspy_rlm,ours_code] [--turns 25] [--rounds 3] [--cache FOLDER]

The same session as in `overhead.py`, over HTTP on the loopback.  What is measured is all that a framework does with a
reply: reading it, the action itself, the next prompt, its HTTP client.  The meter's own work is not in it.  The loops
take turns, `rounds` times, so that a busy moment meets them all; the figure is the median of all turns, start-up
excluded.  Measure on a quiet machine.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from build import CACHE
from contenders import HERE, Contender, chosen
from driving import drive
from overhead import job_of
from records import keep, rows_of
from tables import times_table
from wire_session import session

from rlm_loop.meter import metered_endpoint
from rlm_loop.models import ScriptedModel
from rlm_loop.report import write_between

RESULTS = HERE / "results" / "times.jsonl"


def turns_of(one: Contender, turns: int, cache: Path) -> tuple[list[float], str]:
    """The milliseconds of each turn of one session, the first excluded, and why there are none."""
    model = ScriptedModel([step.reply for step in session(one.form, turns)])
    with metered_endpoint(model) as url:
        try:
            problem = drive(one, job_of(one, url, turns + 5), cache)["error"]
        except RuntimeError as error:
            problem = str(error)
        found = url.meter.times()
    times = [1000 * float(seconds) for seconds in found["harness_seconds"].dropna()][1:turns]
    return times, problem or ("" if len(times) == turns - 1 else f"it stopped after {len(times) + 1} turns")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--peers", default="", help="names, separated by commas (default: all)")
    parser.add_argument("--turns", type=int, default=25)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cache", type=Path, default=CACHE, help="folder of the environments")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    contenders = chosen(options.peers)
    times: dict[str, list[float]] = {one.name: [] for one in contenders}
    problems: dict[str, str] = {}
    for number in range(options.rounds):
        for one in contenders:
            if one.name not in problems:
                found, problem = turns_of(one, options.turns, options.cache)
                times[one.name] += found
                if problem:
                    problems[one.name] = problem
                print(f"round {number + 1}: {one.name} {problem}", file=sys.stderr)
    for one in contenders:
        keep(options.out, row_of(one, times[one.name], problems.get(one.name), options.turns, options.rounds))
    table = times_table(rows_of(options.out))
    if options.out == RESULTS:
        write_between(HERE / "tables.md", "times", table)
    print(table)


def row_of(one: Contender, times: Sequence[float], problem: str | None, turns: int, rounds: int) -> dict[str, Any]:
    """A framework's figures in milliseconds: median, quartiles, least."""
    row: dict[str, Any] = {"peer": one.name, "turns": turns, "rounds": rounds, "error": problem}
    if len(times) > 1 and not problem:
        low, middle, high = statistics.quantiles(times, n=4)
        figures = {"median": middle, "low": low, "high": high, "least": min(times)}
        row |= {key: round(value, 3) for key, value in figures.items()}
    return row


if __name__ == "__main__":
    main()

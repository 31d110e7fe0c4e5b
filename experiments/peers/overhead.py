"""The same scripted session through every framework: what each adds to the prompts, in tokens of our local model.

    python experiments/peers/overhead.py [--peers rlms,ours_code] [--turns 25] [--cache FOLDER] [--again]

Writes a line a framework to `results/overhead.jsonl`, with the tokens of each call, and the table to the README.  What
is there and whole is not run again; `--again` does.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from attribution import CAUSES, attribute
from build import CACHE
from contenders import HERE, Contender, chosen
from counter import FileCounter
from driving import drive
from records import keep, rows_of
from tables import overhead_table, whole
from wire_session import OBSERVATION, TASK, Step, session

from rlm_loop.meter import metered_endpoint
from rlm_loop.models import LocalModel, Model, ScriptedModel, weights
from rlm_loop.report import write_between

RESULTS = HERE / "results" / "overhead.jsonl"


def job_of(one: Contender, url: str, steps: int) -> dict[str, Any]:
    """The job of the scripted session; nothing is said about sampling."""
    return {
        "url": url,
        "key": f"key-{one.name}",
        "model": "metered",
        "task": TASK,
        "observation": OBSERVATION,
        "tool": "look" if one.calls_functions else "none",
        "steps": steps,
    }


def measured(one: Contender, turns: int, counter: Model, cache: Path) -> dict[str, Any]:
    """One framework's session: its tokens call by call and cause by cause, or why there are none."""
    steps = session(one.form, turns)
    if not one.sends_calls_back:
        steps = [step.without_calls() for step in steps]
    model = ScriptedModel([step.reply for step in steps])
    with metered_endpoint(model, counter=counter) as url:
        try:
            done = drive(one, job_of(one, url, turns + 5), cache)
        except RuntimeError as error:
            done = {"answer": None, "error": str(error)}
        billed = [int(n) for n in url.meter.times()["input_tokens"].dropna()]
    row: dict[str, Any] = {"peer": one.name, "turns": turns, "packages": list(one.packages)}
    row |= {key: done.get(key) for key in ("error", "answer", "version", "reported_input_tokens")}
    return row | causes_by_call(model, steps, counter, billed)


def causes_by_call(
    model: ScriptedModel, steps: Sequence[Step], counter: Model, billed: Sequence[int]
) -> dict[str, Any]:
    """Tokens of each call by cause; `unfound` is what of the session the framework did not show again."""
    tokens: dict[str, list[int]] = {cause: [] for cause in CAUSES}
    unfound: list[str] = []
    for number, prompt in enumerate(model.prompts):
        found = attribute(prompt, steps[:number])
        unfound += [f"call {number + 1}: {what}" for what in found.missing]
        parts = counter.measure(found.prompt) or ()
        for cause in CAUSES:
            tokens[cause].append(sum(part.tokens for part in parts if part.cause in (cause, *_ALSO.get(cause, ()))))
    sums = [sum(of) for of in zip(*tokens.values(), strict=True)]
    return {
        "calls": len(model.prompts),
        "tokens": tokens,
        "billed": list(billed),
        "agrees": sums == list(billed),
        "unfound": unfound[:3],
    }


_ALSO = {"reply": ("assistant",)}
"""Calls that are sent back as calls are charged to the assistant by the measuring of a prompt."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--peers", default="", help="names, separated by commas (default: all)")
    parser.add_argument("--turns", type=int, default=25)
    parser.add_argument("--cache", type=Path, default=CACHE, help="folder of the environments")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--again", action="store_true", help="run what is there and whole, too")
    parser.add_argument("--exact", action="store_true", help="count with the loaded model, which needs its memory")
    options = parser.parse_args()
    # Only the template and the tokenizer of the model are used.
    counter = LocalModel(context_size=512) if options.exact else FileCounter(weights.path("local"))
    kept = {row["peer"] for row in rows_of(options.out) if not whole(row) and row["turns"] == options.turns}
    for one in chosen(options.peers):
        if one.name in kept and not options.again:
            continue
        began = time.perf_counter()
        row = measured(one, options.turns, counter, options.cache)
        keep(options.out, row)
        problem = row["error"] or "; ".join(row["unfound"])
        took = f"({time.perf_counter() - began:.1f} s)"
        print(f"{one.name}: {row['calls']} calls", problem, took, file=sys.stderr)
    table = overhead_table(rows_of(options.out))
    if options.out == RESULTS:
        write_between(HERE / "README.md", "overhead", table)
    print(table)


if __name__ == "__main__":
    main()

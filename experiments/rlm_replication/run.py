"""Every arm on every task, through the meter: python experiments/rlm_replication/run.py --model local

One row an arm and task is added to `--out`; a second run goes on where the first stopped.  The question and the
method are in README.md.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent))
sys.path.append(str(Path(__file__).resolve().parents[1] / "peers"))
sys.path.append(str(Path(__file__).resolve().parents[2]))

from arms import ARMS, BASELINE, Arm, chosen
from build import CACHE
from driving import drive
from records import append, rows_of

from rlm_loop.meter import metered_endpoint
from rlm_loop.models import LocalModel, Model, get_model
from rlm_loop.report import Table, write_between
from rlm_loop.study.statistics import newcombe_interval, paired_table
from rlm_loop.tasks import Attempt, Task, get_suite

HERE = Path(__file__).resolve().parent
#: In the manner of RULER: one needle, several, variables that are traced.  In that of OOLONG: counts, pairs, labels.
SHAPES = {"needle": "RULER", "needles": "RULER", "chain": "RULER", "records": "OOLONG", "pairs": "OOLONG"} | {
    "classify": "OOLONG"
}
LIMIT = 900.0
"""Seconds for one task."""


def tasks_of(families: Sequence[str], sizes: Sequence[str], tasks: int) -> list[tuple[str, Task]]:
    """`tasks` of the test split of each family and size, with the suite's name."""
    names = [f"long_context/{family}@{size}/test" for size in sizes for family in families]
    return [(name, task) for name in names for task in get_suite(name, tasks=2 * tasks).tasks[:tasks]]


def attempt(arm: Arm, task: Task, model: Model, options: argparse.Namespace) -> dict[str, Any]:
    """One task by one arm, scored; what it spent is the meter's count, sub-calls included."""
    began = time.perf_counter()
    job = {
        "key": f"key-{arm.name}",
        "model": "metered",
        "task": task.question,
        "context": task.material(),
        "depth": arm.depth,
        "observation": "",
        "tool": "none",
        "steps": options.steps,
        "max_tokens": options.max_tokens,
        "temperature": 0.0,
        "seed": 0,
    }
    with metered_endpoint(model) as url, tempfile.TemporaryDirectory(prefix="rlm-") as made:
        try:
            done = drive(arm.loop, {**job, "url": url}, options.cache, Path(made), LIMIT)
        except RuntimeError as error:
            done = {"answer": None, "error": str(error)}
        spent = url.meter.times()
    answer = done.get("answer")
    score = task.judge(Attempt(answer, answered=answer is not None))
    return {
        "resolved": score.resolved,
        "answer": str(answer)[:200],
        "error": done.get("error"),
        "version": done.get("version"),
        "calls": len(spent),
        "input_tokens": int(spent["input_tokens"].fillna(0).sum()),
        "output_tokens": int(spent["output_tokens"].fillna(0).sum()),
        "seconds": round(time.perf_counter() - began, 1),
    }


def table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Each arm against `BASELINE` on the tasks that both tried."""
    by_arm: dict[str, dict[tuple[str, str], Mapping[str, Any]]] = {}
    for row in rows:
        by_arm.setdefault(row["arm"], {})[row["suite"], row["task"]] = row
    base = by_arm.get(BASELINE, {})
    lines: list[list[str]] = []
    for arm in [a.name for a in ARMS if a.name in by_arm]:
        mine = by_arm[arm]
        both = sorted(mine.keys() & base.keys())
        here, there = ([float(bool(of[k]["resolved"])) for k in both] for of in (mine, base))
        low, high = newcombe_interval(*paired_table(here, there)) if both else (0.0, 0.0)
        against = (
            f"{100 * (sum(here) - sum(there)) / len(both):+.0f} [{100 * low:+.0f}, {100 * high:+.0f}]" if both else ""
        )
        shapes = [_resolved(mine, shape) for shape in ("RULER", "OOLONG")]
        spent = [f"{sum(r[c] for r in mine.values()) / len(mine):,.0f}" for c in ("input_tokens", "output_tokens")]
        calls = f"{sum(r['calls'] for r in mine.values()) / len(mine):.1f}"
        lines.append([arm, *shapes, "" if arm == BASELINE else against, *spent, calls])
    columns = ["arm", "RULER-shaped", "OOLONG-shaped", f"points against {BASELINE} [95 %]"]
    columns += ["input tokens a task", "output", "calls"]
    return Table("Resolved, and spent", columns, lines)


def _resolved(mine: Mapping[tuple[str, str], Mapping[str, Any]], shape: str) -> str:
    rows = [r for r in mine.values() if SHAPES[r["family"]] == shape]
    return f"{sum(bool(r['resolved']) for r in rows)} of {len(rows)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", default="local", help="local, or the name of another model")
    parser.add_argument("--families", default=",".join(SHAPES))
    parser.add_argument("--sizes", default="8k", help="characters: 8k, 32k, 128k ...")
    parser.add_argument("--tasks", type=int, default=1, help="of each family and size")
    parser.add_argument("--arms", default="", help="names, with commas (default: all)")
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--max-tokens", type=int, default=600)
    parser.add_argument("--window", type=int, default=16384, help="of a local model, in tokens")
    parser.add_argument("--cache", type=Path, default=CACHE, help="folder of the environments")
    parser.add_argument("--out", type=Path, help="default: results/MODEL.jsonl")
    options = parser.parse_args()
    out = options.out or HERE / "results" / f"{options.model.replace('/', '_').replace(':', '_')}.jsonl"
    local = options.model.partition(":")[0] == "local"
    model: Model = (
        LocalModel(options.model.removeprefix("local:"), context_size=options.window)
        if local
        else get_model(options.model)
    )
    done = {(r["suite"], r["task"], r["arm"]) for r in rows_of(out)}
    for suite, task in tasks_of(options.families.split(","), options.sizes.split(","), options.tasks):
        for arm in chosen(options.arms):
            if (suite, task.id, arm.name) in done:
                continue
            about = {"arm": arm.name, "suite": suite, "task": task.id, "family": task.facts["family"]}
            row = {**about, "size": task.facts["size"], "model": model.name, **attempt(arm, task, model, options)}
            append(out, row)
            print(f"{task.id} {arm.name}: {row['resolved']} {row['error'] or ''} ({row['seconds']} s)", file=sys.stderr)
    text = table(rows_of(out)).to_markdown()
    if out == HERE / "results" / "local.jsonl":
        write_between(HERE / "README.md", "finding", text)
    print(text)


if __name__ == "__main__":
    main()

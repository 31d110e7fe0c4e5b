"""Write the finding of both loops into README.md: `python finding.py`.  No model is called."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))  # the repository's folder, for `experiments`

from experiments.recovery.study import PLAN
from experiments.shared import in_points
from rlm_loop.report import Table, write_between
from rlm_loop.study import Results, load_study
from rlm_loop.study.compare.contrast import p_equals
from rlm_loop.study.compare.pair_keys import is_resolved

HERE = Path(__file__).resolve().parent
LEAN = "results-lean"


def table(loop: str, results: Results) -> str:
    """Return how many failed first actions each way recovered from, beside the whole error."""
    effects = {c.arm: c for c in results.compare(analysis=PLAN).contrasts if c.measure == "resolved"}
    rows: list[list[str]] = []
    for arm in results.arms:
        own = [row for row in results.rows if row["arm"] == arm]
        effect = effects.get(arm)
        told = ["baseline", ""] if effect is None else [in_points(effect), p_equals(effect.p_holm)]
        tokens = sum(row["input_tokens"] for row in own) / len(own)
        rows.append([arm, f"{sum(bool(is_resolved(row)) for row in own)} of {len(own)}", *told, f"{tokens:,.0f}"])
    columns = ["shown", "recovered", "points more than today (95 %)", "p after Holm", "prompt tokens"]
    return Table(f"{loop} loop", columns, rows).to_markdown().strip()


def finding(code: Results) -> str:
    """Return the tables of the code loop and, where its folder is there, of the lean loop."""
    found = {"code": code}
    if (HERE / LEAN).is_dir():
        found["lean"] = load_study(HERE / LEAN)
    return "\n\n".join(table(loop, results) for loop, results in found.items())


def main() -> None:
    text = finding(load_study(HERE / "results"))
    write_between(HERE / "README.md", "finding", text)
    print(text)


if __name__ == "__main__":
    main()

"""The finding of this study, from its results: tables and sentences into README.md.

python experiments/answer_contract/finding.py [--folder runs/answer_contract]
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from rlm_loop.report import Table
from rlm_loop.study import Results
from rlm_loop.study.compare.comparison import Comparison
from rlm_loop.study.compare.contrast import p_equals
from rlm_loop.study.compare.pair_keys import is_resolved
from rlm_loop.study.store.rows import Row

sys.path.append(str(Path(__file__).resolve().parents[2]))  # the repository's folder, for `experiments.shared`

from experiments.answer_contract.study import PLAN
from experiments.shared import arms_against, write_finding

HERE = Path(__file__).resolve().parent


def finding(results: Results) -> str:
    """The arms, the declared tests, and tasks by suite under both contracts, as Markdown."""
    fair = by_contract(results, "artifact")
    return "\n\n".join([arms_against(fair, "react"), declared(fair.compare(analysis=PLAN)), both_contracts(results)])


def by_contract(results: Results, contract: str) -> Results:
    """The same runs, where `contract` decides what is resolved for the tasks that know it.

    `artifact` is by the code that ran, `read` also by code that the reader of today runs (see `reread.py`).
    """
    column = {"artifact": "ran", "read": "read"}.get(contract)
    found: dict[tuple[str, str, str], bool] = {}
    if column is not None:
        with (Path(results.folder) / "reread.csv").open(encoding="utf-8", newline="") as file:
            found = {(r["suite"], r["task"], r["arm"]): r[column] == "1" for r in csv.DictReader(file)}
    rows: list[Row] = []
    for row in results.rows:
        verdict = found.get((row["suite"], row["task"], row["arm"]), (row.get("by_submission") or {}).get(contract))
        rows.append(row if verdict is None else {**row, "resolved": verdict})
    return replace(results, rows=rows)


def declared(compared: Comparison) -> str:
    """The p values of the declared tests, as two sentences."""
    varies = ", ".join(f"{test.arm} {p_equals(test.p)}" for test in compared.interactions)
    claims = [c for c in compared.contrasts if c.measure == "resolved" and c.p_holm is not None]
    locked = ", ".join(f"{c.arm} {p_equals(c.p_holm)}" for c in claims if c.p_holm is not None)
    return (
        f"Whether the difference varies by suite (primary test): {varies}. No more than 3 points fewer than "
        f"{PLAN.baseline} (locked, after Holm): {locked}."
    )


def both_contracts(results: Results) -> str:
    """Tasks resolved by suite and arm, by each contract."""
    fair, text = (_counts(by_contract(results, contract)) for contract in ("artifact", "answer"))
    suites = list(dict.fromkeys(suite for suite, _ in fair))
    rows = [
        [suite, *(_pair(fair.get((suite, arm)), text.get((suite, arm))) for arm in results.arms)] for suite in suites
    ]
    title = "By suite: what was left behind, in brackets the text of the answer"
    return Table(title, ["suite", *results.arms], rows).to_markdown()


def _counts(results: Results) -> Mapping[tuple[str, str], int]:
    found: dict[tuple[str, str], int] = {}
    for row in results.complete_pairs:
        key = (row["suite"], row["arm"])
        found[key] = found.get(key, 0) + bool(is_resolved(row))
    return found


def _pair(fair: int | None, text: int | None) -> str:
    return f"{fair or 0}" if fair == text else f"{fair or 0} ({text or 0})"


if __name__ == "__main__":
    write_finding(HERE, finding)

"""The finding of this study, from its results: tables and sentences into README.md, and a figure.

python experiments/answer_contract/finding.py [--folder runs/answer_contract]
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from matplotlib.figure import Figure

from rlm_loop.report import Table, arm_table, resolve_rates
from rlm_loop.study import Results, rescore, statistics
from rlm_loop.study.compare.comparison import Comparison
from rlm_loop.study.compare.contrast import p_equals
from rlm_loop.study.compare.pair_keys import is_resolved
from rlm_loop.study.store.rows import Row

sys.path.append(str(Path(__file__).resolve().parents[2]))  # the repository's folder, for `experiments.shared`

from experiments.answer_contract.study import PLAN, POOLED_FROM, WEIGHTS
from experiments.shared import suite_named, write_finding

HERE = Path(__file__).resolve().parent


def finding(results: Results) -> str:
    """Tables and sentences, as Markdown: by suite, pooled where that is allowed, and by contract."""
    fair = by_contract(results, "artifact")
    compared = fair.compare(analysis=PLAN)
    return "\n\n".join(
        [
            by_suite(compared),
            "**Pooled over suites**",
            pooled(compared),
            both_contracts(results),
            arm_table(fair, PLAN.baseline).to_markdown(),
            "![Tasks resolved by each arm, over all suites and suite by suite](figures/finding.png)",
        ]
    )


def by_contract(results: Results, contract: str) -> Results:
    """The same runs, where `contract` decides what is resolved for the tasks that know it."""
    rows: list[Row] = []
    for row in _scored(results):
        verdict = (row.get("by_submission") or {}).get(contract)
        rows.append(row if verdict is None else {**row, "resolved": verdict})
    return replace(results, rows=rows)


def _scored(results: Results) -> list[Row]:
    """The rows with what each contract says; those of before that was recorded are scored again from their traces."""
    wanted = [row for row in results.rows if row["suite"].split("/")[0] in ("humaneval", "function-repair")]
    if all("by_submission" in row for row in wanted if is_resolved(row) is not None and row["error"] is None):
        return list(results.rows)
    return list(rescore(results.folder, suite=lambda name: suite_named(*name.split("/"))))


def by_suite(compared: Comparison) -> str:
    """The differences with their intervals, and how many tasks just one of the two resolved."""
    rows = [[s.arm, s.suite, str(s.pairs), f"+{s.gained} -{s.lost}", points(s)] for s in compared.suites]
    notes = ["Points, 95 % intervals (Newcombe), not adjusted for there being several suites."]
    columns = ["arm", "suite", "n", "only one", f"against {PLAN.baseline}"]
    return Table(f"Each arm against {PLAN.baseline}, suite by suite", columns, rows, notes, 2).to_markdown()


def pooled(compared: Comparison) -> str:
    """A line for each arm: its difference over all tasks, unless it depends on the suite."""
    tests = {test.arm: test for test in compared.interactions}
    lines: list[str] = []
    for one in compared.contrasts:
        if one.measure != "resolved" or one.estimate is None or one.low is None or one.high is None:
            continue
        test = tests.get(one.arm)
        if test is not None and test.p < POOLED_FROM:
            why = f"it depends on the suite ({p_equals(test.p)}; least in {test.lowest}, most in {test.highest})"
            lines.append(f"- {one.arm}: not pooled, since {why}.")
            continue
        verdict = "shown" if one.holds else "not shown"
        p = "" if one.p_holm is None else f", {p_equals(one.p_holm)} after Holm"
        even = statistics.mean([s.estimate for s in compared.suites if s.arm == one.arm and s.estimate is not None])
        lines.append(
            f"- {one.arm}: {100 * one.estimate:+.1f} points ({100 * one.confidence:.4g} % interval {100 * one.low:.1f} "
            f"to {100 * one.high:.1f}) with each suite weighed by its tasks ({weights()}), "
            f"{100 * (even or 0.0):+.1f} with all suites alike; that it resolves "
            f"{one.claim} is {verdict} by this contract{p}."
            + (f" Interaction with the suite: {p_equals(test.p)}." if test is not None else "")
        )
    return "\n".join(lines)


def weights() -> str:
    """The declared weights of the suites."""
    return ", ".join(f"{name} {count}" for name, count in WEIGHTS.items())


def both_contracts(results: Results) -> str:
    """Tasks resolved by suite and arm, by each contract."""
    fair, text = (_counts(by_contract(results, contract)) for contract in ("artifact", "answer"))
    suites = list(dict.fromkeys(suite for suite, _ in fair))
    rows = [
        [suite, *(_pair(fair.get((suite, arm)), text.get((suite, arm))) for arm in results.arms)] for suite in suites
    ]
    title = "Resolved by what was left behind, and in brackets by the text of the answer where that differs"
    return Table(title, ["suite", *results.arms], rows).to_markdown()


def _counts(results: Results) -> Mapping[tuple[str, str], int]:
    found: dict[tuple[str, str], int] = {}
    for row in results.complete_pairs:
        key = (row["suite"], row["arm"])
        found[key] = found.get(key, 0) + bool(is_resolved(row))
    return found


def _pair(fair: int | None, text: int | None) -> str:
    return f"{fair or 0}" if fair == text else f"{fair or 0} ({text or 0})"


def points(effect: object) -> str:
    """A difference with its interval, in points."""
    estimate, low, high = (getattr(effect, name) for name in ("estimate", "low", "high"))
    return "not known" if estimate is None else f"{100 * estimate:+.0f} ({100 * low:.0f} to {100 * high:.0f})"


def figure(results: Results) -> Figure:
    """What each arm resolved, over all suites and suite by suite, by what each run left behind."""
    return resolve_rates(by_contract(results, "artifact"), by="suite")


if __name__ == "__main__":
    write_finding(HERE, finding, figure)

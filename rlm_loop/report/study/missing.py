"""Which pairs and results are not there: episodes that were not run, that crashed, and that nothing judged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rlm_loop.report.tables.table import Table
from rlm_loop.study import Results
from rlm_loop.study.compare.pair_keys import PairKey, is_resolved, pair_key
from rlm_loop.study.store.rows import finished

NOT_RUN, CRASHED, NOT_JUDGED = "not run", "crashed", "not judged"
_MOST = 300  # gaps that are named one by one


@dataclass(frozen=True)
class Gap:
    """One episode without a result, and why."""

    arm: str
    unit: PairKey
    kind: str
    why: str = ""


@dataclass(frozen=True)
class Missing:
    """A table with a row an arm, remarks below it, and the episodes without a result; `most` of them are named."""

    table: Table
    remarks: Sequence[str]
    gaps: Sequence[Gap]
    most: int = _MOST


def planned(results: Results) -> list[PairKey]:
    """Every unit (model, suite, task, seed) of the study: those of its rows, then those of its plan without any."""
    there = dict.fromkeys(pair_key(row) for row in results.rows)
    tasks: Mapping[str, Mapping[str, Any]] = results.lock.get("tasks", {})
    for model in results.lock.get("models", ()):
        for suite, marks in tasks.items():
            for task in marks:
                there |= dict.fromkeys((model, suite, task, seed) for seed in results.lock.get("seeds", ()))
    return list(there)


def arms_of(results: Results) -> list[str]:
    """The arms with rows in their order, then those of the plan that have none yet."""
    return list(dict.fromkeys([*results.arms, *results.lock.get("arms", {})]))


def gaps(results: Results) -> list[Gap]:
    """Every episode without a result, unit by unit."""
    rows = {(row["arm"], pair_key(row)): row for row in results.rows}
    return [gap for of in planned(results) for arm in arms_of(results) for gap in _gap(arm, of, rows, results)]


def _gap(arm: str, of: PairKey, rows: Mapping[tuple[str, PairKey], Any], results: Results) -> Iterator[Gap]:
    row = rows.get((arm, of))
    if row is None:
        models = results.lock.get("arms", {}).get(arm)
        if models is None or of[0] in models:  # an arm with a model of its own has no unit with another one
            yield Gap(arm, of, NOT_RUN)
    elif not finished(row):
        yield Gap(arm, of, CRASHED, str(row["error"]))
    elif row["resolved"] is None:
        yield Gap(arm, of, NOT_JUDGED, str(row.get("score_reason") or ""))


def missing_pairs(results: Results, baseline: str, policy: str) -> Missing:
    """How many pairs each arm has with the baseline, and which episodes have no result; `policy` in words."""
    found, every = gaps(results), planned(results)
    judged = {(row["arm"], pair_key(row)) for row in results.rows if is_resolved(row) is not None}
    rows: list[list[str]] = []
    for arm in arms_of(results):
        mine = [gap.kind for gap in found if gap.arm == arm]
        whole = sum((arm, of) in judged and (baseline, of) in judged for of in every)
        pairs = "baseline" if arm == baseline else f"{whole:,} of {len(every):,}"
        rows.append([arm, pairs, *(f"{mine.count(kind):,}" for kind in (NOT_RUN, CRASHED, NOT_JUDGED))])
    columns = ["arm", f"pairs with {baseline}", NOT_RUN, CRASHED, NOT_JUDGED]
    crashed = "A crash of the arm itself is a pair: not resolved, with tokens that are not known."
    said = crashed if any(gap.kind == CRASHED for gap in found) else "" if found else "No pair is missing."
    return Missing(Table("Pairs", columns, rows), [said, policy], found)

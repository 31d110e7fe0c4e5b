"""What an arm came to on a set of tasks, and how it differs from the baseline on the same tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rlm_loop.study.compare.pair_keys import crashes_by_kind, is_resolved, measured
from rlm_loop.study.compare.pairs import rate_of
from rlm_loop.study.statistics import mean, percentile, ratio, total
from rlm_loop.study.store.rows import Row, finished


@dataclass(frozen=True)
class ArmSummary:
    """One arm on `n` episodes: `judged` have a verdict (`pair_keys.is_resolved`; a crash of the arm is not resolved).

    `rate` is the share resolved of those judged, `low` and `high` its 95 % Wilson interval, in which the seeds of a
    task count as what they are worth (`pairs.rate_of`).  Token, step and second figures are means over the `measured`
    episodes (those that ran to their end), `_p95` their 95th percentile; `new_tokens` are prompt tokens not taken from
    the cache, `scaffold_share` the part of the input that the strategy added.  `failed_actions` is the share of actions
    (tool calls and cells) that failed, `malformed` that of replies with something unreadable.  `wins`
    and `losses` the tasks that just one of the two resolved.  `crashes` counts the `crashed` episodes by kind.
    `None` means not known.
    """

    model: str
    suite: str
    arm: str
    n: int
    resolved: int
    rate: float | None
    low: float
    high: float
    input_tokens: float | None
    output_tokens: float | None
    total_tokens: float | None
    new_tokens: float | None
    scaffold_tokens: float | None
    scaffold_share: float | None
    steps: float | None
    steps_p95: float | None
    seconds: float | None
    seconds_p95: float | None
    failed_actions: float | None
    malformed: float | None
    cost: float | None
    baseline: str
    wins: int
    losses: int
    judged: int
    measured: int
    crashed: int
    crashes: str


def summarize(
    rows: Sequence[Row], arms: Sequence[str], baseline: str, *, model: str = "", suite: str = ""
) -> list[ArmSummary]:
    """One summary an arm, in the order of `arms`.  The rows have to be paired: each arm with the same units."""
    by_arm = {arm: [r for r in rows if r["arm"] == arm] for arm in arms}
    reference = by_arm.get(baseline, [])
    return [_summary(arm, by_arm[arm], reference, baseline, model, suite) for arm in arms]


def _summary(
    arm: str, rows: Sequence[Row], reference: Sequence[Row], baseline: str, model: str, suite: str
) -> ArmSummary:
    resolved, judged, low, high = rate_of(rows)
    here, there = _resolved(rows), _resolved(reference)
    both = _judged(rows) & _judged(reference)
    crashed = [r for r in rows if not finished(r)]
    n, rows = len(rows), [r for r in rows if measured(r)]
    return ArmSummary(
        model=model,
        suite=suite,
        arm=arm,
        n=n,
        resolved=resolved,
        rate=ratio(resolved, judged),
        low=low,
        high=high,
        input_tokens=_mean(rows, "input_tokens"),
        output_tokens=_mean(rows, "output_tokens"),
        total_tokens=mean(total_tokens(r) for r in rows),
        new_tokens=_mean(rows, "new_tokens"),
        scaffold_tokens=_mean(rows, "scaffold_tokens"),
        scaffold_share=ratio(_total(rows, "scaffold_tokens"), _total(rows, "input_tokens")),
        steps=_mean(rows, "steps"),
        steps_p95=percentile((r["steps"] for r in rows), 95),
        seconds=_mean(rows, "seconds"),
        seconds_p95=percentile((r["seconds"] for r in rows), 95),
        failed_actions=ratio(total(r["tool_failures"] + r["cell_errors"] for r in rows), _total(rows, "actions")),
        malformed=ratio(_total(rows, "malformed_turns"), _total(rows, "steps")),
        cost=_mean(rows, "cost"),
        baseline=baseline,
        wins=len((here - there) & both),
        losses=len((there - here) & both),
        judged=judged,
        measured=len(rows),
        crashed=len(crashed),
        crashes=crashes_by_kind(crashed),
    )


def total_tokens(row: Mapping[str, Any]) -> int | None:
    """Input plus output of an episode; `None` where one is not known."""
    read, written = row["input_tokens"], row["output_tokens"]
    return None if read is None or written is None else read + written


def _resolved(rows: Sequence[Row]) -> set[tuple[str, str, int]]:
    return {(r["suite"], r["task"], r["seed"]) for r in rows if is_resolved(r)}


def _judged(rows: Sequence[Row]) -> set[tuple[str, str, int]]:
    return {(r["suite"], r["task"], r["seed"]) for r in rows if is_resolved(r) is not None}


def _mean(rows: Sequence[Row], name: str) -> float | None:
    return mean(r[name] for r in rows)


def _total(rows: Sequence[Row], name: str) -> float | None:
    return total(r[name] for r in rows)

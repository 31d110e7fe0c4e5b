"""An arm's results on a set of tasks, and how they differ from the baseline on the same tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rlm_loop.study.compare.pair_keys import PairKey, crashes_by_kind, is_resolved, pair_key
from rlm_loop.study.compare.pairs import rate_of
from rlm_loop.study.statistics import mean, percentile, ratio, total
from rlm_loop.study.store.rows import Row, finished

#: The figures of a summary that are means of a column.
_MEANS = ("input_tokens", "output_tokens", "new_tokens", "scaffold_tokens", "steps", "seconds", "cost")


@dataclass(frozen=True)
class ArmSummary:
    """An arm on `n` episodes: `judged` have a verdict (`pair_keys.is_resolved`; a crash of the arm is not resolved).

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
    """Return a summary for each arm, in the order of `arms`.  The rows have to be paired: the same units for all."""
    by_arm = {arm: [r for r in rows if r["arm"] == arm] for arm in arms}
    reference = by_arm.get(baseline, [])
    return [_summary(arm, by_arm[arm], reference, baseline, model, suite) for arm in arms]


def _summary(
    arm: str, rows: Sequence[Row], reference: Sequence[Row], baseline: str, model: str, suite: str
) -> ArmSummary:
    resolved, judged, low, high = rate_of(rows)
    here, there = _verdicts(rows), _verdicts(reference)
    both = [(here[unit], there[unit]) for unit in here if unit in there]
    crashed = [r for r in rows if not finished(r)]
    n, rows = len(rows), list(filter(finished, rows))

    def total_of(name: str) -> float | None:
        return total(r[name] for r in rows)

    return ArmSummary(
        model=model,
        suite=suite,
        arm=arm,
        n=n,
        resolved=resolved,
        rate=ratio(resolved, judged),
        low=low,
        high=high,
        total_tokens=mean(total_tokens(r) for r in rows),
        scaffold_share=ratio(total_of("scaffold_tokens"), total_of("input_tokens")),
        steps_p95=percentile((r["steps"] for r in rows), 95),
        seconds_p95=percentile((r["seconds"] for r in rows), 95),
        failed_actions=ratio(total(r["tool_failures"] + r["cell_errors"] for r in rows), total_of("actions")),
        malformed=ratio(total_of("malformed_turns"), total_of("steps")),
        baseline=baseline,
        wins=both.count((True, False)),
        losses=both.count((False, True)),
        judged=judged,
        measured=len(rows),
        crashed=len(crashed),
        crashes=crashes_by_kind(crashed),
        **{name: mean(r[name] for r in rows) for name in _MEANS},
    )


def total_tokens(row: Mapping[str, Any]) -> int | None:
    """Input plus output of an episode; `None` where one is not known."""
    read, written = row["input_tokens"], row["output_tokens"]
    return None if read is None or written is None else read + written


def _verdicts(rows: Sequence[Row]) -> dict[PairKey, bool]:
    """For each unit that has a verdict whether it is resolved."""
    return {pair_key(r): verdict for r in rows if (verdict := is_resolved(r)) is not None}

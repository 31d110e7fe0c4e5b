"""What stands beside a difference: other estimands, the noise floor, doses that were delivered, joint resamples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from paired_rows import paired
from scipy import stats

from rlm_loop.accounting.prices import Price
from rlm_loop.study import Results, compare
from rlm_loop.study.compare.delivery import deliveries
from rlm_loop.study.compare.estimands import PER_RESOLVED, Estimate
from rlm_loop.study.compare.noise import NOT_MEASURED, noise_floors, noise_sentence
from rlm_loop.study.plan.fairness import FairnessCheck, Probe
from rlm_loop.study.statistics import codes_of, percentile_interval, wilson

PAIRS = [("y", "y")] * 10 + [("y", "n")] * 2 + [("n", "y")] * 4 + [("n", "n")] * 4
TOKENS: list[tuple[float | None, float | None]] = [(50 + 7 * i, 100 + 3 * i) for i in range(20)]


def estimates(found: Results, **options: Any) -> dict[tuple[str, str], Estimate]:
    return {(e.quantity, e.estimand): e for e in compare(found, "base").estimates(**options)}


def test_three_estimands_of_the_same_runs() -> None:
    found = estimates(paired(PAIRS, tokens=TOKENS))
    here, there = (np.array([t[side] + 10 for t in TOKENS], dtype=float) for side in (0, 1))  # with 10 tokens out
    task = found["tokens", "geometric mean of the pairs' ratios"]
    assert task.estimate == pytest.approx(stats.gmean(here / there))
    totals = found["tokens", "ratio of totals"]
    assert (totals.value, totals.estimate) == pytest.approx((here.mean(), here.sum() / there.sum()))
    resolved = found["tokens", PER_RESOLVED]
    assert (resolved.value, resolved.baseline_value) == pytest.approx((here.sum() / 12, there.sum() / 14))
    assert resolved.estimate == pytest.approx((here.sum() / 12) / (there.sum() / 14))
    for one in (task, totals, resolved):
        assert (one.low or 0) < (one.estimate or 0) < (one.high or 0)


def test_the_interval_of_what_a_resolved_task_takes_is_scipys_bootstrap() -> None:
    rng = np.random.default_rng(0)
    columns = [rng.gamma(3, 100, 60), (rng.random(60) < 0.5) * 1.0, rng.gamma(3, 120, 60), (rng.random(60) < 0.6) * 1.0]

    def each(sums: Any) -> Any:
        a, b, c, d = np.moveaxis(np.asarray(sums), -1, 0)
        return (a / b) / (c / d)

    ours = percentile_interval(columns, codes_of(range(60)), each, resamples=20000)
    theirs = stats.bootstrap(
        columns,
        lambda a, b, c, d: (a.sum(-1) / b.sum(-1)) / (c.sum(-1) / d.sum(-1)),
        vectorized=False,
        paired=True,
        n_resamples=3000,
        method="percentile",
        rng=np.random.default_rng(1),
    ).confidence_interval
    assert np.log(ours) == pytest.approx(np.log([theirs.low, theirs.high]), abs=0.05)


def test_an_arm_that_resolves_nothing_has_no_cost_of_a_resolved_task() -> None:
    found = estimates(paired([("n", "y")] * 8))["tokens", PER_RESOLVED]
    assert (found.value, found.estimate, found.low) == (None, None, None)
    rare = estimates(paired([("n", "y")] * 7 + [("y", "y")]))["tokens", PER_RESOLVED]
    assert rare.low is not None
    assert rare.high is None, "in more than 1 of 40 resamples it resolves none"


def test_cached_tokens_have_their_own_price() -> None:
    found = paired([("y", "y")] * 6, tokens=[(100, 100)] * 6)
    rows = [{**r, "cached_tokens": 80 if r["arm"] == "lean" else None, "cost": None} for r in found.rows]
    plain = Results(rows, found.lock)
    assert ("cost", PER_RESOLVED) not in estimates(plain)
    priced = estimates(plain, prices={"local:m": Price(input=10, output=20, cached=1)})
    assert priced["cost", PER_RESOLVED].value == pytest.approx((20 * 10 + 80 * 1 + 10 * 20) / 1e6)
    assert priced["cost", PER_RESOLVED].baseline_value == pytest.approx((100 * 10 + 10 * 20) / 1e6)


def check(**arms: Any) -> FairnessCheck:
    return FairnessCheck("made", None, (Probe("local:m", "s", "t0", arms, dict.fromkeys(arms)),))


def test_two_names_of_the_same_arm_are_a_noise_floor() -> None:
    found = paired(PAIRS)
    same = {"sampling": {"temperature": 0}}
    (floor,) = noise_floors(found.rows, check(base=same, lean=same))
    assert (floor.arms, floor.pairs, floor.apart) == (("base", "lean"), 20, 6)
    assert (floor.low, floor.high) == pytest.approx(wilson(6, 20))
    assert (floor.how, floor.counted[:7]) == ("the same under two names", "6 of 20")
    assert noise_floors(found.rows, check(base=same, lean={"sampling": {"temperature": 1}})) == []
    assert noise_floors(found.rows) == [], "without the fairness check nobody knows"
    assert compare(found).noise == NOT_MEASURED


def test_seeds_of_one_arm_are_a_noise_floor() -> None:
    found = paired([("y", "y"), ("n", "y"), ("y", "n"), ("y", "n"), ("n", "n"), ("n", "n")], seeds=2)
    base, lean = noise_floors(found.rows, check(base={"sampling": {"model": {"temperature": 0}}}, lean={}))
    assert (base.arms, base.pairs, base.apart, base.temperature) == (("base",), 3, 0, 0)
    assert (lean.pairs, lean.apart, lean.temperature) == (3, 1, None)
    assert noise_sentence([base, lean, base]).startswith(
        "Noise floor, in pairs that differ in whether the task is resolved: run again with other seeds at temperature "
        "0: base 0 of 3 (0.0 %, "
    )
    assert noise_sentence([base, lean, base]).count("run again") == 2, "arms of one kind share a clause"
    assert "run again with other seeds: base 0 of 3" in compare(found).noise
    assert "lean 1 of 3 (33.3 %" in compare(found).noise


def dosed(said: int, injector: dict[str, Any]) -> Results:
    found = paired([("y", "n")] * 10)
    rows = [
        {**r, "by_cause": {"task": 9, **({"scaffold:nudge/2": 4} if r["arm"] == "lean" and i // 2 < said else {})}}
        for i, r in enumerate(found.rows)
    ]
    arms = {"base": [], "lean": [injector]}
    lock = {name: {"local:m": {"settings": {"injectors": of}}} for name, of in arms.items()}
    return Results(rows, {**found.lock, "arms": lock})


@pytest.mark.parametrize(
    "injector",
    [{"is": "Nudge", "name": "nudge"}, {"is": "Every", "k": 2, "injector": {"is": "Nudge", "name": "nudge"}}],
)
def test_a_dose_that_was_hardly_delivered_is_warned_about(injector: dict[str, Any]) -> None:
    (found,) = deliveries(dosed(3, injector).rows, dosed(3, injector).lock, "base")
    assert (found.arm, found.injector, found.runs, found.delivered) == ("lean", "nudge", 10, 3)
    assert "only 3 of 10 runs had a token of nudge" in "\n".join(compare(dosed(3, injector)).sentences())
    assert compare(dosed(5, injector)).deliveries[0].warning == ""
    (without,) = deliveries(dosed(5, injector).rows, dosed(5, injector).lock, "lean")
    assert (without.arm, without.delivered) == ("lean", 5), "the baseline's own dose"


def test_a_cause_of_another_name_is_no_dose() -> None:
    (found,) = deliveries(dosed(5, {"name": "nud"}).rows, dosed(5, {"name": "nud"}).lock, "base")
    assert found.delivered == 0


def test_resamples_are_paired() -> None:
    """An arm with the outcomes of the baseline and 10 tokens fewer is cheaper and no worse in every resample."""
    alike = [("y", "y")] * 6 + [("n", "n")] * 6
    base, lean = compare(paired(alike, tokens=[(90 + i, 100 + i) for i in range(12)])).clouds
    assert (base.both, lean.cheaper, lean.no_worse, lean.both) == (None, 1.0, 1.0, 1.0)
    assert np.corrcoef(base.rate, lean.rate)[0, 1] == pytest.approx(1)
    assert lean.spent.mean() == pytest.approx(105.5, abs=0.2)
    assert lean.rate.std() == pytest.approx(np.sqrt(0.25 / 12), rel=0.1)

"""What stands beside a difference: the noise floor."""

from __future__ import annotations

from typing import Any

import pytest
from paired_rows import paired

from rlm_loop.study import FairnessCheck, compare
from rlm_loop.study.compare.noise import NOT_MEASURED, noise_floors, noise_sentence
from rlm_loop.study.plan.fairness import Probe
from rlm_loop.study.statistics import wilson

PAIRS = [("y", "y")] * 10 + [("y", "n")] * 2 + [("n", "y")] * 4 + [("n", "n")] * 4


def check(**arms: Any) -> FairnessCheck:
    return FairnessCheck("made", None, (Probe("local:m", "s", "t0", arms, dict.fromkeys(arms)),))


def test_two_names_of_the_same_arm_are_a_noise_floor() -> None:
    found = paired(PAIRS)
    same = {"sampling": {"temperature": 0}}
    (floor,) = noise_floors(found.rows, check(base=same, lean=same))
    assert (floor.arms, floor.pairs, floor.apart) == (("base", "lean"), 20, 6)
    assert (floor.low, floor.high) == pytest.approx(wilson(6, 20))
    assert "the same under two names: base and lean 6 of 20 (30.0 %, " in noise_sentence([floor])
    assert noise_floors(found.rows, check(base=same, lean={"sampling": {"temperature": 1}})) == []
    assert noise_floors(found.rows) == [], "without the fairness check nobody knows"
    assert compare(found).noise == NOT_MEASURED


def test_seeds_of_one_arm_are_a_noise_floor() -> None:
    found = paired([("y", "y"), ("n", "y"), ("y", "n"), ("y", "n"), ("n", "n"), ("n", "n")], seeds=2)
    base, lean = noise_floors(found.rows, check(base={"sampling": {"model": {"temperature": 0}}}, lean={}))
    assert (base.arms, base.pairs, base.apart) == (("base",), 3, 0)
    assert (lean.pairs, lean.apart) == (3, 1)
    assert noise_sentence([base, lean, base]).startswith(
        "Noise floor, in pairs that differ in whether the task is resolved: run again with other seeds: base 0 of 3 ("
    )
    assert noise_sentence([base, lean, base]).count("run again") == 1, "arms of one kind share a clause"
    assert "run again with other seeds: base 0 of 3" in compare(found).noise
    assert "lean 1 of 3 (33.3 %" in compare(found).noise

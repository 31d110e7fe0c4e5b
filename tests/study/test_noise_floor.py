"""What stands beside a difference: the noise floor."""

from __future__ import annotations

from paired_rows import paired

from rlm_loop.study import compare
from rlm_loop.study.compare.noise import NOT_MEASURED


def test_seeds_of_one_arm_are_a_noise_floor() -> None:
    found = compare(paired([("y", "y"), ("n", "y"), ("y", "n"), ("y", "n"), ("n", "n"), ("n", "n")], seeds=2))
    base, lean = found.noise_floors
    assert (base.arm, base.pairs, base.apart) == ("base", 3, 0)
    assert (lean.pairs, lean.apart) == (3, 1)
    assert found.noise.startswith(
        "Noise floor, in pairs that differ in whether the task is resolved: run again with other seeds: base 0 of 3 ("
    )
    assert found.noise.count("run again") == 1, "arms share a clause"
    assert "lean 1 of 3 (33.3 %" in found.noise


def test_arms_that_were_run_once_have_none() -> None:
    assert compare(paired([("y", "y")] * 10)).noise == NOT_MEASURED

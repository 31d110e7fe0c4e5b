"""The study of `experiments/headline`: new runs may have an arm without a loop, the recorded one has none."""

from __future__ import annotations

import dry_study as dry

from rlm_loop.study import load_study, load_study_file
from rlm_loop.study.plan.fairness_check import fairness_check, require_fair

HEADLINE = dry.EXPERIMENTS / "headline"


def test_the_arm_without_a_loop_is_for_new_runs() -> None:
    plain, more = (load_study_file(HEADLINE, tasks=1, direct=direct) for direct in (False, True))
    assert list(*plain.agents().values()) == load_study(HEADLINE / "results").arms
    assert list(*more.agents().values()) == [*load_study(HEADLINE / "results").arms, "direct"]
    for study in (plain, more):
        assert require_fair(fairness_check(study)).fair

"""Suites one by one before they are pooled, with declared weights; margins of both kinds; a plan that was changed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_analysis import study

from rlm_loop.study import Analysis, Results, StudyError, compare, load_study
from rlm_loop.study.statistics import (
    codes_of,
    mcnemar,
    paired_difference,
    paired_table,
    relative_noninferiority,
    variance_of_mean,
)
from rlm_loop.study.statistics.non_inferiority import relative_score

#: Of each suite: pairs that both resolve, only the arm, only the baseline, neither.
SUITES = {"easy": (30, 9, 1, 0), "hard": (2, 1, 7, 10)}


def results(suites: Mapping[str, tuple[int, int, int, int]] = SUITES, plan: Analysis | None = None) -> Results:
    rows: list[dict[str, Any]] = []
    for suite, counts in suites.items():
        outcomes = [o for o, n in zip([(1, 1), (1, 0), (0, 1), (0, 0)], counts, strict=True) for _ in range(n)]
        for i, of in enumerate(outcomes):
            for arm, resolved, tokens in (("base", of[1], 100 + i), ("lean", of[0], 50 if suite == "easy" else 200)):
                rows.append(
                    {"arm": arm, "model": "m", "suite": suite, "task": f"{suite}{i}", "seed": 0, "error": None,
                     "resolved": bool(resolved), "input_tokens": tokens, "output_tokens": 1, "cost": 0.0,
                     "seconds": 1.0, "steps": 1, "started": ""}
                )  # fmt: skip
    return Results(rows, {} if plan is None else {"analysis": plan.locked()})


def contrast(found: Results, measure: str = "resolved", **options: Any) -> Any:
    return next(c for c in compare(found, "base", **options).contrasts if c.measure == measure)


@pytest.mark.parametrize(
    ("weights", "easy"),
    [("pairs", 2 / 3), ("equal", 0.5), ({"easy": 1, "hard": 3}, 0.25), ({"easy": 9, "hard": 1}, 0.9)],
)
def test_a_pooled_effect_is_the_weighted_mean_of_those_of_the_suites(weights: Any, easy: float) -> None:
    compared = compare(results(), "base", weights=weights)
    of = {e.suite: e.estimate for e in compared.suites}
    assert (of["easy"], of["hard"]) == pytest.approx((0.2, -0.3))
    pooled = compared.contrasts[0]
    assert pooled.estimate == pytest.approx(easy * 0.2 - (1 - easy) * 0.3)
    assert pooled.shares == pytest.approx({"easy": easy, "hard": 1 - easy})
    assert pooled.low < pooled.estimate < pooled.high
    tokens = next(c for c in compared.contrasts if c.measure == "input_tokens")
    logs = {s: np.mean([np.log(t / (100 + i)) for i in range(n)]) for s, t, n in (("easy", 50, 40), ("hard", 200, 20))}
    assert tokens.estimate == pytest.approx(np.exp(easy * logs["easy"] + (1 - easy) * logs["hard"]))
    assert f"easy {100 * easy:.3g} %, hard {100 * (1 - easy):.3g} %" in compared.methods


def test_what_is_said_first_is_suite_by_suite_and_whether_they_agree() -> None:
    compared = compare(results(), "base", weights="equal")
    said = compared.sentences()
    assert said[0].startswith("lean against base with m depends on the suite (2 suites; permutation of Cochran's Q")
    assert "), points resolved: easy +20.0 (" in said[0]
    assert said[1].startswith(
        "lean against base, on 60 tasks of 2 suites pooled with equal weights with m: -5.0 points"
    )
    assert compare(results({"easy": SUITES["easy"]}), "base").before_pooling == []


def test_weights_that_are_the_shares_of_pairs_change_next_to_nothing() -> None:
    plain, weighted = contrast(results()), contrast(results(), weights={"easy": 2, "hard": 1})
    for name in ("estimate", "low", "high", "value", "baseline_value", "discordant"):
        assert getattr(weighted, name) == pytest.approx(getattr(plain, name), abs=1e-9), name
    assert weighted.p == pytest.approx(plain.p, abs=0.02)  # drawn, where the other counts


def test_a_weight_of_two_is_two_pairs_for_the_estimate_and_no_more_sure_than_one() -> None:
    here, there = np.array([1, 0, 1, 1, 0, 0]), np.array([0, 0, 1, 0, 1, 0])
    weights, codes = np.array([2.0, 1, 1, 2, 1, 1]), codes_of(range(6))
    assert paired_table(here, there, weights)[1] / 6 == pytest.approx(4 / 8)
    estimate, low, high = paired_difference(here, there, codes, weights=weights)
    assert estimate == pytest.approx((4 - 1) / 8)
    doubled = [np.repeat(x, weights.astype(int)) for x in (here, there)]
    narrow = paired_difference(*doubled, codes_of(range(8)))
    assert high - low > narrow[2] - narrow[1]
    share = weights / weights.sum()
    apart = here - there
    by_hand = (share**2 * (apart - (share * apart).sum()) ** 2).sum() * 6 / 5
    assert variance_of_mean(apart, codes, weights) == pytest.approx(by_hand)
    assert mcnemar(here, there, codes, np.ones(6)) == pytest.approx(mcnemar(here, there, codes))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"weights": {"easy": 1}}, "weights name no suite 'hard'"),
        ({"weights": "half"}, 'weights are "pairs", "equal"'),
        ({"weights": {"easy": 0, "hard": 1}}, "numbers above 0"),
        ({"relative_margin": 1.5}, "0.1 for 10 %"),
        ({"relative_margin": 0.1, "margin": 0.1}, "not both"),
    ],
)
def test_what_is_no_plan_is_refused(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(StudyError, match=said):
        compare(results(), "base", **wrong)


def test_weights_for_other_suites_are_refused_before_a_call(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="weights are for tables; the suites are sums"):
        study(Analysis(weights={"tables": 1})).run(tmp_path, progress=False)


def test_plans_of_before_there_were_weights_keep_their_hash() -> None:
    assert Analysis("lean").locked()["digest"] == "b0071f10f89789a5"  # as experiments/mcp_as_code has it
    assert "weights" not in Analysis().locked()
    plan = Analysis(weights={"sums": 1}, relative_margin=0.2)
    assert plan.locked()["weights"] == {"sums": 1}
    assert not compare(results(plan=Analysis("base", weights="equal"))).exploratory
    assert compare(results(plan=Analysis("base", weights="equal")), weights="pairs").exploratory


def test_a_plan_that_was_changed_after_it_was_locked_judges_nothing(tmp_path: Path) -> None:
    study(Analysis(margin=0.1)).run(tmp_path, progress=False)
    path = tmp_path / "study.json"
    assert not compare(load_study(tmp_path)).exploratory
    path.write_text(path.read_text().replace('"margin": 0.1', '"margin": 0.3'))
    compared = compare(load_study(tmp_path))
    assert (compared.exploratory, compared.changed) == (True, True)
    assert "study.json is not the one that was locked before the run" in compared.verdicts[0]


@pytest.mark.parametrize(
    ("table", "margin"), [((40, 5, 6, 19), 0.1), ((20, 3, 9, 18), 0.2), ((80, 2, 1, 17), 0.05), ((5, 0, 3, 2), 0.5)]
)
def test_the_score_of_a_relative_margin_has_the_likeliest_variance(table: tuple[int, ...], margin: float) -> None:
    both, here, there = table[:3]
    n, least, some = sum(table), 1 - margin, both + here + there
    lost = np.linspace(some * margin, some, 1_000_001)[1:-1]  # only the baseline; below it nothing is left for the arm
    only = some - (some - lost) / least  # only the arm, as the hypothesis has it
    rest = some - only - lost
    with np.errstate(divide="ignore", invalid="ignore"):
        likely = both * np.log(rest) + (here * np.log(only) if here else 0) + there * np.log(lost)
    at = np.argmax(np.where((only >= 0) & (rest > 0), likely, -np.inf))
    score = (both + here - least * (both + there)) / np.sqrt(least * (only[at] + lost[at]))
    assert relative_score(both, here, there, n, margin) == pytest.approx(score, rel=1e-3)


def test_with_no_margin_the_score_is_mcnemars() -> None:
    assert relative_score(40, 5, 9, 70, 0) == pytest.approx((5 - 9) / np.sqrt(14))


def test_a_relative_margin_is_rarely_met_by_an_arm_that_is_just_that_much_worse() -> None:
    rng, wrong = np.random.default_rng(0), 0
    for _ in range(1000):
        there = rng.random(100) < 0.6
        here = np.where(there, rng.random(100) < 0.85, rng.random(100) < 0.0375)  # 0.525, of 0.6: 12.5 % fewer
        both, lost = int((here & there).sum()), int((~here & there).sum())
        wrong += relative_noninferiority(both, int((here & ~there).sum()), lost, 100, 0.125) <= 0.05
    assert 10 <= wrong <= 40  # 2.5 % of 1,000, give or take 3 standard deviations


def test_a_relative_margin_is_a_share_of_what_the_baseline_resolves() -> None:
    found = contrast(results({"s": (90, 12, 6, 92)}), relative_margin=0.1, family=("resolved",))
    assert found.claim == "no more than 10 % fewer"
    assert found.p == pytest.approx(relative_noninferiority(90, 12, 6, 200, 0.1), rel=1e-6)
    assert found.holds
    assert found.low > -0.1 * found.baseline_value
    strict = contrast(results({"s": (90, 12, 6, 92)}), relative_margin=0.01, family=("resolved",))
    assert not strict.holds
    assert strict.low <= -0.01 * strict.baseline_value
    nothing = contrast(results({"s": (0, 0, 0, 40)}), relative_margin=0.1, family=("resolved",))
    assert not nothing.holds

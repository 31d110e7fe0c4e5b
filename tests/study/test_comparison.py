"""Comparing arms: figures, missing pairs, clusters, families, power, and the sentences."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from paired_rows import Pair, paired

from rlm_loop.study import Comparison, Results, StudyError, compare, sequential
from rlm_loop.study.statistics import newcombe_interval

#: 200 tasks: both 90, only lean 12, only base 6, neither 92.
LARGE: list[Pair] = [("y", "y")] * 90 + [("y", "n")] * 12 + [("n", "y")] * 6 + [("n", "n")] * 92
SMALL: list[Pair] = [("y", "y")] * 12 + [("y", "n")] * 3 + [("n", "y")] * 4 + [("n", "n")] * 17


def row(comparison: Comparison, measure: str) -> dict[str, Any]:
    frame = comparison.frame()
    return frame[frame["measure"] == measure].iloc[0].to_dict()


def test_a_comparison_with_everything_there() -> None:
    compared = compare(paired(LARGE))
    found = row(compared, "resolved")
    low, high = newcombe_interval(90, 12, 6, 92)
    assert (found["arm"], found["baseline"], found["pairs"], found["missing"]) == ("lean", "base", 200, 0)
    assert (found["estimate"], found["low"], found["high"]) == pytest.approx((0.03, float(low), float(high)))
    assert found["value"] - found["baseline_value"] == pytest.approx(0.03)
    assert found["holds"]
    tokens = row(compared, "input_tokens")
    assert tokens["effect"] == "ratio"
    assert 0.5 < tokens["low"] < tokens["estimate"] < tokens["high"] < 1
    assert tokens["p_holm"] == pytest.approx(max(tokens["p"], min(2 * tokens["p"], 1.0)), abs=0.02)
    assert row(compared, "output_tokens")["p_holm"] != row(compared, "output_tokens")["p_holm"], "outside the family"
    assert row(compared, "cost")["estimate"] != row(compared, "cost")["estimate"], "a ratio of nothing is not known"
    first, shown, noise, methods = said = compared.sentences()
    assert first == (
        "lean against base, on 200 tasks with local:m: +3.0 points resolved (95 % interval -1.2 to 7.2); 0.72 times "
        "the prompt tokens (97.5 % interval 0.70 to 0.73)."
    )
    assert shown.startswith("Shown: lean resolves no more than 3 points fewer tasks than base (p = 0.0")
    assert "; lean uses fewer prompt tokens than base (p < 0.001)." in shown
    assert noise.startswith("No noise floor was measured")
    assert methods == compared.methods
    assert str(compared) == "\n".join(said)
    assert paired(LARGE).compare("base").sentences() == said


def test_what_is_not_shown_is_said_with_what_it_would_take() -> None:
    compared = compare(paired(SMALL, tokens=[(100 + (-1) ** i * i, 100) for i in range(36)]))
    (said,) = compared.verdicts
    assert said.startswith("Not shown: that lean resolves no more than 3 points fewer tasks than base (p = ")
    assert "if the two are truly alike, about " in said
    assert "more tasks would show it (power 80 %)" in said
    assert "; that lean and base differ in prompt tokens (p = " in said
    plan = compared.power().query("measure == 'resolved' and assuming == 'no difference'").iloc[0]
    assert plan["needed"] - 36 == plan["more_tasks"] > 1000
    assert plan["power_now"] < 0.1
    observed = compared.power().query("measure == 'resolved' and assuming == 'as observed'").iloc[0]
    assert observed["more_tasks"] > plan["more_tasks"]


def test_arms_of_which_the_same_claim_is_not_shown_share_a_sentence() -> None:
    found = paired(SMALL)
    again = [{**r, "arm": "strict"} for r in found.rows if r["arm"] == "lean"]
    lock = {**found.lock, "sessions": [{"arms": ["base", "lean", "strict"]}]}
    said = compare(Results([*found.rows, *again], lock)).verdicts[-1]
    assert said.startswith("Not shown: that an arm resolves no more than 3 points fewer tasks than base: lean (p = ")
    assert (said.count("3 points"), said.count(", strict (p = ")) == (1, 1)


def test_an_arm_that_is_worse_is_called_worse() -> None:
    said = " ".join(compare(paired([("n", "y")] * 20 + [("y", "y")] * 20 + [("y", "n")] * 2)).sentences())
    assert "-42.9 points resolved (95 % interval" in said, "tokens were judged first, at 97.5 %"
    assert "lean resolves fewer tasks than base" in said


def test_a_loop_that_resolves_nothing_is_not_called_as_good_as_one_that_resolves_nothing() -> None:
    compared = compare(paired([("n", "n")] * 300))
    assert not row(compared, "resolved")["holds"]
    assert "a loop which resolves nothing would be as close" in compared.verdicts[1]


def test_an_arm_that_resolves_much_more_than_a_baseline_at_the_floor_is_said_to() -> None:
    compared = paired([("y", "n")] * 30 + [("n", "n")] * 20).compare("base")
    assert compared.verdicts[0].startswith(
        "Shown: lean resolves no more than 3 points fewer tasks than base (p < 0.001)"
    )


def test_an_arm_that_is_worse_by_more_than_the_margin_is_only_said_to_be_worse() -> None:
    (said,) = paired([("n", "y")] * 30 + [("y", "y")] * 20).compare("base").verdicts
    assert said.startswith("Shown: lean uses fewer prompt tokens")
    assert said.endswith("; lean resolves fewer tasks than base.")


MISSING: list[Pair] = [*LARGE[:-12], *[("!", "n")] * 4, *[("n", "u")] * 2, *[("!", "!")], *[("u", "y")] * 5]


@pytest.mark.parametrize(
    ("policy", "estimate", "bounds"),
    [
        # lean's 4 + 1 + 5 missing are not resolved, base's 2 + 1 are: -2 - 1 - 5 of 200
        ("worst", (12 - 6 - 2 - 1 - 5) / 200, None),
        ("drop", 6 / 188, None),
        ("bounds", 6 / 188, ((12 - 6 - 2 - 1 - 5) / 200, (12 - 6 + 4 + 1) / 200)),
    ],
)
def test_missing_pairs_follow_the_policy_and_are_counted(
    policy: Any, estimate: float, bounds: tuple[float, float] | None
) -> None:
    compared = compare(paired(MISSING), missing=policy)
    found = row(compared, "resolved")
    assert (found["pairs"], found["missing"], found["missing_here"], found["missing_baseline"]) == (200, 12, 10, 3)
    assert found["policy"] == policy
    assert found["estimate"] == pytest.approx(estimate)
    if bounds:
        assert found["low"] < bounds[0] < bounds[1] < found["high"]
    said = next(s for s in compared.sentences() if "are missing" in s)
    assert "; 12 of 200 pairs are missing (10 in lean, 3 in base): " in said
    assert f"(policy {policy})" in said


def test_missing_pairs_cannot_make_an_arm_look_better_or_a_difference_surer() -> None:
    whole = compare(paired(LARGE))
    lost = compare(paired([("!", "n") if i % 20 == 0 else p for i, p in enumerate(LARGE)]))
    for measure in ("resolved", "input_tokens"):
        assert row(lost, measure)["estimate"] >= row(whole, measure)["estimate"] or measure == "resolved"
        assert row(lost, measure)["p"] >= row(whole, measure)["p"]
    assert row(lost, "resolved")["estimate"] < row(whole, "resolved")["estimate"]


def test_pairs_that_are_missing_decide_nothing_about_a_difference() -> None:
    """Ten faults of the machine under an arm that is otherwise the same: worse at worst, but not shown to be worse."""
    found = row(compare(paired([("y", "y")] * 30 + [("!", "y")] * 10)), "resolved")
    assert found["estimate"] == pytest.approx(-0.25)
    assert found["p_difference"] == 1.0
    own = row(compare(paired([("y", "y")] * 30 + [("?", "y")] * 10)), "resolved")
    assert (own["estimate"], own["missing"]) == (pytest.approx(-0.25), 0), "a crash of its own is not missing"
    assert own["p_difference"] == pytest.approx(2 / 2**10)


def test_seeds_of_a_task_and_tasks_of_a_repository_count_as_clusters() -> None:
    seeds = row(compare(paired(LARGE, seeds=2)), "resolved")
    assert (seeds["pairs"], seeds["tasks"], seeds["clusters"], seeds["clustered_by"]) == (200, 100, 100, "task")
    alone = row(compare(paired(LARGE)), "resolved")
    assert seeds["high"] - seeds["low"] > alone["high"] - alone["low"]
    assert seeds["p"] > alone["p"]
    repositories = [{"repo": f"r{i // 10}"} for i in range(200)]
    found = compare(paired(LARGE, facts=repositories))
    assert row(found, "resolved")["clustered_by"] == "repository"
    assert row(found, "resolved")["clusters"] == 20
    assert "clustered by repository (20 clusters)" in found.sentences()[-1]
    few = compare(paired(LARGE, facts=[{"repo": f"r{i // 50}"} for i in range(200)]))
    assert row(few, "resolved")["clustered_by"] == "task"
    assert "too few repositories or families to cluster by" in few.sentences()[-1]
    forced = compare(paired(LARGE, facts=[{"repo": f"r{i // 50}"} for i in range(200)]), cluster="repo")
    assert row(forced, "resolved")["clusters"] == 4


def test_a_model_that_differs_by_arm_tells_the_arms_apart() -> None:
    rows = [
        {"task": n, "arm": arm, "model": model, "resolved": n % of == 0}
        for n in range(40)
        for arm, model, of in (("a", "gpt", 4), ("b", "qwen", 2))
    ]
    found = row(compare(rows), "resolved")
    assert (found["arm"], found["baseline"], found["estimate"]) == ("b", "a", pytest.approx(0.25))
    models = [{**r, "arm": "lean"} for r in rows]
    found = row(compare(models), "resolved")
    assert (found["arm"], found["baseline"], found["estimate"]) == ("lean qwen", "lean gpt", pytest.approx(0.25))


def test_many_seeds_of_one_task_show_nothing() -> None:
    """They say how sure the outcome of this task is, and nothing about other tasks."""
    compared = compare(paired([("y", "n")] * 20, seeds=20))
    assert not any(c.holds for c in compared.contrasts)
    found = row(compared, "resolved")
    assert (found["clusters"], found["design"]) == (1, 20)
    assert found["low"] < 0
    assert row(compared, "input_tokens")["spread"] != row(compared, "input_tokens")["spread"], "not known"
    assert set(compared.power()["measure"]) == {"resolved"}, "of one task no spread is known, so nothing is planned"


@pytest.mark.parametrize(("n", "shown"), [(19, False), (20, True)])
def test_a_handful_of_tasks_gets_ratios_but_no_claims(n: int, shown: bool) -> None:
    compared = compare(paired([("y", "y")] * n), family=("input_tokens",))
    assert row(compared, "input_tokens")["holds"] == shown
    said = str(compared)
    if not shown:
        assert "no interval: that of a ratio needs 20 tasks" in said
        assert "no claim is judged; 0 of 1 intervals exclude no difference" in said
    plan = compared.power().query("measure == 'input_tokens'").iloc[0]
    assert (plan["needed"], plan["power_now"] > 0) == (20, shown)
    clustered = compare(paired([("y", "y")] * 20, seeds=5)).power().query("measure == 'input_tokens'").iloc[0]
    assert (clustered["needed"], clustered["power_now"]) == (100, 0), "20 tasks of 5 seeds each"


def test_tasks_of_two_suites_are_two_tasks_also_where_they_have_the_same_id() -> None:
    """Suites that number their tasks from 1 have nothing in common; of variants of one task the rows say `cluster`."""
    one, two = paired(SMALL), paired(SMALL)
    rows = [*one.rows, *({**r, "suite": "other"} for r in two.rows)]
    found = row(compare(Results(rows, one.lock)), "resolved")
    assert (found["tasks"], found["pairs"], found["clusters"]) == (72, 72, 72)
    variants = [{**r, "cluster": r["task"]} for r in rows]
    assert row(compare(Results(variants, one.lock)), "resolved")["clusters"] == 36


def test_without_a_margin_a_worse_arm_can_be_shown_to_differ_by_more_tasks() -> None:
    compared = compare(paired([("n", "y")] * 6 + [("y", "n")] * 3 + [("n", "n")] * 16), margin=0)
    plan = compared.power().query("measure == 'resolved'").iloc[0]
    assert plan["power_now"] > 0.05
    assert plan["more_tasks"] > 50


def test_without_a_margin_the_claim_is_a_difference() -> None:
    compared = compare(paired([("y", "n")] * 12 + [("y", "y")] * 30), margin=0)
    assert row(compared, "resolved")["claim"] == "differs"
    assert row(compared, "resolved")["p"] == row(compared, "resolved")["p_difference"] == pytest.approx(2 / 2**12)
    assert "+28.6 points resolved (95 % interval 14.4 to 43.6)" in compared.sentences()[0]
    assert compared.verdicts[0].endswith("no claim is judged; 2 of 2 intervals exclude no difference.")


def test_a_larger_family_makes_every_claim_harder() -> None:
    one, more = compare(paired(LARGE), family=("resolved",)), compare(paired(LARGE), family=("resolved", "seconds"))
    assert row(one, "resolved")["p_holm"] == row(one, "resolved")["p"] < row(more, "resolved")["p_holm"]
    assert "there is one claim" in one.sentences()[-1]
    assert "0.72 times the prompt tokens (95 % interval" in one.sentences()[0], "no claim, so a plain interval"


def test_the_findings_of_each_arm_are_values_and_the_sentences_are_made_of_them() -> None:
    compared = compare(paired(SMALL))
    assert [(of.arm, {c.arm for c in of.contrasts}) for of in compared.by_arm] == [("lean", {"lean"})]
    assert [compared.by_arm[0].sentence, *compared.verdicts, compared.noise, compared.methods] == compared.sentences()
    assert len(compared.plans) == len(compared.power())


def test_each_model_is_compared_by_itself() -> None:
    both = Results([*paired(LARGE).rows, *paired(SMALL, model="local:n").rows], paired(LARGE).lock)
    frame = compare(both).frame().query("measure == 'resolved'")
    assert dict(zip(frame["model"], frame["pairs"], strict=True)) == {"local:m": 200, "local:n": 36}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"baseline": "react"}, "there is no arm 'react'; there are base, lean"),
        ({"missing": "ignore"}, "there is no policy 'ignore' for missing pairs; use worst, drop, bounds"),
        ({"family": ("tokens",)}, "there is no measure 'tokens'; there are resolved, input_tokens"),
        ({"margin": 3}, "margin is a share: give 0.03 for 3 points"),
        ({"cluster": "repo"}, "not every task has a 'repo'; cluster by a column that all rows have, or by 'task'"),
    ],
)
def test_wrong_options_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(StudyError, match=message):
        compare(paired(SMALL), **wrong)


@pytest.mark.parametrize("asked", [compare, lambda results: results.baseline])
def test_a_study_without_episodes_says_so(asked: Callable[[Results], Any]) -> None:
    with pytest.raises(StudyError, match="no episode"):
        asked(Results([], {"name": "made"}))


def test_ratios_beyond_what_a_float_holds_are_ratios() -> None:
    found = compare(paired([("y", "y")] * 8, tokens=[(1e-200, 1e200)] * 8))
    assert next(c for c in found.contrasts if c.measure == "input_tokens").estimate == 0.0


def test_one_arm_has_nothing_to_be_compared_with() -> None:
    alone = [r for r in paired(SMALL).rows if r["arm"] == "lean"]
    with pytest.raises(StudyError, match="a comparison needs two arms; there is only lean"):
        compare(Results(alone))


def test_a_study_in_which_nothing_is_known_says_so() -> None:
    said = " ".join(compare(paired([("!", "!")] * 5)).sentences())
    assert "whether tasks were resolved is not known for enough pairs to compare them" in said
    unjudged = compare(paired([("u", "u")] * 30)).verdicts
    assert "fewer prompt tokens than base" in unjudged[0]


@pytest.mark.slow
def test_without_scipy_a_comparison_names_the_extra() -> None:
    code = (
        "import sys; sys.modules['scipy'] = None\n"
        "from rlm_loop.study import StudyError, statistics\n"
        "assert statistics.mean([1, 2]) and 'numpy' not in sys.modules\n"
        "try: statistics.mcnemar\nexcept StudyError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == 'mcnemar needs scipy: pip install -e ".[studies]" in your clone of rlm_loop'


def test_a_study_can_be_read_while_it_runs() -> None:
    frame = sequential(paired([("y", "n"), ("y", "y"), ("n", "n")] * 60), "lean")
    assert frame["tasks"].tolist() == list(range(1, 181))
    assert (frame["low"] <= frame["estimate"]).iloc[5:].all()
    assert frame["low"].is_monotonic_increasing
    decided = frame[frame["decision"] != "go on"]
    assert len(decided)
    assert set(decided["decision"]) == {"no more than 3 points fewer"}
    assert decided["tasks"].iloc[0] > 5


def test_an_unfinished_task_waits_for_its_seeds() -> None:
    frame = sequential(paired([("y", "n")] * 5, seeds=2), "lean")
    assert frame["task"].tolist() == ["t0", "t1"]
    bounds = sequential(paired([("!", "n")] * 3), "lean")
    assert bounds["estimate"].isna().all()
    assert sequential(paired([("!", "n")] * 3), "lean", missing="drop").empty


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"arm": "react"}, "there is no arm 'react'"),
        ({"arm": "lean", "missing": "guess"}, "missing must be one of"),
    ],
)
def test_wrong_options_of_a_sequence_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(StudyError, match=message):
        sequential(paired(SMALL), **wrong)


def test_pairs_under_way_are_not_lost_to_a_sequence() -> None:
    """40 tasks on which both arms are alike, and 12 that only the baseline was tried on yet."""
    outcomes: list[Pair] = [("y", "y")] * 40
    frame = sequential(paired([*outcomes, *[("-", "y")] * 12]), "lean")
    assert frame.equals(sequential(paired(outcomes), "lean"))
    assert len(frame) == 40


def test_a_sequence_is_never_decided_from_missing_pairs() -> None:
    """Two arms that are alike wherever both are known; of each in turn two of five episodes are lost."""
    for lost in (("!", "y"), ("y", "!")):
        frame = sequential(paired([("y", "y"), ("n", "n"), ("y", "y"), lost, lost] * 40), "lean", margin=0)
        assert set(frame["decision"]) == {"go on"}
        assert frame["estimate"].iloc[-1] == 0

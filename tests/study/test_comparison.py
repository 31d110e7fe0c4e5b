"""Comparing arms: figures, missing pairs, clusters, families, power, and the sentences."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from paired_rows import Pair, paired

from rlm_loop.study import Analysis, Comparison, Results, StudyError, compare, is_resolved, sequential
from rlm_loop.study.statistics import newcombe_interval, wilson_interval

#: 200 tasks: both 90, only lean 12, only base 6, neither 92.
LARGE: list[Pair] = [("y", "y")] * 90 + [("y", "n")] * 12 + [("n", "y")] * 6 + [("n", "n")] * 92
SMALL: list[Pair] = [("y", "y")] * 12 + [("y", "n")] * 3 + [("n", "y")] * 4 + [("n", "n")] * 17
#: Two rows of one cell.
TWICE = Results([*paired(SMALL).rows, {**paired(SMALL).rows[0], "resolved": False}], paired(SMALL).lock)


def row(compared: Comparison | Results, measure: str = "resolved") -> dict[str, Any]:
    frame = (compared if isinstance(compared, Comparison) else compare(compared)).frame()
    return frame[frame["measure"] == measure].iloc[0].to_dict()


def test_a_comparison_with_everything_there() -> None:
    compared = compare(paired(LARGE))
    found = row(compared)
    low, high = newcombe_interval(90, 12, 6, 92)
    assert [found[name] for name in ("arm", "baseline", "pairs", "missing", "holds")] == ["lean", "base", 200, 0, True]
    assert (found["estimate"], found["low"], found["high"]) == pytest.approx((0.03, float(low), float(high)))
    assert found["value"] - found["baseline_value"] == pytest.approx(0.03)
    tokens = row(compared, "input_tokens")
    assert 0.5 < tokens["low"] < tokens["estimate"] < tokens["high"] < 1
    assert tokens["p_holm"] == pytest.approx(max(tokens["p"], min(2 * tokens["p"], 1.0)), abs=0.02)
    assert math.isnan(row(compared, "output_tokens")["p_holm"]), "outside the family"
    assert math.isnan(row(compared, "cost")["estimate"]), "a ratio of nothing is not known"
    first, shown, noise, methods = said = compared.sentences()
    assert first == (
        "lean against base, on 200 tasks with local:m: +3.0 points resolved (95 % interval -1.2 to 7.2); 0.72 times "
        "the prompt tokens (97.5 % interval 0.70 to 0.73)."
    )
    assert shown.startswith("Shown: lean resolves no more than 3 points fewer tasks than base (p = 0.0")
    assert "; lean uses fewer prompt tokens than base (p < 0.001)." in shown
    assert noise.startswith("No noise floor was measured")
    assert (methods, str(compared)) == (compared.methods, "\n".join(said))
    assert paired(LARGE).compare("base").sentences() == said


def test_what_is_not_shown_is_said() -> None:
    compared = compare(paired(SMALL, tokens=[(100 + (-1) ** i * i, 100) for i in range(36)]))
    (said,) = compared.verdicts
    assert said.startswith("Not shown: that lean resolves no more than 3 points fewer tasks than base (p = ")
    assert "; that lean and base differ in prompt tokens (p = " in said


def test_arms_of_which_the_same_claim_is_not_shown_share_a_sentence() -> None:
    found = paired(SMALL)
    again = [{**r, "arm": "strict"} for r in found.rows if r["arm"] == "lean"]
    lock = {**found.lock, "sessions": [{"arms": ["base", "lean", "strict"]}]}
    said = compare(Results([*found.rows, *again], lock)).verdicts[-1]
    assert said.startswith("Not shown: that an arm resolves no more than 3 points fewer tasks than base: lean (p = ")
    assert (said.count("3 points"), said.count(", strict (p = ")) == (1, 1)


WORSE: list[Pair] = [("n", "y")] * 30 + [("y", "y")] * 20


@pytest.mark.parametrize(
    ("pairs", "holds", "said"),
    [
        ([*WORSE[10:], ("y", "n"), ("y", "n")], False, "-42.9 points resolved (95 % interval"),  # tokens: 97.5 %
        (WORSE, False, "Shown: lean uses fewer prompt tokens"),
        (WORSE, False, "; lean resolves fewer tasks than base."),
        ([("u", "u")] * 30, False, "fewer prompt tokens than base"),  # what is not judged is not compared
        ([("n", "n")] * 300, False, "a loop which resolves nothing would be as close"),
        ([("y", "n")] * 30 + [("n", "n")] * 20, True, "no more than 3 points fewer tasks than base (p < 0.001)"),
    ],
)
def test_an_arm_is_called_better_or_worse_as_far_as_is_shown(pairs: list[Pair], holds: bool, said: str) -> None:
    compared = compare(paired(pairs))
    assert (row(compared)["holds"], said in str(compared)) == (holds, True)


MISSING: list[Pair] = [*LARGE[:-12], *[("!", "n")] * 4, *[("n", "u")] * 2, *[("!", "!")], *[("u", "y")] * 5]


@pytest.mark.parametrize(
    ("policy", "estimate"),
    # lean's 4 + 1 + 5 missing are not resolved, base's 2 + 1 are: -2 - 1 - 5 of 200
    [("worst", (12 - 6 - 2 - 1 - 5) / 200), ("bounds", 6 / 188)],
)
def test_missing_pairs_follow_the_policy_and_are_counted(policy: Any, estimate: float) -> None:
    compared = compare(paired(MISSING), analysis=Analysis("base", 0.03, missing=policy))
    found = row(compared)
    assert (found["pairs"], found["missing"], found["missing_here"], found["missing_baseline"]) == (200, 12, 10, 3)
    assert (found["policy"], found["estimate"]) == (policy, pytest.approx(estimate))
    if policy == "bounds":
        assert found["low"] < (12 - 6 - 2 - 1 - 5) / 200 < (12 - 6 + 4 + 1) / 200 < found["high"]
    said = next(s for s in compared.sentences() if "; 12 of 200 pairs are missing (10 in lean, 3 in base): " in s)
    assert f"(policy {policy})" in said


def test_missing_pairs_cannot_make_an_arm_look_better_or_a_difference_surer() -> None:
    whole = compare(paired(LARGE))
    lost = compare(paired([("!", "n") if i % 20 == 0 else p for i, p in enumerate(LARGE)]))
    for measure in ("resolved", "input_tokens"):
        assert row(lost, measure)["p"] >= row(whole, measure)["p"]
    assert row(lost, "input_tokens")["estimate"] >= row(whole, "input_tokens")["estimate"]
    assert row(lost)["estimate"] < row(whole)["estimate"]


def test_pairs_that_are_missing_decide_nothing_about_a_difference() -> None:
    """Ten faults of the machine under an arm that is otherwise the same: worse at worst, but not shown to be worse."""
    found = row(paired([("y", "y")] * 30 + [("!", "y")] * 10))
    assert (found["estimate"], found["missing"], found["p_difference"]) == (pytest.approx(-0.25), 10, 1.0)
    own = row(paired([("y", "y")] * 30 + [("?", "y")] * 10))  # a crash of its own is not missing
    assert (own["estimate"], own["missing"], own["p_difference"]) == pytest.approx((-0.25, 0, 2 / 2**10))
    known = row(compare(paired([("y", "y")] * 30 + [("n", "n")] * 10 + [("n", "u")] * 20), analysis=Analysis("base")))
    assert (known["p"], known["p_difference"], known["holds"]) == (1.0, 1.0, False)


@pytest.mark.parametrize(
    ("size", "by", "clusters", "said"),
    [
        (10, "repository", 20, "clustered by repository (20 clusters)"),
        (50, "task", 200, "too few repositories or families to cluster by"),
    ],
)
def test_tasks_of_a_repository_count_as_a_cluster(size: int, by: str, clusters: int, said: str) -> None:
    compared = compare(paired(LARGE, facts=[{"repo": f"r{i // size}"} for i in range(200)]))
    assert (row(compared)["clustered_by"], row(compared)["clusters"]) == (by, clusters)
    assert said in compared.methods


def test_a_model_that_differs_by_arm_tells_the_arms_apart() -> None:
    rows = [
        {"task": n, "arm": arm, "model": model, "resolved": n % of == 0}
        for n in range(40)
        for arm, model, of in (("a", "gpt", 4), ("b", "qwen", 2))
    ]
    found = row(compare(rows))
    assert (found["arm"], found["baseline"], found["estimate"]) == ("b", "a", pytest.approx(0.25))


def test_many_seeds_of_one_task_show_nothing() -> None:
    """They say how sure the outcome of this task is, and nothing about other tasks."""
    compared = compare(paired([("y", "n")] * 20, seeds=20))
    assert not any(c.holds for c in compared.contrasts)
    found = row(compared)
    assert (found["clusters"], found["low"] < 0) == (1, True)


@pytest.mark.parametrize(("n", "shown"), [(19, False), (20, True)])
def test_a_handful_of_tasks_gets_ratios_but_no_claims(n: int, shown: bool) -> None:
    compared = compare(paired([("y", "y")] * n), analysis=Analysis("base", family=("input_tokens",)))
    assert row(compared, "input_tokens")["holds"] == shown
    for said in ("no interval: that of a ratio needs 20 tasks", "no claim is judged; 0 of 1 intervals"):
        assert (said in str(compared)) != shown


def test_tasks_of_two_suites_are_two_tasks_also_where_they_have_the_same_id() -> None:
    """Suites that number their tasks from 1 have nothing in common; of variants of one task the rows say `cluster`."""
    one, two = paired(SMALL), paired(SMALL)
    rows = [*one.rows, *({**r, "suite": "other"} for r in two.rows)]
    found = row(Results(rows, one.lock))
    assert (found["tasks"], found["pairs"], found["clusters"]) == (72, 72, 72)
    assert row(Results([{**r, "cluster": r["task"]} for r in rows], one.lock))["clusters"] == 36


def test_seeds_of_one_arm_are_a_noise_floor() -> None:
    found = compare(paired([("y", "y"), ("n", "y"), ("y", "n"), ("y", "n"), ("n", "n"), ("n", "n")], seeds=2))
    assert [(floor.arm, floor.pairs, floor.apart) for floor in found.noise_floors] == [("base", 3, 0), ("lean", 3, 1)]
    assert "lean 1 of 3 (33.3 %" in found.noise


def test_without_a_margin_the_claim_is_a_difference_of_a_worse_arm_too() -> None:
    compared = compare(paired([("y", "n")] * 12 + [("y", "y")] * 30), analysis=Analysis("base"))
    found = row(compared)
    assert (found["claim"], found["p"], found["p_difference"]) == ("differs", *[pytest.approx(2 / 2**12)] * 2)
    assert "+28.6 points resolved (95 % interval 14.4 to 43.6)" in compared.sentences()[0]
    assert compared.verdicts[0].endswith("no claim is judged; 2 of 2 intervals exclude no difference.")


def test_a_larger_family_makes_every_claim_harder() -> None:
    families = (("resolved",), ("resolved", "seconds"))
    one, more = (compare(paired(LARGE), analysis=Analysis("base", 0.03, family)) for family in families)
    assert row(one)["p_holm"] == row(one)["p"] < row(more)["p_holm"]
    assert "there is one claim" in one.sentences()[-1]
    assert "0.72 times the prompt tokens (95 % interval" in one.sentences()[0], "no claim, so a plain interval"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: compare(paired(SMALL), "react"), "there is no arm 'react'; there are base, lean"),
        (lambda: Analysis(missing="ignore"), "there is no policy 'ignore' for missing pairs"),  # type: ignore[arg-type]
        (lambda: Analysis(family=("tokens",)), "no measure 'tokens'; there are resolved, input_tokens"),
        (lambda: Analysis(margin=3), "margin is a share: give 0.03 for 3 points"),
        (lambda: compare(Results([], {"name": "made"})), "no episode"),
        (lambda: Results([], {"name": "made"}).baseline, "no episode"),
        (lambda: compare(TWICE), "arm 'base' on task 't0' of suite 's', seed 0, with model local:m"),
        (lambda: sequential(paired(SMALL), "react"), "no arm 'react'"),
    ],
)
def test_what_cannot_be_compared_is_said(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(StudyError, match=message):
        call()


def test_a_study_can_be_read_while_it_runs() -> None:
    frame = sequential(paired([("y", "n"), ("y", "y"), ("n", "n")] * 60), "lean")
    assert frame["tasks"].tolist() == list(range(1, 181))
    assert (frame["low"] <= frame["estimate"]).iloc[5:].all()
    assert frame["low"].is_monotonic_increasing
    decided = frame[frame["decision"] != "go on"]
    assert set(decided["decision"]) == {"no more than 3 points fewer"}
    assert decided["tasks"].iloc[0] > 5


def test_an_unfinished_task_waits_for_its_seeds() -> None:
    frame = sequential(paired([("y", "n")] * 5, seeds=2), "lean")
    assert frame["task"].tolist() == ["t0", "t1"]
    bounds = sequential(paired([("!", "n")] * 3), "lean")
    assert bounds["estimate"].isna().all()


def test_what_is_under_way_is_left_out_and_not_lost() -> None:
    """40 tasks on which both arms are alike, and 12 that only the baseline was tried on yet."""
    whole, under_way = (paired([("y", "y")] * 40 + more) for more in ([], [("-", "y")] * 12))
    found = compare(under_way).contrasts[0]
    assert (under_way.left_out, found.pairs, found.missing, found.estimate) == (12, 40, 0, 0.0)
    assert len(sequential(whole, "lean")) == 40
    assert sequential(under_way, "lean").equals(sequential(whole, "lean"))


def test_a_sequence_is_never_decided_from_missing_pairs() -> None:
    """Two arms that are alike wherever both are known; of each in turn two of five episodes are lost."""
    for lost in (("!", "y"), ("y", "!")):
        frame = sequential(paired([("y", "y"), ("n", "n"), ("y", "y"), lost, lost] * 40), "lean", margin=0)
        assert set(frame["decision"]) == {"go on"}
        assert frame["estimate"].iloc[-1] == 0


# -- one denominator: what an episode counts as is the same in the summary, the comparison and the figures


@pytest.mark.parametrize(
    ("error", "calls", "counts_as"),
    [
        ("RuntimeError: the loop broke", 3, False),
        ("RateLimited: for good", 3, False),
        ("OSError: [Errno 28] No space left on device", 3, None),
        ("TraceUnwritable: cannot write the trace x: No space left on device", 3, None),
        ("WorkerLost: its worker ended in mid-episode", 3, None),
        ("AuthenticationFailed: no key", 0, None),
        ("ModelUnreachable: is the server running?", 0, None),
        ("ModelUnreachable: broke off", 3, False),
    ],
)
def test_what_a_crash_counts_as(error: str, calls: int, counts_as: bool | None) -> None:
    assert is_resolved({"resolved": False, "error": error, "calls": calls}) is counts_as


def test_an_arm_that_never_began_is_not_scored_and_empties_nothing() -> None:
    refused = {"error": "AuthenticationFailed: no key", "error_class": "AuthenticationFailed", "resolved": False}
    rows = [{**r, **refused} if r["arm"] == "lean" else r for r in paired([("n", "y")] * 12).rows]
    results = replace(paired([]), rows=rows)
    assert [(s.n, s.resolved, s.judged, s.rate) for s in results.summary()] == [(12, 12, 12, 1.0), (12, 0, 0, None)]
    assert "whether tasks were resolved is not known" in " ".join(compare(results).sentences())


def test_ten_equal_seeds_of_ten_tasks_are_ten_tasks() -> None:
    """5 of 10 tasks are resolved in all of their 10 seeds: the rate is known as of 10 tasks, not of 100."""
    outcomes: list[Pair] = [("y", "y") if i // 10 % 2 else ("n", "n") for i in range(100)]
    found, alone = paired(outcomes, seeds=10).summary()[0], paired(outcomes).summary()[0]
    assert (found.resolved, found.judged, found.rate) == (50, 100, 0.5)
    low, high = wilson_interval(0.5, 10)
    assert found.low <= low < 0.25 < 0.75 < high <= found.high
    assert [alone.low, alone.high] == pytest.approx([float(x) for x in wilson_interval(0.5, 100)])

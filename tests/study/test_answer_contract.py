"""The study of `experiments/answer_contract`: arms, tasks, plan, fairness, and its finding from scripted rows."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import dry_study as dry
import pytest

from experiments.answer_contract.study import PLAN, WEIGHTS, arms, strict
from experiments.tuning.best import Chosen
from rlm_loop import LeanAgent, ScriptedModel
from rlm_loop.study import Analysis, Results

pytest.importorskip("pandas")

NAME = "answer_contract"
ARMS = ["direct", "lean", "lean-strict", "code", "react"]


def test_its_arms_meet_128_tasks_of_test_splits() -> None:
    study = dry.loaded(NAME)
    by_arm, by_suite = dry.count(study)
    assert by_arm == dict.fromkeys(ARMS, 128)
    assert by_suite == {f"{suite}/test": count for suite, count in WEIGHTS.items()}
    assert dry.outside(study, "test") == []
    assert study.analysis == PLAN == Analysis(baseline="react", margin=0.03, family=("resolved",), missing="worst")


def test_what_differs_is_declared_and_needed() -> None:
    study = dry.loaded(NAME)
    assert dry.differing(study) == set(study.differs or ())


@pytest.mark.parametrize("presentation", ["text", "constrained"])
def test_the_lean_loops_differ_in_what_ends_a_run_alone(presentation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tuned = {
        False: Chosen("lean", "l", partial(LeanAgent, system="Call.", presentation=presentation)),
        True: Chosen("lean", "f", partial(LeanAgent, system="Call it.", presentation="text")),
    }

    def chosen(texts: str = "tuned", *, round2: str = "", free: bool = False) -> dict[str, Any]:
        default = real("default")
        return {**default, "lean": tuned[free]}

    import experiments.answer_contract.study as module

    real = module.chosen
    monkeypatch.setattr(module, "chosen", chosen)
    made = arms()
    pair = "lean-free" if presentation == "constrained" else "lean"
    assert ("lean-free" in made) == (presentation == "constrained")
    open_, closed = made[pair], made["lean-strict"]
    assert (open_.system, open_.presentation) == (closed.system, closed.presentation)  # type: ignore[attr-defined]
    assert (open_.limits() if hasattr(open_, "limits") else open_.budget) == closed.limits()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("replies", "answers"), [(["7"], ("7", None)), (['{"name": "final_answer", "arguments": {"answer": 7}}'], (7, 7))]
)
def test_only_a_call_ends_the_strict_loop(replies: list[str], answers: tuple[Any, Any]) -> None:
    lean = Chosen("lean", "lean", partial(LeanAgent, presentation="text"))
    common = {"max_steps": 2}
    model = lambda: ScriptedModel(replies * 4, name="local:m")  # noqa: E731
    free, closed = replace(lean.make(**common), model=model()), replace(strict(lean, **common), model=model())
    assert free.run("?").answer == answers[0]
    outcome = closed.run("?")
    assert (outcome.answer if outcome.answered else None) == answers[1]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Ten tasks, each of which every arm answers in the same way."""
    reply = "```python\ndef f(*a): return 1\nfinal_answer = 1\n```"
    found = dry.run_by_script(NAME, tmp_path_factory.mktemp("study"), 10, [reply, dry.REPLY])
    assert not found.crashed
    return found


def test_its_finding_holds_both_contracts(results: Results) -> None:
    pytest.importorskip("scipy")
    from experiments.answer_contract.finding import by_contract, figure, finding

    text = finding(results)
    for part in ("The loops suite by suite", "p Holm", "Each arm against react", "left behind", "figures/finding.png"):
        assert part in text
    assert {r["resolved"] for r in by_contract(results, "answer").rows} <= {True, False}
    assert figure(results).get_axes()


def test_its_headline_names_n_interval_contract_and_noise_floor(results: Results) -> None:
    pytest.importorskip("scipy")
    from experiments.answer_contract.headline import headline

    again = [("a", 0, True), ("a", 1, False), ("b", 0, True), ("b", 1, True)]
    noise = [{"arm": "code-w1", "suite": "s", "task": t, "seed": n, "resolved": v, "error": None} for t, n, v in again]
    text = headline(results, Results(noise))
    for part in (
        "**On 10 held tasks of 5 suites",
        "the code its run left behind",
        "interval",
        "in 50 % of pairs (1 of 2)",
    ):
        assert part in text
    assert "In no suite is an effect of the loop shown" in text
    assert "no more than 3 points fewer than ReAct. It is not shown for" in text
    assert "was not measured" in headline(results, None)


def test_a_contract_decides_what_is_resolved() -> None:
    from experiments.answer_contract.finding import by_contract

    row = {
        "suite": "humaneval/test",
        "resolved": True,
        "error": None,
        "by_submission": {"artifact": True, "answer": False},
    }
    plain = {"suite": "tables/test", "resolved": True, "error": None}
    found = [r["resolved"] for c in ("artifact", "answer") for r in by_contract(Results([row, plain]), c).rows]
    assert found == [True, True, False, True]


def test_cochrans_q_is_that_of_all_permutations() -> None:
    np = pytest.importorskip("numpy")
    from experiments.answer_contract.loop_effect import permutation_p

    table = np.array([[1, 0, 0], [1, 0, 0], [1, 1, 0], [1, 0, 1], [0, 0, 0], [1, 1, 1]], float)
    telling = [[1, 0, 0], [1, 0, 0], [1, 1, 0], [1, 0, 1]]
    sums = [sorted({p for p in product((0, 1), repeat=3) if sum(p) == sum(row)}) for row in telling]
    seen = sum(x * x for x in map(sum, zip(*telling, strict=True)))
    every = [sum(x * x for x in map(sum, zip(*rows, strict=True))) for rows in product(*sums)]
    exact = sum(x >= seen for x in every) / len(every)
    assert math.isclose(permutation_p(table, 20_000), exact, abs_tol=0.01)
    assert permutation_p(np.ones((4, 3))) == 1.0

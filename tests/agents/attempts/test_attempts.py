"""Retry and escalation: one account, attempts kept apart, and the hidden score out of reach."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from repair_tasks import FILE, call, checked, done, fix, right_line, sees_the_fix, task, wrong

from rlm_loop import Budget, LeanAgent, ReActAgent
from rlm_loop.accounting import UnknownPrice, tree_of
from rlm_loop.agents import Interrupted, outcome_of
from rlm_loop.agents.attempts import escalate, retry
from rlm_loop.agents.patches import generate_patch, visible_tests
from rlm_loop.models import ModelError, Reply, ScriptedModel
from rlm_loop.study import Study, load_study, verify_traces
from rlm_loop.tasks import Attempt, CheckResult, Score, Suite
from rlm_loop.traces import read
from rlm_loop.workspace import Workspace


def lean(*replies: Any, **settings: Any) -> LeanAgent:
    return LeanAgent(model=ScriptedModel(replies, name=settings.pop("named", "m")), presentation="native", **settings)


def prompts(agent: Any) -> list[str]:
    return ["\n".join(m.text for m in p.messages) for p in agent.model.prompts]


def text_of(agent: Any, call_number: int) -> str:
    return prompts(agent)[call_number]


# --- retry


@pytest.mark.parametrize(
    ("begin", "state", "old_patch"), [("fresh", "as they were before", False), ("patched", "hold that fix", True)]
)
def test_a_retry_is_told_what_failed(begin: Any, state: str, old_patch: bool) -> None:
    seen: list[str] = []

    def look(prompt: Any) -> Reply:
        return call("read_file", path=FILE)

    def answer(prompt: Any) -> Reply:
        seen.append(prompt.messages[-1].text)
        return done()

    agent = lean(wrong("77"), done("first words"), look, answer)
    result = generate_patch(checked(), retry(agent, begin=begin))
    brief = text_of(agent, 2)
    assert "the check still fails:\nthe line is wrong" in brief
    assert state in brief
    assert "return 77" not in brief  # the conversation is a new one
    assert ("return 77" in seen[0]) == old_patch
    assert [one["passed"] for one in result.attempts] == [False, False]
    if begin != "fresh":
        assert result.patch.count("return 77") == 1
    causes = result.outcome.ledger.by_cause()
    assert causes["scaffold:repair"] > 0


def test_it_stops_at_the_first_that_passes() -> None:
    agent = lean(wrong(), done(), fix(), done(), wrong(), done())
    result = generate_patch(checked(), retry(agent, 5, begin="fresh"))
    assert (result.chosen, len(result.attempts), result.evidence["check"]) == (1, 2, True)
    assert task().score(Attempt(None, result.patch, False)).resolved
    assert len(agent.model.prompts) == 4  # pyright: ignore[reportAttributeAccessIssue]


def test_where_none_passes_the_one_with_the_most_tests_is_taken_else_the_last() -> None:
    results = iter([{"a": "passed", "b": "passed"}, {"a": "passed", "b": "failed"}])
    check = lambda space: CheckResult(False, "no", next(results))  # noqa: E731
    agent = lean(wrong("1"), done(), wrong("2"), done())
    result = generate_patch(task(), retry(agent, check=check, begin="fresh"))
    assert result.chosen == 0
    assert "return 1" in result.patch
    agent = lean(wrong("1"), done(), wrong("2"), done())
    result = generate_patch(task(), retry(agent, check=lambda space: CheckResult(False), begin="fresh"))
    assert result.chosen == 1
    agent = lean(wrong("1"), done(), done())
    result = generate_patch(task(), retry(agent, check=lambda space: CheckResult(False), begin="fresh"))
    assert result.chosen == 0  # the last one changed nothing


# --- who judges


def test_without_a_visible_check_nothing_is_run() -> None:
    agent = lean(fix(), done())
    for around in (retry(agent), escalate(agent, agent)):
        with pytest.raises(ValueError, match="give check="):
            around.attempt(task())
    assert prompts(agent) == []


def test_the_hidden_score_cannot_be_given_as_a_check() -> None:
    hidden = task()
    with pytest.raises(ValueError, match="hidden score"):
        retry(lean(fix()), check=hidden.score).attempt(hidden)  # pyright: ignore[reportArgumentType]
    wrapped = lambda space: hidden.score(Attempt(None, space.diff(), False))  # noqa: E731
    with pytest.raises(TypeError, match="CheckResult, got Score"):
        retry(lean(fix(), done()), check=wrapped).attempt(hidden)  # pyright: ignore[reportArgumentType]


def test_the_score_is_never_asked() -> None:
    def explode(attempt: Attempt) -> Score:
        raise AssertionError("the score was asked")

    watched = replace(checked(), score=explode)
    for around in (
        retry(lean(wrong(), done(), fix(), done())),
        escalate(lean(wrong(), done()), lean(fix(), done()), begin="patched"),
    ):
        assert generate_patch(watched, around).evidence["check"] is True


def test_a_check_gets_a_clean_checkout_with_the_patch_and_its_mess_is_not_in_the_result() -> None:
    def check(space: Workspace) -> CheckResult:
        (space.root / "mess.txt").write_text("x")
        assert right_line() in (space.root / FILE).read_text()
        return CheckResult(True)

    result = generate_patch(task(), retry(lean(fix(), done()), check=check))
    assert "mess" not in result.patch


@pytest.mark.slow
def test_the_tests_of_a_repository_as_a_check() -> None:
    files = {
        "m.py": "def f(): return 1\n",
        "test_m.py": "import m\ndef test_a(): assert m.f() == 2\ndef test_b(): pass\n",
    }
    with Workspace(files) as space:
        found = visible_tests()(space)
        assert not found.passed
        assert found.tests == {"test_m.py::test_a": "failed", "test_m.py::test_b": "passed"}
        assert "1 passed, 1 failed" in found.feedback
        assert visible_tests("test_m.py::test_b")(space).passed
        assert space.diff() == ""


# --- escalation


@pytest.mark.parametrize(
    ("begin", "told", "old_patch"), [(None, False, False), ("fresh", True, False), ("patched", True, True)]
)
def test_three_ways_to_hand_over(begin: Any, told: bool, old_patch: bool) -> None:
    fast = lean(wrong("77"), done("fast words"), named="fast")
    strong = lean(call("read_file", path=FILE), fix(), done(), named="strong")
    result = generate_patch(checked(), escalate(fast, strong, begin=begin))
    brief, after = text_of(strong, 0), strong.model.prompts[1].messages[-1].text  # pyright: ignore[reportAttributeAccessIssue]
    assert ("the line is wrong" in brief) == told
    assert ("return 77" in after) == old_patch
    assert result.chosen == 1
    assert [one["model"] for one in result.attempts] == ["fast", "strong"]
    assert result.outcome.model == "fast, strong"


def test_the_strong_model_is_not_asked_where_the_fast_one_was_right() -> None:
    strong = lean(named="strong")
    result = generate_patch(checked(), escalate(lean(fix(), done()), strong))
    assert (result.chosen, len(result.attempts), prompts(strong)) == (0, 1, [])


@pytest.mark.slow
def test_the_best_of_several_fast_attempts_is_handed_over() -> None:
    fast = retry(lean(wrong("1"), done(), wrong("2"), done()), begin="fresh")
    strong = lean(call("read_file", path=FILE), done())
    generate_patch(checked(), escalate(fast, strong, begin="patched"))
    assert "return 2" in strong.model.prompts[1].messages[-1].text  # pyright: ignore[reportAttributeAccessIssue]


# --- one account


def test_every_call_is_charged_once_and_attempts_stay_apart(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    fast = retry(lean(wrong("1"), done(), wrong("2"), done(), named="fast"), begin="fresh")
    strong = lean(fix(), done(), named="strong")
    outcome = escalate(fast, strong).attempt(checked(), trace=path)
    calls = outcome.ledger.calls
    assert [c.node for c in calls] == ["0.1", "0.1", "0.2", "0.2", "0.3", "0.3"]
    assert [c.turn for c in calls] == [1, 2, 3, 4, 5, 6]
    assert outcome.usage.calls == 6
    assert outcome.usage.input_tokens == sum(r.tokens for r in outcome.ledger.rows)
    record = read(path)
    assert record.end is not None
    assert record.end["node"] == "0"
    again = outcome_of(record)
    assert again.ledger.calls == calls
    assert (again.turns, again.usage, again.artifact) == (outcome.turns, outcome.usage, outcome.artifact)
    tree = tree_of(record)
    assert [n.node for n in tree.nodes] == ["0", "0.1", "0.2", "0.3"]
    assert [n.steps for n in tree.nodes] == [0, 2, 2, 2]
    assert tree["0"].ok


@pytest.mark.parametrize(
    ("budget", "attempts", "calls"),
    [
        (Budget(steps=2, malformed=None, tool_failures=None), 1, 2),
        (Budget(steps=3, malformed=None, tool_failures=None), 2, 3),
        (Budget(steps=None, calls=3), 2, 3),
        (Budget(steps=None, calls=2), 1, 2),
        (Budget(steps=None, seconds=0), 1, 0),
        (Budget(steps=0), 1, 0),
    ],
)
def test_the_budget_of_the_whole_holds(budget: Budget, attempts: int, calls: int) -> None:
    agent = lean(*[wrong(), done()] * 9)
    result = generate_patch(checked(), retry(agent, 5, begin="fresh", budget=budget))
    assert (len(result.attempts), result.usage.calls) == (attempts, calls)


def test_a_cost_limit_of_the_whole_needs_every_price() -> None:
    with pytest.raises(UnknownPrice):
        retry(lean(fix()), budget=Budget(cost=1.0), check=sees_the_fix).attempt(task())
    priced = LeanAgent(model=ScriptedModel([wrong(), done()] * 5, price=(0.01, 0.01)), presentation="native")
    result = generate_patch(checked(), retry(priced, 4, begin="fresh", budget=Budget(steps=None, cost=10.0)))
    assert 1 <= len(result.attempts) < 5
    assert result.outcome.ledger.usage.calls == result.usage.calls


def test_each_agent_keeps_its_own_limits() -> None:
    agent = ReActAgent(
        model=ScriptedModel([wrong(), wrong("1"), wrong("2"), wrong("3")]),
        form="calls",
        presentation="native",
        max_steps=2,
    )
    result = generate_patch(checked(), retry(agent, begin="fresh"))
    assert [one["steps"] for one in result.attempts] == [2, 2]
    assert result.stop == "steps"


@pytest.mark.parametrize(
    ("end", "error", "stop", "calls"),  # a call that is interrupted may be billed
    [(ModelError("gone"), ModelError, "failed", 2), (KeyboardInterrupt, Interrupted, "interrupted", 3)],
)
def test_a_crash_in_a_later_attempt_keeps_what_the_earlier_ones_did(
    end: Any, error: type[BaseException], stop: str, calls: int, tmp_path: Path
) -> None:
    path = tmp_path / "t.jsonl"
    with pytest.raises(error) as caught:
        generate_patch(checked(), retry(lean(wrong("7"), done(), end), begin="fresh"), trace=path)
    result = caught.value.result  # pyright: ignore[reportAttributeAccessIssue]
    assert (result.stop, result.usage.calls, len(result.attempts)) == (stop, calls, 2)
    assert "return 7" in result.patch
    assert read(path).end["stop"] == stop  # pyright: ignore[reportOptionalSubscript]


def test_a_check_that_raises_is_a_fault_of_ours_with_the_patch_kept() -> None:
    def broken(space: Workspace) -> CheckResult:
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full") as caught:
        generate_patch(task(), retry(lean(fix(), done()), check=broken))
    assert right_line() in caught.value.result.patch  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:s. arms differ in budget")  # several attempts have no limit of steps of their own
def test_they_are_arms_of_a_study(tmp_path: Path) -> None:
    def replies(prompt: Any) -> Any:
        """Wrong at first; right once it was told that the check fails."""
        told = any(m.role == "user" and "still fails" in m.text for m in prompt.messages)
        results = sum(m.role == "tool" for m in prompt.messages)
        return done() if results else fix() if told else wrong("0")

    def arms(model: Any, seed: int) -> dict[str, Any]:
        agent = LeanAgent(model=ScriptedModel([replies] * 99, name="scripted"), presentation="native")
        return {
            "plain": agent,
            "retry": retry(agent),
            "two": escalate(agent, agent, begin="patched"),
        }

    study = Study("s", arms, Suite("repair", (checked(),)), seeds=(0,), model="scripted")
    results = study.run(tmp_path, progress=False)
    assert {r["arm"]: r["resolved"] for r in results.rows} == {"plain": False, "retry": True, "two": True}
    assert not results.crashed
    assert {r["arm"]: r["steps"] for r in results.rows}["retry"] == 4
    assert verify_traces(tmp_path) == []
    again = load_study(tmp_path)
    assert len(again.rows) == 3
    assert study.run(tmp_path, progress=False).rows == again.rows  # the same settings: nothing is run again


def test_a_model_and_seed_of_a_study_reach_the_agent() -> None:
    around = retry(LeanAgent(model="local"), check=sees_the_fix)
    shaped = replace(around, model="other", seed=3)
    inner: Any = shaped.agents()[0]
    assert (inner.model, inner.model.seed) == ("other", 3)
    assert around.settings() == replace(around, seed=3).settings()  # a seed is no part of what an arm is

"""Retry and escalation: runs that follow each other, judged by a check, with the hidden score out of reach."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from repair_tasks import FILE, call, checked, done, fix, right_line, task, wrong

from rlm_loop import LeanAgent, Outcome
from rlm_loop.agents import Interrupted
from rlm_loop.agents.attempts import escalate, retry
from rlm_loop.models import ModelError, Reply, ScriptedModel
from rlm_loop.tasks import Attempt, CheckResult, Score
from rlm_loop.traces import read_all
from rlm_loop.workspace import Workspace


def lean(*replies: Any, **settings: Any) -> LeanAgent:
    return LeanAgent(model=ScriptedModel(replies, name=settings.pop("named", "m")), presentation="native", **settings)


def prompts(agent: Any) -> list[str]:
    return ["\n".join(m.text for m in p.messages) for p in agent.model.prompts]


def passed(outcomes: list[Outcome]) -> list[Any]:
    return [(one.evidence or {})["check"] for one in outcomes]


def test_a_retry_goes_on_from_the_patch_and_is_told_what_failed() -> None:
    seen: list[str] = []

    def answer(prompt: Any) -> Reply:
        seen.append(prompt.messages[-1].text)
        return done()

    agent = lean(wrong("77"), done("first words"), call("read_file", path=FILE), answer)
    outcomes = retry(checked(), agent)
    brief = prompts(agent)[2]
    assert "the check still fails:\nthe line is wrong\nThe files hold that fix." in brief
    assert "return 77" not in brief  # the conversation is a new one
    assert "return 77" in seen[0]
    assert passed(outcomes) == [False, False]
    assert outcomes[-1].artifact.count("return 77") == 1
    assert outcomes[-1].ledger.by_cause()["scaffold:repair"] > 0


def test_it_stops_at_the_first_that_passes() -> None:
    agent = lean(wrong(), done(), fix(), done(), wrong(), done())
    outcomes = retry(checked(), agent, 5)
    assert passed(outcomes) == [False, True]
    assert [len(one.turns) for one in outcomes] == [2, 2]
    assert task().score(Attempt(None, outcomes[-1].artifact, False)).resolved
    assert len(prompts(agent)) == 4


def test_where_nothing_was_changed_the_model_is_told_that_the_files_are_as_before() -> None:
    agent = lean(done(), done())
    assert len(retry(checked(), agent)) == 2
    assert "The files are as they were before it." in prompts(agent)[1]


def test_escalation_begins_as_if_nobody_had_tried() -> None:
    fast = lean(wrong("77"), done("fast words"), named="fast")
    strong = lean(call("read_file", path=FILE), fix(), done(), named="strong")
    outcomes = escalate(checked(), fast, strong)
    assert "the line is wrong" not in prompts(strong)[0]
    assert "return 77" not in prompts(strong)[1]
    assert ([one.model for one in outcomes], passed(outcomes)) == (["fast", "strong"], [False, True])


def test_the_strong_model_is_not_asked_where_the_fast_one_was_right() -> None:
    strong = lean(named="strong")
    assert (len(escalate(checked(), lean(fix(), done()), strong)), prompts(strong)) == (1, [])


def test_without_a_visible_check_nothing_is_run() -> None:
    agent = lean(fix(), done())
    for attempts in (lambda: retry(task(), agent), lambda: escalate(task(), agent, agent)):
        with pytest.raises(ValueError, match="give check="):
            attempts()
    assert prompts(agent) == []


def test_the_hidden_score_cannot_be_given_as_a_check() -> None:
    hidden = task()
    with pytest.raises(ValueError, match="hidden score"):
        retry(hidden, lean(fix()), check=hidden.score)  # pyright: ignore[reportArgumentType]

    def wrapped(space: Workspace) -> Any:
        return hidden.score(Attempt(None, space.diff(), False))

    with pytest.raises(AttributeError):
        retry(hidden, lean(fix(), done()), check=wrapped)


def test_the_score_is_never_asked() -> None:
    def explode(attempt: Attempt) -> Score:
        raise AssertionError("the score was asked")

    outcomes = retry(replace(checked(), score=explode), lean(wrong(), done(), fix(), done()))
    assert passed(outcomes) == [False, True]


def test_a_check_gets_a_clean_checkout_with_the_patch_and_its_mess_is_not_in_the_result() -> None:
    def check(space: Workspace) -> CheckResult:
        (space.root / "mess.txt").write_text("x")
        assert right_line() in (space.root / FILE).read_text()
        return CheckResult(True)

    assert "mess" not in retry(task(), lean(fix(), done()), check=check)[0].artifact


def test_each_attempt_is_a_run_of_one_trace(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    outcomes = retry(checked(), lean(wrong("1"), done(), fix(), done()), trace=path)
    assert [record.id for record in read_all(path)] == [one.run for one in outcomes]


@pytest.mark.parametrize(
    ("end", "error"),
    [(ModelError("gone"), ModelError), (KeyboardInterrupt, Interrupted)],
)
def test_a_crash_in_a_later_attempt_keeps_what_the_earlier_ones_did(end: Any, error: type[BaseException]) -> None:
    with pytest.raises(error) as caught:
        retry(checked(), lean(wrong("7"), done(), end))
    (earlier,) = caught.value.attempts  # pyright: ignore[reportAttributeAccessIssue]
    assert "return 7" in earlier.artifact
    assert "return 7" in caught.value.outcome.artifact  # pyright: ignore[reportAttributeAccessIssue]


def test_a_check_that_raises_is_a_fault_of_ours_with_the_patch_kept() -> None:
    def broken(space: Workspace) -> CheckResult:
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full") as caught:
        retry(task(), lean(fix(), done()), check=broken)
    assert right_line() in caught.value.attempts[0].artifact  # pyright: ignore[reportAttributeAccessIssue]

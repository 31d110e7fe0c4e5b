"""The patch is there whatever the stop was; retry and escalation are runs that follow each other, judged by a check,
with the hidden score out of reach."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rlm_loop import Budget, LeanAgent, Outcome
from rlm_loop.agents.attempts import escalate, retry
from rlm_loop.models import ModelError, Reply, ScriptedModel
from rlm_loop.tasks import Attempt, CheckResult, Score, Task
from rlm_loop.traces import Trace, read_all
from rlm_loop.workspace import Workspace
from tests.agents.replies import broken_off, call

FILE, RIGHT = "solution.py", "    return 2 * n"


def score(attempt: Attempt) -> Score:
    return Score(f"+{RIGHT}\n" in str(attempt.artifact))


def sees_the_fix(space: Workspace) -> CheckResult:
    right = RIGHT in (space.root / FILE).read_text()
    return CheckResult(right, "" if right else "the line is wrong")


def files() -> Workspace:
    return Workspace({FILE: "def double(n):\n    return n + 3\n"})


TASK = Task("t", "Mend it.", score, workspace=files, needs_repl=False)
CHECKED = replace(TASK, check=sees_the_fix)


def edit(text: str, path: str = FILE) -> Reply:
    return call("apply_edit", path=path, start_line=2, end_line=2, replacement=text)


def wrong(word: str = "0") -> Reply:
    """An edit that compiles and is no fix."""
    return edit(f"    return {word}")


FIX, DONE, LOOK = edit(RIGHT), call("final_answer", answer="done"), call("read_file", path=FILE)


def lean(*replies: Any, named: str = "m", **settings: Any) -> LeanAgent:
    return LeanAgent(model=ScriptedModel(replies, name=named), presentation="native", **settings)


def prompts(agent: Any) -> list[str]:
    return ["\n".join(m.text for m in p.messages) for p in agent.model.prompts]


def passed(outcomes: list[Outcome]) -> list[Any]:
    return [(one.evidence or {})["check"] for one in outcomes]


@pytest.mark.parametrize(
    ("replies", "budget", "stop"),
    [
        ([FIX, DONE], Budget(), "answered"),
        ([FIX, wrong()], Budget(steps=1), "steps"),
        ([FIX, edit("x", path="no.py"), edit("x", path="nor.py")], Budget(tool_failures=2), "tool_failures"),
        ([FIX, Reply(""), Reply("")], Budget(malformed=2), "malformed"),
        ([FIX, *[call("search_code", query="x")] * 2], Budget(), "repeated"),
        ([FIX, DONE], Budget(calls=1), "calls"),
    ],
)
def test_the_diff_is_taken_whatever_the_stop(replies: list[Any], budget: Budget, stop: str) -> None:
    result = lean(*replies, budget=budget).attempt(TASK)
    assert (result.stop, score(Attempt(artifact=result.artifact)).resolved) == (stop, True)


def test_where_the_workspace_itself_breaks_the_last_patch_that_was_seen_is_kept() -> None:
    opened: list[Workspace] = []

    def remembered() -> Workspace:
        opened.append(files())
        return opened[-1]

    def remove(prompt: object) -> Reply:
        opened[0].close()
        raise ModelError("gone")

    with pytest.raises(ModelError) as caught:
        lean(FIX, remove).attempt(replace(TASK, workspace=remembered))
    assert f"+{RIGHT}" in caught.value.outcome.artifact


def test_the_trace_has_each_state_of_the_workspace_and_its_patch_once() -> None:
    trace = Trace()
    lean(wrong("0"), wrong("1"), wrong("0"), DONE).attempt(TASK, trace=trace)
    trees = [event for event in trace.events if event["event"] == "tree"]
    texts = {event["sha256"]: event["text"] for event in trace.events if event["event"] == "text"}
    # the third edit leads back to the first state
    assert (["return 0" in texts[tree["patch"]] for tree in trees], len(texts)) == ([True, False, True], 2)
    effects = [seen["effects"] for event in trace.events if event["event"] == "turn" for seen in event["observations"]]
    assert effects[0]["tree"] == effects[2]["tree"] == trees[0]["tree"]


def test_a_patch_that_is_too_large_is_left_out_of_the_trace_and_said_so() -> None:
    trace = Trace()
    trace.start()
    trace.patch("abc", "x" * 1_000_001, node="0")
    last = trace.events[-1]
    assert last == {**last, "event": "tree", "tree": "abc", "patch": None, "characters": 1_000_001}


def test_a_retry_goes_on_from_the_patch_and_is_told_what_failed() -> None:
    agent = lean(wrong("77"), call("final_answer", answer="first words"), LOOK, DONE)
    outcomes = retry(CHECKED, agent)
    brief, seen = prompts(agent)[2:]
    assert "the check still fails:\nthe line is wrong\nThe files hold that fix." in brief
    assert ["return 77" in prompt for prompt in (brief, seen)] == [False, True]  # the conversation is a new one
    assert (passed(outcomes), outcomes[-1].artifact.count("return 77")) == ([False, False], 1)
    assert outcomes[-1].ledger.by_cause()["scaffold:repair"] > 0


def test_it_stops_at_the_first_that_passes_and_each_attempt_is_a_run_of_one_trace(tmp_path: Path) -> None:
    agent, path = lean(wrong(), DONE, FIX, DONE, wrong(), DONE), tmp_path / "t.jsonl"
    outcomes = retry(CHECKED, agent, 5, trace=path)
    assert (passed(outcomes), [one.steps for one in outcomes]) == ([False, True], [2, 2])
    assert score(Attempt(artifact=outcomes[-1].artifact)).resolved
    assert [record.id for record in read_all(path)] == [one.run for one in outcomes]


def test_where_nothing_was_changed_the_model_is_told_that_the_files_are_as_before() -> None:
    agent = lean(DONE, DONE)
    retry(CHECKED, agent)
    assert "The files are as they were before it." in prompts(agent)[1]


def test_escalation_begins_as_if_nobody_had_tried() -> None:
    fast, strong = lean(wrong("77"), DONE, named="fast"), lean(LOOK, FIX, DONE, named="strong")
    outcomes = escalate(CHECKED, fast, strong)
    assert ("the line is wrong" in prompts(strong)[0], "return 77" in prompts(strong)[1]) == (False, False)
    assert ([one.model for one in outcomes], passed(outcomes)) == (["fast", "strong"], [False, True])
    strong = lean(named="strong")  # is not asked where the fast one was right
    assert (len(escalate(CHECKED, lean(FIX, DONE), strong)), prompts(strong)) == (1, [])


def test_without_a_visible_check_or_a_workspace_nothing_is_run() -> None:
    agent = lean(FIX, DONE)
    for attempts, says in (
        (lambda: retry(TASK, agent), "give check="),
        (lambda: escalate(TASK, agent, agent), "give check="),
    ):
        with pytest.raises(ValueError, match=says):
            attempts()
    assert prompts(agent) == []


def test_the_hidden_score_cannot_be_given_as_a_check_and_is_never_asked() -> None:
    def explode(attempt: Attempt) -> Score:
        raise AssertionError("the score was asked")

    def wrapped(space: Workspace) -> Any:
        return score(Attempt(artifact=space.diff()))

    with pytest.raises(ValueError, match="hidden score"):
        retry(TASK, lean(FIX), check=score)
    with pytest.raises(AttributeError):
        retry(TASK, lean(FIX, DONE), check=wrapped)
    assert passed(retry(replace(CHECKED, score=explode), lean(wrong(), DONE, FIX, DONE))) == [False, True]


def test_a_check_gets_a_clean_checkout_with_the_patch_and_its_mess_is_not_in_the_result() -> None:
    def check(space: Workspace) -> CheckResult:
        (space.root / "mess.txt").write_text("x")
        return sees_the_fix(space)

    (outcome,) = retry(TASK, lean(FIX, DONE), check=check)
    assert (passed([outcome]), "mess" in outcome.artifact) == ([True], False)


@broken_off
def test_a_crash_carries_the_partial_patch_and_the_earlier_attempts(breaks: Any, error: Any, stop: str) -> None:
    with pytest.raises(error) as caught:
        retry(CHECKED, lean(wrong("7"), DONE, FIX, breaks))
    (earlier,), outcome = caught.value.attempts, caught.value.outcome
    assert ("return 7" in earlier.artifact, outcome.stop, RIGHT in outcome.artifact) == (True, stop, True)


def test_a_check_that_raises_is_a_fault_of_ours_with_the_patch_kept() -> None:
    def broken(space: Workspace) -> CheckResult:
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full") as caught:
        retry(TASK, lean(FIX, DONE), check=broken)
    assert RIGHT in caught.value.attempts[0].artifact

"""The patch is there whatever the stop was, with what speaks for it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from repair_tasks import FILE, call, done, edit, fix, right_line, task, wrong

from rlm_loop import Budget, LeanAgent
from rlm_loop.agents import Interrupted
from rlm_loop.agents.attempts import generate_patch
from rlm_loop.models import ModelError, Reply, ScriptedModel
from rlm_loop.tasks import Attempt, Score, Task
from rlm_loop.traces import Trace
from rlm_loop.workspace import Workspace


def lean(*replies: Any, **settings: object) -> LeanAgent:
    return LeanAgent(model=ScriptedModel(replies), presentation="native", **settings)  # pyright: ignore[reportArgumentType]


def ctrl_c(prompt: object) -> str:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("replies", "budget", "stop"),
    [
        ([fix(), done()], Budget(), "answered"),
        ([fix(), wrong()], Budget(steps=1), "steps"),
        ([fix(), edit("x", path="no.py"), edit("x", path="nor.py")], Budget(tool_failures=2), "tool_failures"),
        ([fix(), Reply(""), Reply("")], Budget(malformed=2), "malformed"),
        ([fix(), call("search_code", query="x"), call("search_code", query="x")], Budget(), "repeated"),
        ([fix(), done()], Budget(calls=1), "calls"),
    ],
)
def test_the_diff_is_taken_whatever_the_stop(replies: list[Any], budget: Budget, stop: str) -> None:
    result = generate_patch(task(), lean(*replies, budget=budget))
    assert result.stop == stop
    assert task().score(Attempt(None, result.artifact, False)).resolved
    assert result.usage.calls >= 1


@pytest.mark.parametrize(
    ("end", "error", "stop"),
    [
        (ModelError("gone"), ModelError, "failed"),
        (ctrl_c, Interrupted, "interrupted"),
        (OSError("disk"), OSError, "failed"),
    ],
)
def test_a_crash_and_ctrl_c_carry_the_partial_patch(
    end: Any, error: type[BaseException], stop: str, tmp_path: Path
) -> None:
    with pytest.raises(error) as caught:
        generate_patch(task(), lean(fix(), end), trace=tmp_path / "t.jsonl")
    result = caught.value.outcome  # pyright: ignore[reportAttributeAccessIssue]
    assert result.stop == stop
    assert right_line() in result.artifact
    assert result.trace == str(tmp_path / "t.jsonl")


def test_where_the_workspace_itself_breaks_the_last_patch_that_was_seen_is_kept() -> None:
    opened: list[Workspace] = []

    def remembered() -> Workspace:
        opened.append(Workspace({FILE: "x = 1\n"}))
        return opened[-1]

    def remove(prompt: object) -> Reply:
        opened[0].close()
        raise ModelError("gone")

    broken = Task("t", "?", lambda attempt: Score(False), workspace=remembered, needs_repl=False)
    with pytest.raises(ModelError) as caught:
        generate_patch(broken, lean(edit("x = 2", 1), remove))
    assert "+x = 2" in caught.value.outcome.artifact  # pyright: ignore[reportAttributeAccessIssue]


def test_a_task_without_a_workspace_is_refused() -> None:
    with pytest.raises(ValueError, match="has no workspace"):
        generate_patch(replace(task(), workspace=None), lean(done()))


def test_the_trace_has_each_state_of_the_workspace_once() -> None:
    trace = Trace()
    generate_patch(task(), lean(wrong("0"), wrong("1"), wrong("0"), done()), trace=trace)
    trees = [event for event in trace.events if event["event"] == "tree"]
    texts = {event["sha256"]: event["text"] for event in trace.events if event["event"] == "text"}
    assert len(trees) == 2  # the third edit leads back to the first state
    assert ["return 0" in texts[tree["patch"]] for tree in trees] == [True, False]
    effects = [seen["effects"] for event in trace.events if event["event"] == "turn" for seen in event["observations"]]
    assert effects[0]["tree"] == effects[2]["tree"] == trees[0]["tree"]


def test_a_patch_that_is_too_large_is_left_out_of_the_trace_and_said_so() -> None:
    trace = Trace()
    trace.start()
    trace.patch("abc", "x" * 11, most=10, node="0")
    last = trace.events[-1]
    assert last == {**last, "event": "tree", "tree": "abc", "patch": None, "characters": 11}

"""Every state of a run scored afterwards, and what smaller budgets would have given."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from repair_tasks import call, checked, done, fix, task, wrong

from rlm_loop import LeanAgent
from rlm_loop.agents.attempts import Anytime, State, anytime, generate_patch, retry
from rlm_loop.agents.attempts.anytime import Scores
from rlm_loop.models import Reply, ScriptedModel
from rlm_loop.report import anytime_curves, anytime_table, save
from rlm_loop.study import Study, StudyError
from rlm_loop.study.compare.anytime_curves import anytime_of, curve
from rlm_loop.tasks.base import Attempt, CheckResult, Score, Suite, Task
from rlm_loop.traces.reader import read
from rlm_loop.traces.trace import Trace, TraceError


def lean(*replies: object) -> LeanAgent:
    return LeanAgent(model=ScriptedModel(replies), presentation="native")  # pyright: ignore[reportArgumentType]


def counted(of: Task) -> tuple[Task, list[str]]:
    """The task, and the patches that its score was asked for."""
    asked: list[str] = []

    def score(attempt: Attempt) -> Score:
        asked.append(str(attempt.artifact))
        return of.score(attempt)

    return replace(of, score=score), asked


@pytest.fixture(scope="module")
def mended_and_broken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("t") / "t.jsonl"
    look = call("search_code", query="def")
    generate_patch(task(), lean(look, wrong("0"), fix(), look, wrong("0"), done()), trace=path)
    return path


def test_every_step_is_scored_each_distinct_patch_once(mended_and_broken: Path) -> None:
    watched, asked = counted(task())
    found = anytime(watched, mended_and_broken)
    assert [s.resolved for s in found.states] == [False, False, False, True, True, False, False]
    assert [s.step for s in found.states] == [0, 1, 2, 3, 4, 5, 6]
    assert [s.changed for s in found.states] == [False, False, True, True, False, True, False]
    assert (found.resolved_at, found.broken_at, found.broken_later, found.resolved) == (3, 5, True, False)
    assert (len(asked), found.scored) == (3, 3)  # nothing, the wrong fix, the right one
    assert asked[0] == ""


def test_figures_of_what_was_spent_grow_to_those_of_the_run(mended_and_broken: Path) -> None:
    found = anytime(task(), mended_and_broken)
    spent = [s.prompt_tokens for s in found.states]
    assert spent == sorted(spent)  # pyright: ignore[reportArgumentType]
    end = read(mended_and_broken).end
    assert end is not None
    assert (spent[0], spent[-1]) == (0, end["usage"]["input_tokens"])
    assert found.states[-1].output_tokens == end["usage"]["output_tokens"]


def test_a_smaller_budget(mended_and_broken: Path) -> None:
    found = anytime(task(), mended_and_broken)
    ends = [found.within(budget) for budget in (0, 2, 3, 4.5, 99)]
    assert [s.step for s in ends if s] == [0, 2, 3, 4, 6]
    at = found.states[3].tokens
    assert at is not None
    assert [s and s.resolved for s in (found.within(at - 1, "tokens"), found.within(at, "tokens"))] == [False, True]
    frame = found.frame()
    assert list(frame["step"]) == [0, 1, 2, 3, 4, 5, 6]
    assert frame["resolved"].sum() == 2


def test_scores_are_shared_across_runs(mended_and_broken: Path) -> None:
    watched, asked = counted(task())
    scores: Scores = {}
    anytime(watched, mended_and_broken, scores=scores)
    anytime(watched, mended_and_broken, scores=scores)
    assert len(asked) == len(scores) == 3


def test_two_edits_in_one_reply_count_as_the_state_after_it() -> None:
    first, second = wrong("0"), fix()
    both = Reply("", (first.tool_calls[0], replace(second.tool_calls[0], id="c2")), "tool_calls")
    trace = Trace()
    generate_patch(task(), lean(both, done()), trace=trace)
    assert [s.resolved for s in anytime(task(), trace).states] == [False, True, True]


def test_attempts_begin_anew_and_the_chosen_patch_is_the_last_state() -> None:
    trace = Trace()
    result = generate_patch(
        checked(), retry(lean(fix(), wrong("1"), done(), fix(), done()), begin="fresh"), trace=trace
    )
    found = anytime(task(), trace)
    assert [(s.step, s.attempt, s.resolved) for s in found.states[1:]] == [
        (1, "0.1", True), (2, "0.1", False), (3, "0.1", False), (4, "0.2", True), (5, "0.2", True),
    ]  # fmt: skip
    assert found.resolved
    trace = Trace()
    checks = iter([2, 1])
    some = retry(
        lean(fix(), done(), wrong("1"), done()),
        begin="fresh",
        check=lambda space: CheckResult(False, "", {str(n): "passed" for n in range(next(checks))}),
    )
    result = generate_patch(task(), some, trace=trace)
    found = anytime(task(), trace)
    assert [(s.step, s.attempt, s.resolved) for s in found.states[3:]] == [
        (3, "0.2", False),
        (4, "0.2", False),
        (4, "0", True),
    ]
    assert found.states[-1].patch == result.patch


@pytest.mark.parametrize("handed", ["path", "record", "outcome", "result"])
def test_it_takes_a_trace_in_any_form(handed: str, tmp_path: Path) -> None:
    result = generate_patch(task(), lean(fix(), done()), trace=tmp_path / "t.jsonl")
    path = tmp_path / "t.jsonl"
    run = {"path": path, "record": read(path), "outcome": result.outcome, "result": result}[handed]
    assert anytime(task(), run).resolved_at == 1


def test_without_a_trace_or_with_another_tasks_it_says_so() -> None:
    result = generate_patch(task(), lean(done()))
    with pytest.raises(TraceError, match="has no trace"):
        anytime(task(), result)
    trace = Trace()
    generate_patch(task(), lean(done()), trace=trace)
    with pytest.raises(TraceError, match="not of 'other'"):
        anytime(replace(task(), id="other"), trace)


def test_a_patch_that_the_trace_does_not_hold_is_not_known() -> None:
    trace = Trace()
    generate_patch(task(), lean(fix(), wrong("0"), done()), trace=trace)
    tree = next(e for e in trace.events if e["event"] == "tree")
    tree["patch"] = None
    assert [s.resolved for s in anytime(task(), trace).states] == [False, None, False, False]


def made(*resolved: bool | None, step_tokens: int = 10) -> Anytime:
    states = [
        State(n, "0", n * step_tokens, 0, float(n), False, "", "", is_right, 0.0, "")
        for n, is_right in enumerate(resolved)
    ]
    return Anytime("t", tuple(states), 1)


def test_curves_count_runs_that_ended_with_their_last_state() -> None:
    runs = [made(False, True), made(False, False, True, False), made(False)]
    found = curve(runs, budgets=[0, 1, 2, 3, 9])
    assert found.resolved == (0, 1, 2, 1, 1)
    assert found.ever == (0, 1, 2, 2, 2)
    assert found.rates[2] == pytest.approx(2 / 3)
    assert curve(runs).budgets == (0, 1, 2, 3)
    assert curve([], "tokens").rates == ()


def test_runs_of_unknown_cost_are_left_out() -> None:
    unknown = replace(made(False, True).states[1], prompt_tokens=None)
    runs = [made(False, True), Anytime("u", (made(False).states[0], unknown), 1)]
    assert curve(runs, "prompt_tokens").runs == 1
    assert curve(runs, "step").runs == 2
    assert runs[1].within(99, "tokens") is None


STATES = st.lists(st.booleans(), min_size=1, max_size=8)


@given(st.lists(STATES, min_size=1, max_size=6))
def test_a_curve_ends_where_the_runs_end_and_ever_never_falls(states: list[list[bool]]) -> None:
    runs = [made(*one) for one in states]
    found = curve(runs)
    assert found.resolved[-1] == sum(run.resolved for run in runs)
    assert found.ever[-1] == sum(run.resolved_at is not None for run in runs)
    assert list(found.ever) == sorted(found.ever)
    assert all(now <= ever for now, ever in zip(found.resolved, found.ever, strict=True))
    every = curve(runs, budgets=range(9))
    for budget, right in zip(every.budgets, every.resolved, strict=True):  # nothing changes between the points
        below = [r for b, r in zip(found.budgets, found.resolved, strict=True) if b <= budget]
        assert right == below[-1]


def test_a_study_is_scored_from_its_traces_and_drawn(tmp_path: Path) -> None:
    def arms(model: object, seed: int) -> dict[str, LeanAgent]:
        return {"early": lean(fix(), done()), "late": lean(wrong("0"), fix(), wrong("1"), done())}

    suite = Suite("repair", (task(),))
    results = Study("s", arms, suite, model="scripted").run(tmp_path / "study", progress=False)
    runs = anytime_of(results, suite)
    assert {arm: [run.resolved_at for run in of] for arm, of in runs.items()} == {"early": [1], "late": [2]}
    made_figure = anytime_curves(runs, by=["steps", "input_tokens"], note="scripted")
    left, right = made_figure.axes
    assert [line.get_label() for line in left.lines if not line.get_label().startswith("_")] == ["early", "late"]
    assert [line.get_linestyle() for line in left.lines].count(":") == 1  # where late was right before it broke it
    assert right.get_xlabel() == "prompt tokens a task"
    table = str(anytime_table(runs, steps=(1, 2)))
    assert "early" in table
    first = save(made_figure, tmp_path / "a")
    assert [p.read_bytes() for p in first] == [p.read_bytes() for p in save(made_figure, tmp_path / "b")]
    with pytest.raises(StudyError, match="no run"):
        anytime_curves({"none": []})

"""A recorded run goes on live from any turn, and nothing of before is paid for again."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

from rlm_loop import Budget, LeanAgent, Outcome, ToolLoopAgent
from rlm_loop.agents import SubCalls
from rlm_loop.models import Reply, ScriptedModel
from rlm_loop.replay import ReplayError, fork, replay
from rlm_loop.tools import Tool
from rlm_loop.traces import RunRecord, read
from tests.agents.replies import call, code, named

GOLDEN = Path(__file__).parent.parent / "golden"
RECORD: dict[str, Any] = runpy.run_path(str(GOLDEN / "record.py"))
CONTEXT = "one\ntwo\n"
TURNS = 10
Run = tuple[Path, Outcome]


def replies(since: int = 0) -> list[str]:
    """The replies after so many turns: each turn asks a sub-call and a tool, and the last one uses them all."""
    found: list[str] = []
    for n in range(since + 1, TURNS):
        found += [code(f"x{n} = llm_query('number {n}?') + lookup('key{n}')\nprint(x{n})"), f"answer {n}"]
    last = " + ".join(f"x{n}" for n in range(1, TURNS))
    return [*found, code(f"final_answer = {last} + str(len(context))")]


def lookup(asked: list[str]) -> Tool:
    """A tool that keeps what it was asked."""
    return named("lookup", lambda key: asked.append(key) or key.upper())


def go_on(trace: Path | RunRecord, /, at: int, model: ScriptedModel, **more: Any) -> Outcome:
    return fork(trace, at=at, model=model, **{"tools": [lookup([])], "context": CONTEXT, **more})


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    path = tmp_path_factory.mktemp("fork") / "run.jsonl"
    agent = ToolLoopAgent(model=ScriptedModel(replies()), tools=(lookup([]),))
    return path, agent.run("Put it together.", context=CONTEXT, trace=path)


@pytest.mark.parametrize("at", range(TURNS))
def test_a_fork_at_each_turn_goes_on_as_the_run_did(at: int, run: Run, tmp_path: Path) -> None:
    (path, first), asked, new = run, list[str](), tmp_path / "fork.jsonl"
    model = ScriptedModel(replies(at))
    outcome = go_on(path, at, model, tools=[lookup(asked)], trace=new)
    assert (outcome.answer, outcome.stop, outcome.steps) == (first.answer, "answered", TURNS)
    assert len(model.prompts) == len(replies(at))  # nothing of before is asked again, sub-calls included
    assert (len(asked), outcome.notes) == (TURNS - 1 - at, ())
    assert (outcome.usage, outcome.ledger.rows) == (first.usage, first.ledger.rows)
    record = read(new)
    assert (record.start["forked"]["at"], record.start["forked"]["trace"]) == (at, str(path))
    assert len(record.of("turn")) == TURNS
    assert [e["node"] for e in record.of("subcall_start")] == [f"0.{n}" for n in range(1, TURNS)]
    assert replay(new).same


def test_a_fork_of_a_fork(run: Run, tmp_path: Path) -> None:
    new = tmp_path / "fork.jsonl"
    go_on(run[0], 3, ScriptedModel(replies(3)), trace=new)
    assert go_on(new, 6, ScriptedModel(replies(6))).answer == run[1].answer


def test_calls_that_are_not_on_record_are_not_made_again(run: Run) -> None:
    record, asked = RunRecord(tuple(e for e in read(run[0]).events if e["event"] != "cell_calls")), list[str]()
    outcome = go_on(record, 4, ScriptedModel([code("final_answer = 1")]), tools=[lookup(asked)])
    assert (outcome.answer, asked) == (1, [])
    said = "a cell of turn {} called llm_query otherwise when it was run again"
    assert outcome.notes == tuple(said.format(n) for n in range(1, 5))


def test_another_model_and_other_settings_go_on_with_the_same_conversation(run: Run) -> None:
    model = ScriptedModel(["It is seven."], name="other")
    outcome = go_on(run[0], 2, model, budget=Budget(steps=3))
    assert (outcome.answer, outcome.model, outcome.steps) == ("It is seven.", "other", 3)
    recorded = [p for e, p, reply in read(run[0]).exchanges() if e["node"] == "0" and reply is None]
    assert model.prompts[0].to_dict() == recorded[2].to_dict()


@pytest.mark.parametrize(("budget", "stop", "asked"), [(Budget(calls=9), "calls", 1), (Budget(steps=4), "steps", 0)])
def test_the_spent_budget_counts(budget: Budget, stop: str, asked: int, run: Run) -> None:
    model = ScriptedModel(replies(4))
    outcome = go_on(run[0], 4, model, budget=budget)
    assert (outcome.stop, outcome.usage.calls, len(model.prompts)) == (stop, 8 + asked, asked)


@pytest.mark.parametrize(
    ("at", "options", "says"),
    [
        (11, {}, r"at=11 is no turn of this run: it may be 0 to 10"),
        (-1, {}, r"at=-1 is no turn"),
        (10, {}, r"turn 10 gave the answer.*fork at turn 9"),
        (3, {"context": "other"}, r"another than the recorded one"),
    ],
)
def test_what_is_missing_is_named(at: int, options: dict[str, Any], says: str, run: Run) -> None:
    with pytest.raises(ReplayError, match=says):
        go_on(run[0], at, **{"model": ScriptedModel([]), **options})


def test_the_caller_s_own_check_has_to_be_given() -> None:
    model = ScriptedModel([code("final_answer = 14")])
    with pytest.raises(ReplayError, match=r"answer_type, verify, .* give answer_type="):
        fork(GOLDEN / "mistakes.jsonl", at=2, model=model)
    outcome = fork(GOLDEN / "mistakes.jsonl", at=2, model=model, verify=RECORD["even"], answer_type=int)
    assert (outcome.answer, outcome.evidence) == (14, {"verify": "even"})


def test_a_stopped_cell_is_not_run_again(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    cells = [code("a = 1"), code("import time\nb = 2\ntime.sleep(60)"), code("final_answer = a")]
    ToolLoopAgent(model=ScriptedModel(cells), budget=Budget(cell_seconds=1.0)).run("Q?", trace=path)
    outcome = fork(path, at=2, model=ScriptedModel([code("final_answer = a + 1")]))
    assert (outcome.answer, outcome.notes) == (2, ("a cell of turn 2 was stopped (timeout), and is not run again",))


def test_batches_and_failed_sub_calls_come_back(tmp_path: Path) -> None:
    asking = "a = [str(x) for x in llm_query_batched(['one', 'two'])]\ntry:\n    llm_query('three')\n"
    asking += "except SubCallError as error:\n    a.append(f'{type(error).__name__}: {error}')\nprint(a)"
    model = ScriptedModel([code(asking), "1", "2", Reply(""), code("final_answer = a")])
    first = ToolLoopAgent(model=model, subcalls=SubCalls(concurrency=1)).run("Q?", trace=tmp_path / "run.jsonl")
    live = ScriptedModel([code("print(llm_query('four'))"), "4", code("final_answer = a")])
    outcome = fork(tmp_path / "run.jsonl", at=1, model=live, trace=tmp_path / "fork.jsonl")
    assert (outcome.answer, outcome.notes) == (first.answer, ())
    nodes = [e["node"] for e in read(tmp_path / "fork.jsonl").of("subcall_start")]
    assert sorted(nodes) == ["0.1", "0.2", "0.3", "0.4"]


@pytest.mark.parametrize("text", ["x = 20\nprint(x)", "    x = 20\n    print(x)"])
def test_a_lean_run_goes_on(text: str, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    model = ScriptedModel([call("python", code=text), call("final_answer", answer=1)])
    LeanAgent(model=model).run("Q?", trace=path)
    live = ScriptedModel([call("python", code="print(x + 1)"), call("final_answer", answer=2)])
    outcome = fork(path, at=1, model=live)
    assert (outcome.answer, outcome.notes) == (2, ())
    assert outcome.turns[1].observations[0].text.strip() == "21"

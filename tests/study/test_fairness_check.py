"""Each kind of difference is found, named and shown before anything runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from study_arms import Arm

from rlm_loop import Budget, DirectAgent, LeanAgent, ReActAgent, Suite, Task, ToolLoopAgent
from rlm_loop.agents import Agent, Rules, SubCalls
from rlm_loop.dialects import Initiator, Nudge, TurnCounter
from rlm_loop.models import LocalModel, ScriptedModel
from rlm_loop.study import Study, StudyError, Unfair, export, fairness_check, load_study, load_study_file
from rlm_loop.tasks import Deferred, Score
from rlm_loop.tools import as_tool

EXPERIMENTS = Path(__file__).parents[2] / "experiments"


def look(page: int) -> str:
    """Look at a page."""
    return str(page)


def search(words: str) -> str:
    """Search the pages."""
    return words


@dataclass(frozen=True)
class Careful(LeanAgent):
    """An agent with a setting that is its own."""

    care: int = 1


LEAN = LeanAgent(model="some/model", tools=(look, search))
TEXT = replace(LEAN, presentation="text")
CALLS = ReActAgent(model="some/model", form="calls")
CODE = ToolLoopAgent(model="some/model", tools=(look, search), max_depth=0)
WINDOW = DirectAgent(model="some/model", window=100)
COLD, WARM = (LocalModel("x.gguf", temperature=temperature) for temperature in (0.0, 0.7))
TASK = Task("t", "How many?", lambda _: Score(True, 1.0), context="one\ntwo\n" * 50)

#: One arm, the other or what it has of its own, and the factors in which the two differ.
CHANGES: dict[str, tuple[Agent, dict[str, Any] | Agent, set[str]]] = {
    "the model": (LEAN, {"model": "some/other"}, {"model"}),
    "the sub-model": (LEAN, {"subcalls": SubCalls(depth=0, model="some/other")}, {"model"}),
    "reply length": (LEAN, {"max_tokens": 9}, {"sampling"}),
    "temperature": (replace(LEAN, model=COLD), {"model": WARM}, {"sampling"}),
    "steps": (LEAN, {"budget": Budget(steps=3)}, {"budget"}),
    "a cell's time": (LEAN, {"budget": Budget(cell_seconds=9.0)}, {"budget"}),
    "asking for code": (LEAN, {"rules": Rules(require_code=True)}, {"loop"}),
    "the form of ReAct": (
        replace(CALLS, presentation="text"),
        {"form": "text", "presentation": None},
        {"loop", "system", "injectors", "reply_format", "tool_presentation"},
    ),
    "a grammar": (TEXT, {"presentation": "constrained"}, {"tool_presentation", "reply_format"}),
    "system text": (LEAN, {"system": "Be brief."}, {"system"}),
    "a nudge that the first request does not have": (LEAN, {"injectors": (Nudge(),)}, {"injectors"}),
    "a scaffold": (CALLS, {"scaffold": (Initiator(),)}, {"injectors"}),
    "a tool": (LEAN, {"tools": (look,)}, {"tools"}),
    "an allow-list": (LEAN, {"rules": Rules(allow=("look",))}, {"tools"}),
    "the order of tools": (LEAN, {"tools": (search, look)}, {"tools"}),
    "the bytes of a schema": (LEAN, {"tools": (replace(as_tool(look), description="Look."), search)}, {"tools"}),
    "schemas or a list": (TEXT, {"presentation": "native"}, {"tool_presentation", "system"}),
    "what is shown of the material": (WINDOW, {"window": 300}, {"data"}),
    "history": (LEAN, {"history": "window"}, {"history"}),
    "depth": (LEAN, {"subcalls": SubCalls(depth=0, concurrency=2)}, {"recursion"}),
    "where code runs": (LEAN, {"repl": "subprocess"}, {"repl"}),
    "an answer's type": (LEAN, {"answer_type": int}, {"answer_check"}),
    "a setting of its own": (Careful(model="some/model"), {"care": 2}, {"other"}),
    "code or calls": (CODE, LEAN, {"loop", "system", "tool_presentation"}),
}


def study(arms: Mapping[str, Any], task: Task = TASK, **more: Any) -> Study:
    return Study("mine", arms, Suite("s", (task,)), **more)


@pytest.mark.parametrize("change", CHANGES)
def test_a_difference_is_found_and_has_to_be_declared(change: str, tmp_path: Path) -> None:
    one, other, factors = CHANGES[change]
    arms = {"one": one, "other": other if isinstance(other, Agent) else replace(one, **other)}
    found = fairness_check(study(arms))
    assert {d.factor for d in found.differences} == factors
    assert found.fair  # nothing was declared, so nothing is forbidden
    assert fairness_check(study(arms, differs=tuple(factors))).fair
    missing = min(factors)
    with pytest.raises(Unfair, match=rf"one and other differ in {missing}; .* declare it: differs=\(\"{missing}\",\)"):
        study(arms, differs=tuple(factors - {missing})).run(tmp_path, False)
    assert [(tmp_path / name).exists() for name in ("contract.json", "traces")] == [False, False]


def test_all_factors_are_tried_above_and_no_others_can_be_declared() -> None:
    with pytest.raises(StudyError, match="differs has 'tempo'; there are model, sampling") as refused:
        study({"one": LEAN}, differs=("tempo",))
    there = str(refused.value).partition("there are ")[2].split(", ")
    assert set.union(*(factors for *_, factors in CHANGES.values())) == set(there)


@pytest.mark.parametrize(
    "agent", [ToolLoopAgent(), LeanAgent(), ReActAgent(), ReActAgent(form="calls"), DirectAgent()], ids=repr
)
def test_the_first_request_is_the_one_that_a_run_sends(agent: Agent) -> None:
    model = ScriptedModel(["Final Answer: 5"] * 3)
    ready = replace(agent, model=model, injectors=(TurnCounter(5),))
    (probe,) = fairness_check(study({"one": ready})).probes
    assert model.prompts == []
    ready.attempt(TASK)
    assert probe.requests["one"] == model.prompts[0].digest[:16]


def test_what_was_found_is_stored_and_read_back(tmp_path: Path) -> None:
    arms, folder = {"code": ToolLoopAgent(max_depth=0), "lean": LeanAgent()}, tmp_path / "r"
    differs, model = ("loop", "system", "tool_presentation"), ScriptedModel(["5"] * 99)
    mine = Study("mine", arms, [TASK, replace(TASK, id="u")], model=model, differs=differs)
    results = mine.run(folder, False, limit=1)
    found = load_study(folder).fairness_check
    assert found == results.fairness_check == fairness_check(mine)
    assert str(found) == str(fairness_check(mine))
    export(folder, tmp_path / "packed")
    assert load_study(tmp_path / "packed").fairness_check == found
    # what is declared is no part of what a study is: it goes on, and its rows stay
    assert len(replace(mine, differs=None).run(folder, False)) == 4
    assert "differs" not in json.loads((folder / "study.json").read_text())
    assert load_study(folder).fairness_check.differs is None
    (folder / "contract.json").unlink()
    assert load_study(folder).fairness_check is None
    for damaged in ("{", "[]", '{"schema": 99}', '{"schema": 1, "probes": [{}]}', '{"values": 5}'):
        (folder / "contract.json").write_text(damaged)
        with pytest.raises(StudyError, match=r"contract\.json"):
            _ = load_study(folder).fairness_check


def test_the_arms_of_each_suite_and_model_are_compared() -> None:
    suites = [Suite("a", (TASK,)), Suite("b", (replace(TASK, id="u"), TASK))]
    arms, models = {"one": LEAN, "other": LEAN}, ["some/a", "some/b"]
    found = fairness_check(Study("mine", arms, suites, seeds=(1, 2), model=models))
    probed = {(model, *first) for model in models for first in (("a", "t"), ("b", "u"))}
    assert {(p.model, p.suite, p.task) for p in found.probes} == probed
    assert found.differences == ()


def test_one_arm_and_arms_that_are_not_ours(tmp_path: Path) -> None:
    assert study({"only": LeanAgent(model=ScriptedModel(["5"]))}, differs=()).run(tmp_path / "a", False)
    arms = {"short": Arm("short", 1), "long": Arm("long", 3)}
    found = fairness_check(study(arms))
    assert {d.factor for d in found.differences} == {"other"}
    assert "no request of short on s/t: only its settings are compared" in str(found)
    with pytest.raises(Unfair):
        study(arms, differs=("loop",)).run(tmp_path / "b", False)
    assert study(arms).run(tmp_path / "c", False).fairness_check is not None


def test_a_request_that_cannot_be_made() -> None:
    def nowhere() -> Any:
        raise OSError("the checkout is\ngone")

    broken, arms = replace(TASK, workspace=nowhere), {"one": LEAN, "other": LEAN}
    found = fairness_check(study(arms, broken))
    assert found.probes[0].requests == {"one": None, "other": None}
    with pytest.raises(
        StudyError, match="the first request of one on s/t cannot be made: OSError: the checkout is gone"
    ):
        fairness_check(study(arms, broken, differs=()))


def test_a_long_text_is_made_once_for_all_arms() -> None:
    made: list[int] = []

    def text() -> str:
        made.append(1)
        return "word " * 100

    deferred = replace(TASK, context=Deferred("words", text, lambda: "words"))
    fairness_check(study({"one": LEAN, "other": WINDOW}, deferred))
    assert made == [1]


@pytest.mark.parametrize(
    ("experiment", "options"),
    [
        ("lean_vs_react", {"tasks": 1}),
        ("lean_vs_react/demo.py", {}),
        ("recursion_depth", {"families": "needle", "sizes": "8k", "only": "direct,depth-0,depth-1", "tasks": 1}),
        ("bug_fixing", {"tasks": 1, "names": "humaneval-repair"}),
    ],
)
def test_the_experiments_keep_their_contracts(experiment: str, options: dict[str, Any]) -> None:
    found = fairness_check(load_study_file(EXPERIMENTS / experiment, **options))
    assert found.differs is not None
    assert all(all(p.requests.values()) for p in found.probes)
    assert found.fair, str(found)
    assert not any(d.factor in ("model", "sampling", "history", "repl", "other") for d in found.differences)

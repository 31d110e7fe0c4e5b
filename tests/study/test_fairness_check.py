"""Each kind of difference is found, named and shown, before anything runs."""

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
from rlm_loop.messages import Prompt, Reply
from rlm_loop.models import LocalModel, Model, ScriptedModel
from rlm_loop.study import (
    FACTORS,
    Study,
    StudyError,
    Unfair,
    export,
    fairness_check,
    load_study,
    load_study_file,
)
from rlm_loop.tasks import Deferred, Score
from rlm_loop.tools import Tool

EXPERIMENTS = Path(__file__).parents[2] / "experiments"


def look(page: int) -> str:
    """Look at a page."""
    return str(page)


def search(words: str) -> str:
    """Search the pages."""
    return words


def other_look(page: int) -> str:
    """Look at one page."""
    return str(page)


def right(_: Any) -> Score:
    return Score(True, 1.0)


def named(name: str, function: Any) -> Tool:
    from rlm_loop.tools import as_tool

    return replace(as_tool(function), name=name)


@dataclass(frozen=True)
class Careful(LeanAgent):
    """An agent with a setting that is its own."""

    care: int = 1


LEAN = LeanAgent(model="some/model", tools=(look, search))
TASK = Task("t", "How many?", right, context="one\ntwo\n" * 50)

#: What the second arm changes, and the factors in which it then differs.
CHANGES: dict[str, tuple[Agent, Agent, set[str]]] = {
    "the model": (LEAN, replace(LEAN, model="some/other"), {"model"}),
    "the sub-model": (LEAN, replace(LEAN, subcalls=SubCalls(depth=0, model="some/other")), {"model"}),
    "reply length": (LEAN, replace(LEAN, max_tokens=9), {"sampling"}),
    "temperature": (
        replace(LEAN, model=LocalModel("x.gguf", temperature=0.0)),
        replace(LEAN, model=LocalModel("x.gguf", temperature=0.7)),
        {"sampling"},
    ),
    "steps": (LEAN, replace(LEAN, budget=Budget(steps=3)), {"budget"}),
    "a cell's time": (LEAN, replace(LEAN, budget=Budget(cell_seconds=9.0)), {"budget"}),
    "asking for code": (LEAN, replace(LEAN, rules=Rules(require_code=True)), {"loop"}),
    "the form of ReAct": (
        ReActAgent(model="some/model", form="calls", presentation="text"),
        ReActAgent(model="some/model", form="text"),
        {"loop", "system", "injectors", "reply_format", "tool_presentation"},
    ),
    "a grammar": (
        replace(LEAN, presentation="text"),
        replace(LEAN, presentation="constrained"),
        {"tool_presentation", "reply_format"},
    ),
    "system text": (LEAN, replace(LEAN, system="Be brief."), {"system"}),
    "a nudge that the first request does not have": (LEAN, replace(LEAN, injectors=(Nudge(),)), {"injectors"}),
    "a scaffold": (
        ReActAgent(model="some/model", form="calls"),
        ReActAgent(model="some/model", form="calls", scaffold=(Initiator(),)),
        {"injectors"},
    ),
    "a tool": (LEAN, replace(LEAN, tools=(look,)), {"tools"}),
    "an allow-list": (LEAN, replace(LEAN, rules=Rules(allow=("look",))), {"tools"}),
    "the order of tools": (LEAN, replace(LEAN, tools=(search, look)), {"tool_order"}),
    "the bytes of a schema": (LEAN, replace(LEAN, tools=(named("look", other_look), search)), {"tool_schema"}),
    "schemas or a list": (
        replace(LEAN, presentation="native"),
        replace(LEAN, presentation="text"),
        {"tool_presentation", "system"},
    ),
    "what is shown of the material": (
        DirectAgent(model="some/model", window=100),
        DirectAgent(model="some/model", window=300),
        {"data"},
    ),
    "history": (LEAN, replace(LEAN, history="window"), {"history"}),
    "depth": (LEAN, replace(LEAN, subcalls=SubCalls(depth=0, concurrency=2)), {"recursion"}),
    "where code runs": (LEAN, replace(LEAN, repl="subprocess"), {"repl"}),
    "an answer's type": (LEAN, replace(LEAN, answer_type=int), {"answer_check"}),
    "a setting of its own": (Careful(model="some/model"), Careful(model="some/model", care=2), {"other"}),
    "code or calls": (
        ToolLoopAgent(model="some/model", tools=(look, search), max_depth=0),
        LEAN,
        {"loop", "system", "tool_presentation"},
    ),
}  # fmt: skip


def study(one: Agent, other: Agent, **more: Any) -> Study:
    return Study("mine", {"one": one, "other": other}, Suite("s", (TASK,)), **more)


@pytest.mark.parametrize("change", CHANGES)
def test_a_difference_is_found_and_has_to_be_declared(change: str, tmp_path: Path) -> None:
    one, other, factors = CHANGES[change]
    found = fairness_check(study(one, other))
    assert {d.factor for d in found.differences} == factors
    assert found.fair  # nothing was declared, so nothing is forbidden
    assert fairness_check(study(one, other, differs=tuple(factors))).fair
    missing = sorted(factors)[0]
    strict = study(one, other, differs=tuple(factors - {missing}))
    with pytest.raises(Unfair, match=rf"one and other differ in {missing}; .* declare it: differs=\(\"{missing}\",\)"):
        strict.run(tmp_path, False)
    assert not (tmp_path / "contract.json").exists()
    assert not (tmp_path / "traces").exists()


def test_all_factors_are_tried_above() -> None:
    assert set.union(*(factors for *_, factors in CHANGES.values())) == set(FACTORS)


def test_the_diff_is_shown(tmp_path: Path) -> None:
    one, other, _ = CHANGES["steps"]
    with pytest.raises(Unfair) as raised:
        study(one, other, differs=()).run(tmp_path, False)
    assert "-budget.steps: 20\n  +budget.steps: 3" in raised.value.diff
    assert raised.value.diff in raised.value.__notes__
    assert "\n" not in str(raised.value)
    assert "UNDECLARED" in raised.value.diff
    text = str(fairness_check(study(*CHANGES["the bytes of a schema"][:2])))
    assert "Look at a page" in text
    assert "Look at one page" in text
    assert "tool_schema       differs" in text


def test_the_first_request_is_the_one_that_a_run_sends() -> None:
    suite = Suite("s", (TASK,))
    for agent in (ToolLoopAgent(), LeanAgent(), ReActAgent(), ReActAgent(form="calls"), DirectAgent()):
        model = ScriptedModel(["Final Answer: 5"] * 3)
        ready = replace(agent, model=model, injectors=(TurnCounter(5),))
        (probe,) = fairness_check(Study("mine", {"one": ready}, suite)).probes
        assert model.prompts == []
        ready.attempt(TASK)
        assert probe.requests["one"] == model.prompts[0].digest()[:16]


class Silent(Model):
    """A model that must not be asked."""

    name = "silent"

    def complete(self, prompt: Prompt, *, max_tokens: int | None = None) -> Reply:
        raise AssertionError("a model was called")


def test_what_was_found_is_stored_and_read_back(tmp_path: Path) -> None:
    def arms(model: Any, seed: int) -> Mapping[str, Agent]:
        made = ScriptedModel(["5"] * 9)
        return {"code": ToolLoopAgent(model=made, max_depth=0), "lean": LeanAgent(model=made)}

    suite = Suite("s", (TASK, replace(TASK, id="u")))
    mine = Study("mine", arms, suite, model="scripted", differs=("loop", "system", "tool_presentation"))
    results = mine.run(tmp_path / "r", False, limit=1)
    found = load_study(tmp_path / "r").fairness_check
    assert found == results.fairness_check == fairness_check(mine)
    assert str(found) == str(fairness_check(mine))
    export(tmp_path / "r", tmp_path / "packed")
    assert load_study(tmp_path / "packed").fairness_check == found
    # what is declared is no part of what a study is: it goes on, and its rows stay
    before = json.loads((tmp_path / "r" / "study.json").read_text())
    mine = replace(mine, differs=None)
    assert len(mine.run(tmp_path / "r", False)) == 4
    after = json.loads((tmp_path / "r" / "study.json").read_text())
    assert before["arms"] == after["arms"]
    assert "differs" not in after
    found = load_study(tmp_path / "r").fairness_check
    assert found is not None
    assert found.differs is None
    (tmp_path / "r" / "contract.json").unlink()
    assert load_study(tmp_path / "r").fairness_check is None


@pytest.mark.parametrize("text", ["{", "[]", '{"schema": 99}', '{"schema": 1, "probes": [{}]}', '{"values": 5}'])
def test_a_damaged_contract_is_said_to_be_one(tmp_path: Path, text: str) -> None:
    (tmp_path / "contract.json").write_text(text)
    (tmp_path / "study.json").write_text('{"schema": 1, "name": "mine"}')
    with pytest.raises(StudyError, match=r"contract\.json"):
        _ = load_study(tmp_path).fairness_check


def test_the_arms_of_each_suite_and_model_are_compared() -> None:
    suites = [Suite("a", (TASK,)), Suite("b", (replace(TASK, id="u"), TASK))]
    found = fairness_check(
        Study("mine", {"one": LEAN, "other": LEAN}, suites, seeds=(1, 2), model=["some/a", "some/b"])
    )
    assert {(p.model, p.suite, p.task) for p in found.probes} == {
        (model, suite, task) for model in ("some/a", "some/b") for suite, task in (("a", "t"), ("b", "u"))
    }
    assert found.differences == ()


def test_one_arm_and_arms_that_are_not_ours(tmp_path: Path) -> None:
    model = ScriptedModel(["5"])
    assert Study("mine", {"only": LeanAgent(model=model)}, Suite("s", (TASK,)), differs=()).run(tmp_path / "a", False)
    arms = {"short": Arm("short", 1), "long": Arm("long", 3)}
    found = fairness_check(Study("mine", arms, Suite("s", (TASK,))))
    assert {d.factor for d in found.differences} == {"other"}
    assert "no request of short on s/t: it is not an agent of this package" in str(found)
    with pytest.raises(Unfair):
        Study("mine", arms, Suite("s", (TASK,)), differs=("loop",)).run(tmp_path / "b", False)
    assert Study("mine", arms, Suite("s", (TASK,))).run(tmp_path / "c", False).fairness_check is not None


def test_a_request_that_cannot_be_made() -> None:
    def nowhere() -> Any:
        raise OSError("the checkout is\ngone")

    broken = Suite("s", (replace(TASK, workspace=nowhere),))
    arms = {"one": LEAN, "other": LEAN}
    found = fairness_check(Study("mine", arms, broken))
    assert found.probes[0].failed["one"] == "OSError: the checkout is gone"
    assert "no request of one on s/t: OSError: the checkout is gone" in str(found)
    with pytest.raises(StudyError, match="the first request of one on s/t cannot be made: OSError"):
        fairness_check(Study("mine", arms, broken, differs=()))


def test_a_long_text_is_made_once_for_all_arms() -> None:
    made: list[int] = []

    def text() -> str:
        made.append(1)
        return "word " * 100

    task = replace(TASK, context=Deferred("words", text, lambda: "words"))
    fairness_check(Study("mine", {"one": LEAN, "other": DirectAgent(model="some/model")}, Suite("s", (task,))))
    assert made == [1]

    def nothing() -> str:
        raise OSError("no text")

    task = replace(TASK, context=Deferred("words", nothing, lambda: "words"))
    assert fairness_check(Study("mine", {"one": LEAN}, Suite("s", (task,)))).probes[0].failed == {
        "one": "OSError: no text"
    }


def test_what_no_factor_is_called() -> None:
    with pytest.raises(StudyError, match="differs has 'tempo'; there are model, sampling"):
        study(LEAN, LEAN, differs=("tempo",))
    assert study(LEAN, LEAN, differs="loop").differs == ("loop",)  # type: ignore[arg-type]


def test_long_texts_are_kept_by_their_hash() -> None:
    long = DirectAgent(model=Silent(), window=60_000)
    one, other = (replace(TASK, context="x" * 50_000 + end) for end in "ab")
    (first,) = fairness_check(Study("mine", {"a": long}, Suite("s", (one,)))).probes
    (second,) = fairness_check(Study("mine", {"a": long}, Suite("s", (other,)))).probes
    assert len(json.dumps(first.arms["a"])) < 10_000
    assert first.arms["a"]["data"] != second.arms["a"]["data"]


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
    assert not any(p.failed for p in found.probes)
    assert found.fair, str(found)
    assert not any(d.factor in ("model", "sampling", "history", "repl", "other") for d in found.differences)

"""The study of a frame's length: what is held equal, what is scored, that it runs, and that its costs are today's."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from rlm_loop.messages import Prompt
from rlm_loop.models import ScriptedModel
from rlm_loop.replay import replay
from rlm_loop.study import Study, load_study_file, verify_traces
from rlm_loop.study.plan.fairness_check import fairness_check
from rlm_loop.tasks.attempt import Attempt

ROOT = Path(__file__).parents[2]
HERE = ROOT / "experiments" / "scaffold_length"
OWN = ("cost", "counter", "frames", "one_step", "parcels", "study")


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The experiment's own modules, by the names that they have in its folder; returns `parcels`."""
    before = {name: sys.modules.pop(name, None) for name in OWN}
    monkeypatch.setattr(sys, "path", [str(HERE), str(ROOT), *sys.path])
    yield importlib.import_module("parcels")
    for name, module in before.items():
        sys.modules.pop(name, None)
        if module is not None:
            sys.modules[name] = module


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"scaffold_length_{name}", HERE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = made
    spec.loader.exec_module(made)
    return made


def oracle(parcels: ModuleType, prompt: Prompt) -> str:
    """The right call, read off the prompt: which chain it is about, and how many turns there were."""
    asked = "".join(m.text for m in prompt.messages if m.role == "user")
    number = next(n for n in range(40) if f"Begin with parcel {parcels.chain(n).path[0]}." in asked)
    step = list(parcels.chain(number).steps())[sum(m.role == "assistant" for m in prompt.messages)]
    return json.dumps({"name": step.tool, "arguments": step.arguments})


def answering(parcels: ModuleType, wrong: str = "", where: str = "") -> ScriptedModel:
    """The oracle; it gives the `wrong` reply to prompts with `where` in them."""

    def reply(prompt: Prompt) -> str:
        said = "".join(m.text for m in prompt.messages)
        return wrong if where and where in said else oracle(parcels, prompt)

    return ScriptedModel([reply] * 600)


def test_the_grid(own: ModuleType) -> None:
    study = load_study_file(HERE)
    episodes = study.episodes()
    assert len(episodes) == 13 * 4 * 10
    assert {c.suite for c in episodes} == {"turn-2", "turn-5", "turn-10", "turn-25"}
    assert study.analysis is not None
    assert study.analysis.baseline == "none"
    assert len({json.loads(c.task.expected)[0] for c in episodes}) == 2  # both tools are the right one somewhere


def test_the_oracle_is_told_what_the_tools_say_and_walks_to_the_end(own: ModuleType) -> None:
    for number in range(10):
        world = own.chain(number)
        read_parcel, ask_depot = world.tools()
        at = world.path[0]
        for read, asked in zip(*[iter(world.steps())] * 2, strict=True):
            found = read_parcel(at)
            depot = found.split("depot ")[1].split(",")[0]
            said = ask_depot(depot, at)
            assert (read.result, asked.result) == (found, said)
            if "no further" not in said:
                word = "spare " if "damaged" in found else "next "
                at = int(said.split(word)[1][:4])
        assert at == world.path[-1]
        assert "no further parcel" in said


def test_arms_differ_in_their_injectors_and_see_the_same_history(own: ModuleType) -> None:
    study = load_study_file(HERE, chains=1)
    found = fairness_check(study)
    assert found.fair
    assert {d.factor for d in found.differences} == {"injectors"}
    (agents,) = study.agents().values()
    for suite in study.suites:
        shared = {
            tuple(
                (m.role, "".join(s.text for s in m.spans if not s.cause.startswith("scaffold:")))
                for m in agent.first_request(suite.tasks[0]).prompt.messages
            )
            for agent in agents.values()
        }
        assert len(shared) == 1


def test_it_runs_and_its_traces_replay(own: ModuleType, tmp_path: Path) -> None:
    results = load_study_file(HERE, model=answering(own), chains=1).run(tmp_path, False)
    assert results.crashed == []
    assert [r["resolved"] for r in results.rows] == [True] * 52
    assert {r["calls"] for r in results.rows} == {1}
    assert verify_traces(tmp_path) == []
    for row in results.rows:
        found = replay(tmp_path / row["trace"])
        assert found.same, (row["arm"], found)
        assert found.complete


def test_native_calls_are_judged_too(own: ModuleType, tmp_path: Path) -> None:
    from rlm_loop.messages import Reply, ToolCall

    def native(prompt: Prompt) -> Reply:
        call = json.loads(oracle(own, prompt))
        return Reply("", (ToolCall("x", call["name"], json.dumps(call["arguments"])),))

    given: dict[str, Any] = {"presentation": "native", "only": "none,mellea-x1", "chains": 1}
    results = load_study_file(HERE, model=ScriptedModel([native] * 8), **given).run(tmp_path, False)
    assert [r["resolved"] for r in results.rows] == [True] * 8


CASES = {
    "right": ([{"tool": "t", "arguments": "{}", "failure": None, "result": "r"}], True, 1.0),
    "other result": ([{"tool": "t", "arguments": "{}", "failure": None, "result": "other"}], False, 0.5),
    "other tool": ([{"tool": "u", "arguments": "{}", "failure": None, "result": "r"}], False, 0.5),
    "raised": ([{"tool": "t", "arguments": "{}", "failure": "runtime", "result": "no such"}], False, 0.5),
    "schema": ([{"tool": "t", "arguments": "{}", "failure": "invalid_arguments", "result": "r"}], False, 0.0),
    "unknown": ([{"tool": "v", "arguments": "{}", "failure": "unknown_tool", "result": "r"}], False, 0.0),
    "prose": ([{"tool": None, "arguments": "", "failure": None, "result": "r"}], False, 0.0),
    "nothing": ([], False, 0.0),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_valid_and_what_is_right(own: ModuleType, name: str) -> None:
    done, resolved, value = CASES[name]
    score = own.NextAction("t", "r")(Attempt(artifact=done))
    assert (score.resolved, score.value) == (resolved, value)


REPLIES = {
    '{"name": "ask_depot", "arguments": {"depot": "%s", "parcel": %d}}': (True, 1.0),
    '{"name": "ask_depot", "arguments": {"parcel": %d, "depot": " LOWER"}}': (True, 1.0),  # the same in effect
    '{"name": "ask_depot", "arguments": {"depot": "Nowhere", "parcel": %d}}': (False, 0.5),
    '{"name": "ask_depot", "arguments": {"depot": "%s", "parcel": "first"}}': (False, 0.0),
    '{"name": "read_parcel", "arguments": {"number": %d}}': (False, 0.5),
    '{"name": "final_answer", "arguments": {"answer": %d}}': (False, 0.5),
    "I ask the depot about parcel %d.": (False, 0.0),
}


@pytest.mark.parametrize("reply", REPLIES)
def test_a_reply_is_judged_by_what_it_comes_to(own: ModuleType, tmp_path: Path, reply: str) -> None:
    asked = json.loads(own.task(0, 2).expected)[1]
    said = reply.replace("%d", str(asked["parcel"])).replace("%s", asked["depot"])
    model = ScriptedModel([said.replace("LOWER", asked["depot"].lower())])
    (row,) = load_study_file(HERE, model=model, chains=1, turns=2, only="none").run(tmp_path, False).rows
    assert (row["resolved"], row["value"]) == REPLIES[reply]


def test_the_finding_says_what_a_frame_bought(own: ModuleType, tmp_path: Path) -> None:
    finding = script("finding")
    model = answering(own, "I do not know.", "Turn 1/50:")  # of the frame itself and nothing else
    study: Study = load_study_file(HERE, model=model, chains=7, turns="2,5", only="none,rlms-x1,rlms-filler")
    results = study.run(tmp_path, False)
    found = {(b.arm, b.turn): b for b in finding.bought(results)}
    assert found["none", 2].right == 1.0
    assert found["none", 2].per_hundred(0.0) is None
    hit = found["rlms-x1", 5]
    assert (hit.valid, hit.right, hit.right_gain[0]) == (0.0, 0.0, -1.0)
    assert hit.right_gain[2] < 0
    assert hit.per_hundred(hit.right_gain[0]) == pytest.approx(-100 / (hit.added / 100))
    assert found["rlms-filler", 5].right_gain[0] == 0.0
    assert "| rlms-x1 | 5 |" in finding.finding(results)
    lines = {line[0]: line[-3:] for line in finding.overall(results).rows}
    assert [cell.split(" ")[0] for cell in lines["rlms-x1"]] == ["-100", "-100", "-100"], "beyond its length too"
    assert [cell.split(" ")[0] for cell in lines["rlms-filler"]] == ["+0", "+0", ""]
    assert lines["none"] == ["", "", ""]
    figure = finding.by_turn(results)
    assert "rlms-x1 at turn 5: right -100" in figure.get_label()


def test_committed_costs_are_those_of_todays_prompts(own: ModuleType) -> None:
    """By characters, since a test has no tokenizer: an arm's tokens follow them."""
    cost = script("cost")
    study = load_study_file(HERE, chains=1)
    (agents,) = study.agents().values()
    means = cost.means(cost.recorded())
    for (arm, turn), (whole, frame) in means.items():
        (task,) = next(s for s in study.suites if s.name == f"turn-{turn}").tasks
        spans = [s for m in agents[arm].first_request(task).prompt.messages for s in m.spans]
        characters = sum(len(s.text) for s in spans if s.cause.startswith("scaffold:"))
        assert (frame > 0) == (characters > 0)
        if characters:
            assert 1.2 < characters / frame < 6
        assert frame < whole
    for frame in ("mellea", "rlms", "smolagents"):
        for turn in (2, 5, 10, 25):
            assert means[f"{frame}-filler", turn][1] == pytest.approx(means[f"{frame}-x1", turn][1], rel=0.025, abs=1)
    assert cost.table(cost.recorded()).to_markdown() in (HERE / "README.md").read_text("utf-8")

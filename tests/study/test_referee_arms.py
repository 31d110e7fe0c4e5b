"""The studies of `experiments/referee_arms`: what each arm changes, other frameworks as arms, one table for all."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import dry_study as dry
import pytest

from experiments.referee_arms.peer_agent import PeerAgent, in_folder, turns_of
from experiments.referee_arms.peers import PEERS
from experiments.referee_arms.study import SUITES, other_example, pairs
from experiments.tuning.best import RESULTS, Chosen, chosen
from experiments.tuning.study import best
from experiments.tuning.texts import CANDIDATES
from rlm_loop.messages import Reply, ToolCall
from rlm_loop.models import ScriptedModel
from rlm_loop.study import Results, Study, load_study, load_study_file, verify_traces
from rlm_loop.tasks import get_suite
from rlm_loop.tasks.written import definition_of, written_in

pytest.importorskip("pandas")

NAME = "referee_arms"
LOOPS = ("code", "lean", "react")
ARMS = [
    "direct",
    *(f"{loop}{change}" for loop in LOOPS for change in ("", "[repeated=none]", "[malformed=1]")),
    "lean[text_answers=no]",
    "lean[says=proceed]",
    "lean[says=empty]",
    f"react[example={other_example(chosen('default')['react'])[0]}]",
]


def test_its_arms_meet_24_tasks_of_test_splits() -> None:
    study = dry.loaded(NAME)
    by_arm, by_suite = dry.count(study)
    assert by_arm == dict.fromkeys(ARMS, 24)
    assert by_suite == {f"{suite}/test": count for suite, count in SUITES.items()}
    assert dry.outside(study, "test") == []


def test_what_differs_is_declared_and_needed() -> None:
    study = dry.loaded(NAME)
    assert dry.differing(study) == set(study.differs or ())


def test_each_arm_changes_one_setting_of_its_loop() -> None:
    (arms,) = dry.loaded(NAME).agents().values()
    changed = {
        name: {f.name for f in fields(agent) if getattr(agent, f.name) != getattr(arms[name.partition("[")[0]], f.name)}
        for name, agent in arms.items()
        if "[" in name and "text_answers" not in name  # the same text and tools in another loop: test_answer_contract
    }
    setting = {"repeated": {"budget"}, "malformed": {"budget"}, "says": {"injectors"}, "example": {"system"}}
    assert changed == {name: setting[name.partition("[")[2].partition("=")[0]] for name in changed}
    assert arms["code[repeated=none]"].budget.repeated is None
    assert arms["code[malformed=1]"].budget == replace(arms["code"].budget, malformed=1)


def test_what_is_compared_was_declared() -> None:
    found = pairs(ARMS)
    assert len(found) == len(ARMS) - 1
    assert [pair for pair in found if pair[1] == "direct"] == [(loop, "direct") for loop in LOOPS]


@pytest.mark.parametrize("name", best(load_study(RESULTS / "round1"), "react"))
def test_the_other_text_of_react_has_an_example_where_this_one_has_none(name: str) -> None:
    one = Chosen("react", name, CANDIDATES["react"][name])
    with_it = "example" in name
    found, text = other_example(one)
    assert found == ("no" if with_it else "yes")
    assert ("How many primes" in text) is not with_it
    added = "When a function is asked for"
    assert (added in text) == (added in one.make().system)


def test_an_empty_message_adds_no_token(tmp_path: Path) -> None:
    pytest.importorskip("scipy")
    from experiments.referee_arms.finding import finding, neutral

    reply = '{"name": "python", "arguments": {"code": "print(1)"}}'
    results = dry.run_by_script(NAME, tmp_path, 2, [reply])
    assert not results.crashed
    assert neutral(results) == (
        "- `proceed` says 'Proceed.' after every turn: 3.0 tokens a run, 3 at most.\n"
        "- `empty` says '' after every turn: 0.0 tokens a run, 0 at most."
    )
    text = finding(results)
    assert all(f"| {arm} | {base} | 2 |" in text for arm, base in pairs(ARMS))
    assert text.startswith(
        f"Of the {len(ARMS) - 1} declared claims, that two arms resolve differently many tasks, none"
    )
    assert "Tasks resolved by code, lean, react: as they are 0, 0, 0; [repeated=none] 0, 0, 0; " in text
    assert "| lean | repeated | 2 | 0 | 0 |" in text
    assert "| code[malformed=1] | malformed | 0 | 0 | 0 |" in text


def asked(job: Mapping[str, Any], folder: Path) -> Mapping[str, Any]:
    """A loop that asks twice and gives the second reply for its answer; the files of its task lie in its folder."""
    body = {
        "model": job["model"],
        "messages": [{"role": "user", "content": job["task"]}],
        "max_tokens": job["max_tokens"],
    }
    for _ in range(2):
        request = urllib.request.Request(
            f"{job['url']}/chat/completions",
            json.dumps(body).encode(),
            {"Content-Type": "application/json", "Authorization": f"Bearer {job['key']}"},
        )
        with urllib.request.urlopen(request) as answer:
            said = json.load(answer)["choices"][0]["message"]["content"]
        body["messages"].append({"role": "assistant", "content": said})
    return {"answer": said, "error": None}


def peer_rows(tmp_path: Path) -> Results:
    study = load_study_file(dry.EXPERIMENTS / NAME / "peers.py", model=ScriptedModel(["7", "8"] * 100, name="local:s"))
    arms = {arm: PeerAgent(peer, play=asked) for arm, peer in PEERS.items()}
    return replace(study, arms=arms).run(tmp_path, progress=False, limit=3)


def test_a_framework_is_an_arm_whose_rows_have_all_fields(tmp_path: Path) -> None:
    ours = dry.run_by_script(NAME, tmp_path / "ours", 3, only="code,lean")
    others = peer_rows(tmp_path / "ours" / "peers")
    assert not others.crashed
    assert {"by_submission", *others.rows[0]} >= set(ours.rows[0])
    assert {(row["steps"], row["calls"], row["answer"]) for row in others.rows} == {(2, 2, "8")}
    assert all(row["input_tokens"] > 0 and row["output_tokens"] == 2 for row in others.rows)
    assert verify_traces(others.folder) == []
    pytest.importorskip("scipy")
    from experiments.referee_arms.finding import joined

    assert joined(ours).arms == ["code", "lean", *PEERS]
    assert len(joined(ours).complete_pairs) == 4 * 3


def test_the_tasks_of_both_are_the_same() -> None:
    study: Study = load_study_file(dry.EXPERIMENTS / NAME / "peers.py")
    ours = {(s.name, t.id) for s in dry.loaded(NAME).suites for t in s}
    assert {(s.name, t.id) for s in study.suites for t in s} == ours
    assert len(study.episodes()) == 48
    assert dry.differing(study) == {"other"}


def test_a_framework_that_cannot_be_installed_is_the_fault_of_the_machine(tmp_path: Path) -> None:
    def missing(job: Mapping[str, Any], folder: Path) -> Mapping[str, Any]:
        raise ModuleNotFoundError("smolagents could not be installed")

    arms = {"code": PeerAgent("smolagents_code", play=missing, model=ScriptedModel(["1"], name="local:s"))}
    results = Study("s", arms, get_suite("computation/test").take(["computation-digit-twice"])).run(tmp_path, False)
    assert [row["error_class"] for row in results.rows] == ["ModuleNotFoundError"]
    assert results.summary()[0].rate is None


@pytest.mark.parametrize(
    ("suite", "files", "said"),
    [
        ("tables", {"customers.csv"}, "How many"),
        ("frames", {"context.csv"}, "The file context.csv in the working folder holds a DataFrame of shape"),
        ("function-repair", set(), "There is no check() here"),
        ("humaneval", set(), "Complete this Python function."),
    ],
)
def test_a_framework_finds_what_the_task_has_in_its_folder(
    suite: str, files: set[str], said: str, tmp_path: Path
) -> None:
    question = in_folder(get_suite(f"{suite}/test").tasks[0], tmp_path)
    assert said in question
    assert {path.name for path in tmp_path.iterdir()} >= files


@pytest.mark.parametrize(
    "reply",
    [
        Reply("Thought: so.\n<code>\ndef f():\n    return 1\n</code>"),
        Reply("Thought: so.\n<code>\ndef f():\n    return 1"),  # its stop string is left out
        Reply("```python\ndef f():\n    return 1\n```"),
        Reply(tool_calls=(ToolCall("c1", "python", '{"code": "def f():\\n    return 1"}'),)),
        Reply('{"name": "python", "arguments": {"code": "def f():\\n    return 1"}}'),
    ],
)
def test_the_function_that_another_loop_wrote_is_found(reply: Reply) -> None:
    turns = turns_of([reply, Reply("done")], "done")
    assert turns[-1].answer is not None
    assert turns[-1].answer.value == "done"
    assert definition_of("f", written_in(turns)) == "def f():\n    return 1"

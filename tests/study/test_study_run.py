"""Running, stopping, resuming and refusing, and what can be seen of it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from study_arms import Arm, suite, task, unreachable

from rlm_loop.cli.main import main
from rlm_loop.models import AuthenticationFailed
from rlm_loop.outcome import Stop
from rlm_loop.study import Status, Study, StudyError, StudyInterrupted, load_study, status
from rlm_loop.tasks import Suite, Task


def crash(_: Task) -> None:
    raise unreachable()


def test_every_cell_is_a_row_with_a_trace_tasks_are_outermost_and_suites_take_turns(tmp_path: Path) -> None:
    log: list[tuple[str, str]] = []
    arms = {name: Arm(name, turns, ("a-2",), log=log) for name, turns in (("short", 1), ("long", 3))}
    study = Study("mine", arms, [suite("a", 2), suite("b", 1)], seeds=(0, 1))
    results = study.run(tmp_path, False)
    assert len({(r["arm"], r["suite"], r["task"], r["seed"]) for r in results.rows}) == len(results) == 2 * 3 * 2
    assert {r["task"] for r in results.rows if not r["resolved"]} == {"a-2"}
    assert all((tmp_path / row["trace"]).is_file() for row in results.rows)
    assert (results.recorded, load_study(tmp_path).recorded) == (False, True)
    assert [t for _, t in log] == ["a-1"] * 4 + ["b-1"] * 4 + ["a-2"] * 4


def test_a_row_says_what_a_run_came_to(tmp_path: Path) -> None:
    study = Study("mine", {"long": Arm(turns=3)}, Suite("s", (task("t", level=4),)), model="some-model")
    row = study.run(tmp_path, False).rows[0]
    run = {"study": "mine", "arm": "long", "model": "some-model", "suite": "s", "task": "t", "level": 4, "seed": 0}
    end = {"resolved": True, "value": 1.0, "stop": "answered", "answered": True, "answer": "'answer-t'", "error": None}
    turns = {"steps": 3, "calls": 3, "malformed_turns": 2, "tool_failures": 0, "lenient_calls": 0}
    # ten times the words: the question, then the model's word and two of scaffold a turn
    asked = {"input_tokens": 30 + 60 + 90, "cumulative_prompt_tokens": [30, 90, 180], "output_tokens": 3}
    cached = {"cached_tokens": 90, "new_tokens": 90, "cost": pytest.approx(0.003)}
    times = {"seconds": 4.5, "working_seconds": 1.0, "model_seconds": 0.75}
    expected = run | end | turns | asked | cached | times | {"trace": "traces/some-model/long/s--t--0.jsonl"}
    assert {k: row[k] for k in expected} == expected
    assert sum(row["by_cause"].values()) == row["input_tokens"]
    assert row["scaffold_tokens"] == row["by_cause"]["scaffold:thought"] > 0
    assert row["started"].endswith("+00:00")


def test_finished_and_failed_episodes_are_skipped_and_failed_ones_tried_again_on_request(tmp_path: Path) -> None:
    first = Study("mine", {"good": Arm("good"), "bad": Arm("bad", before=crash)}, suite("a", 2)).run(tmp_path, False)
    assert [(r["error"], r["input_tokens"]) for r in first.crashed] == [("ModelError: the server is gone", None)] * 2
    log: list[tuple[str, str]] = []
    mended = Study("mine", {"good": Arm("good", log=log), "bad": Arm("bad", log=log)}, suite("a", 2))
    assert (len(mended.run(tmp_path, False).crashed), log) == (2, [])
    second = mended.run(tmp_path, False, retry_failed=True)
    assert (len(second), second.crashed, log) == (4, [], [("bad", "a-1"), ("bad", "a-2")])
    mended.run(tmp_path, False)
    assert len(log) == 2


@pytest.mark.parametrize("jobs", [1, 3])
def test_an_arm_that_crashes_alike_in_its_first_three_tasks_ends_the_study(tmp_path: Path, jobs: int) -> None:
    study = Study("mine", {"bad": Arm(before=crash), "good": Arm()}, suite("a", 9))
    with pytest.raises(StudyError, match="bad crashed alike in its first 3 tasks: ModelError: the server is gone"):
        study.run(tmp_path, False, jobs=jobs)
    assert len(load_study(tmp_path)) < 18
    whole = study.run(tmp_path, False)  # once more: somebody wants it so
    assert (len(whole), whole.by_arm().loc["bad", "crashes"]) == (18, "9 ModelError")
    assert whole.compare().sentences()[0] == "Crashed: bad in 9 of 9 episodes (9 ModelError)."


@pytest.mark.parametrize("error", [RuntimeError(), SystemExit(3), RecursionError("deep"), MemoryError()])
def test_whatever_crashes_is_a_row(tmp_path: Path, error: BaseException) -> None:
    def failing(_: Task) -> None:
        raise error

    results = Study("mine", {"bad": Arm(before=failing), "good": Arm()}, suite("a", 2)).run(tmp_path, False)
    assert [r["error"] is None for r in results.rows] == [False, True] * 2
    assert results.crashed[0]["error"].startswith(type(error).__name__)


def test_a_wrong_key_stops_the_study_once_every_arm_has_met_it(tmp_path: Path) -> None:
    def refuse(_: Task) -> None:
        raise AuthenticationFailed("set OPENAI_API_KEY")

    a, b = (Arm(n, before=refuse) for n in ("a", "b"))
    with pytest.raises(AuthenticationFailed, match="OPENAI_API_KEY"):
        Study("mine", {"a": a, "b": b}, suite("s", 9)).run(tmp_path, False)
    assert [r["error_class"] for r in load_study(tmp_path).rows] == ["AuthenticationFailed"] * 2
    a, mended = (replace(arm, before=None) for arm in (a, b))
    assert len(Study("mine", {"a": a, "b": b}, suite("s", 2)).run(tmp_path, False).crashed) == 2  # it goes on
    found = Study("mine", {"a": a, "b": mended}, suite("s", 2)).run(tmp_path, False)  # without retry_failed
    assert (len(found), found.crashed) == (4, [])


@pytest.mark.parametrize("as_outcome", [False, True])
def test_ctrl_c_keeps_what_is_done(tmp_path: Path, as_outcome: bool) -> None:
    class Stopped(Arm):
        def attempt(self, task: Task, **more: object) -> object:  # type: ignore[override]
            if task.id != "a-2":
                return super().attempt(task, **more)  # type: ignore[arg-type]
            if not as_outcome:
                raise KeyboardInterrupt
            return replace(super().attempt(task, **more), stop=Stop.INTERRUPTED)  # type: ignore[arg-type]

    tasks = suite("a", 3)
    with pytest.raises(StudyInterrupted, match=r"stopped with 3 episodes to go.* same command again"):
        Study("mine", {"x": Arm(), "y": Stopped()}, tasks).run(tmp_path, False)
    assert [(r["arm"], r["task"]) for r in load_study(tmp_path).rows] == [("x", "a-1"), ("y", "a-1"), ("x", "a-2")]
    found = status(tmp_path)
    assert (found.running, found.done, found.left) == (False, 3, 3)
    assert found.lines()[-1] == "nothing is running; run the same command again to go on"
    log: list[tuple[str, str]] = []
    Study("mine", {"x": Arm("x", log=log), "y": Arm("y", log=log)}, tasks).run(tmp_path, False)
    assert log == [("y", "a-2"), ("x", "a-3"), ("y", "a-3")]


def test_a_torn_last_line_is_ignored_and_its_cell_runs_again(tmp_path: Path) -> None:
    arm = Arm("a")
    study = Study("mine", {"a": arm}, suite("s", 3))
    study.run(tmp_path, False)
    whole = (tmp_path / "results.jsonl").read_bytes()
    for kept in (len(whole) - 2, len(whole) - 200):
        (tmp_path / "results.jsonl").write_bytes(whole[:kept])
        assert len(load_study(tmp_path)) == 2
        arm.log.clear()
        assert (len(study.run(tmp_path, False)), arm.log) == (3, [("a", "s-3")])
    (tmp_path / "results.jsonl").write_bytes(whole.rstrip(b"\n"))  # only the line break is missing: the row is whole
    arm.log.clear()
    assert (len(study.run(tmp_path, False)), arm.log) == (3, [])


@pytest.mark.parametrize(
    ("change", "keys"),
    [
        ({"arms": {"a": Arm(turns=3)}}, "arms.a.turns"),
        ({"arms": {"a": Arm(system="Think.")}}, "arms.a.prompt.system"),
        ({"tasks": [task("t", files={"data.csv": "2"})]}, "tasks.tasks.t"),
        ({"name": "other"}, "name"),
    ],
)
def test_a_changed_configuration_is_refused_by_name(tmp_path: Path, change: dict[str, Any], keys: str) -> None:
    study = Study("mine", {"a": Arm()}, [task("t", files={"data.csv": "1"})])
    study.run(tmp_path, False)
    with pytest.raises(StudyError, match=rf"changed: {keys}\)") as refused:
        replace(study, **change).run(tmp_path, False)
    assert "\n" not in str(refused.value)
    replace(study, arms={"a": Arm(base_url="elsewhere")}).run(tmp_path, False)


def test_tasks_seeds_and_arms_may_be_added(tmp_path: Path) -> None:
    log: list[tuple[str, str]] = []
    short, long = Arm("short", 1, log=log), Arm("long", 2, log=log)
    Study("mine", {"short": short}, suite("s", 4)).run(tmp_path, False, limit=1)
    assert len(log) == 1
    Study("mine", {"short": short}, suite("s", 4)).run(tmp_path, False, limit=3)
    assert log == [("short", f"s-{i}") for i in (1, 2, 3)]
    Study("mine", {"short": short, "long": long}, suite("s", 2), seeds=(0, 7)).run(tmp_path, False)
    assert len(load_study(tmp_path)) == 3 + 2 + 2 * 2
    lock = json.loads((tmp_path / "study.json").read_text())
    assert (sorted(lock["arms"]), lock["seeds"]) == (["long", "short"], [0, 7])
    assert list(lock["tasks"]["s"]) == ["s-1", "s-2", "s-3"]


def test_arms_made_for_a_model_and_a_seed(tmp_path: Path) -> None:
    made: list[tuple[object, int]] = []

    def arms(model: object, seed: int) -> dict[str, Arm]:
        made.append((model, seed))
        return {"a": Arm(model=model, seed=seed)}

    results = Study("mine", arms, suite("s", 1), seeds=(3, 4), model=["m1", "m2"]).run(tmp_path, False)
    assert made == [("m1", 3), ("m1", 4), ("m2", 3), ("m2", 4)]
    assert {(r["model"], r["seed"], r["trace"]) for r in results.rows} == {
        (m, s, f"traces/{m}/a/s--s-1--{s}.jsonl") for m in ("m1", "m2") for s in (3, 4)
    }
    assert Study("mine", arms, suite("s", 1)).episodes()[0].model == "local"


def test_two_runs_do_not_write_to_one_folder(tmp_path: Path) -> None:
    def again(_: Task) -> None:
        with pytest.raises(StudyError, match="another run is writing"):
            Study("mine", {"a": Arm()}, suite("s", 1)).run(tmp_path, False)

    assert not Study("mine", {"a": Arm(before=again)}, suite("s", 1)).run(tmp_path, False).crashed


def test_the_lock_file_names_no_folder_and_no_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["/opt/bin/rlm-loop", "study", "run", f"--folder={tmp_path}/x", "/etc/passwd", "rel/x.py"]
    monkeypatch.setattr("sys.argv", words)
    Study("mine", {"a": Arm(model="local:/models/m.gguf")}, suite("s", 1)).run(tmp_path / "out", False)
    text = (tmp_path / "out" / "study.json").read_text()
    session = json.loads(text)["sessions"][0]
    assert session["command"] == "rlm-loop study run --folder=x passwd rel/x.py"
    assert session["machine"]["cpus"] > 0
    assert (str(tmp_path) in text, "/models" in text) == (False, False)
    assert load_study(tmp_path / "out").models == ["local:m.gguf"]


def test_progress_is_a_line_an_episode_or_a_bar(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    study = Study("mine", {"a": Arm(wrong=("s-1",))}, suite("s", 3))
    study.run(tmp_path / "lines", limit=2)
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("[1/2] a on s/s-1: not resolved (answered), 2 turns, 92 tokens, 3 s; 0 of 1 resolved")
    assert second.endswith("1 of 2 resolved")
    study.run(tmp_path / "lines")
    assert capsys.readouterr().err.startswith("going on: 2 of 3 episodes are there, 1 are left\n")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    Study("mine", {"a": Arm(), "b": Arm(before=crash)}, suite("s", 1)).run(tmp_path / "bar")
    shown = capsys.readouterr().err
    said = ("b on s/s-1: crashed, ModelError: the server is gone", "2/2", "1 of 2 resolved")
    assert [part for part in said if part not in shown] == []


def test_secrets_do_not_reach_the_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "answer-s-1-secret")
    Study("mine", {"a": Arm()}, [task("s-1", "answer-s-1-secret")]).run(tmp_path, False)
    assert "answer-s-1-secret" not in (tmp_path / "results.jsonl").read_text()


def test_a_running_study_is_seen_from_outside_and_on_the_command_line(tmp_path: Path, capsys: Any) -> None:
    """Six episodes of which one fails, and the status at the start of three."""
    found: list[Status] = []

    def look(task: Task) -> None:
        found.append(status(tmp_path))
        if task.id == "s-2":
            raise unreachable()

    arms = {"f": Arm("f", 1, before=look), "g": Arm("g", 2)}  # chance gives this order for all three tasks
    Study("mine", arms, suite("s", 3)).run(tmp_path, False)
    seen = [(s.running, s.planned, s.done, s.failed, s.left, round(s.cost, 6)) for s in [*found, status(tmp_path)]]
    assert seen == [
        (True, 6, 0, 0, 6, 0),
        (True, 6, 2, 0, 4, 0.003),
        (True, 6, 3, 1, 2, 0.005),
        (False, 6, 5, 1, 0, 0.008),
    ]
    assert "failed: 1 x ModelError (--retry-failed)" in "\n".join(found[2].lines())
    assert main(["study", "status", str(tmp_path)]) == 0
    assert "5 of 6 episodes done, 1 failed, 0 left" in capsys.readouterr().out
    assert main(["study", "status", str(tmp_path / "nothing")]) == 2
    assert "holds no study" in capsys.readouterr().err


def test_unknown_costs_are_not_zero(tmp_path: Path) -> None:
    Study("mine", {"a": Arm()}, suite("s", 2)).run(tmp_path, False)
    path = tmp_path / "results.jsonl"
    head, first, second = path.read_text().splitlines()
    unknown = json.dumps({**json.loads(first), "cost": None})
    path.write_text(f"{head}\n{unknown}\n{second}\n")
    assert "cost so far $0.002 and 1 episodes of unknown cost" in status(tmp_path).lines()[0]
    path.write_text(f"{head}\n{unknown}\n")
    assert "cost so far not known" in status(tmp_path).lines()[0]

"""`rlm-loop study` and `rlm-loop demo` on a small experiment with scripted replies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rlm_loop import ScriptedModel
from rlm_loop.messages import Prompt
from rlm_loop.study import load_study, load_study_file

#: It takes a model, one with a price and others without.
EXPERIMENT = """
from rlm_loop import Budget, DirectAgent, Suite, Task
from rlm_loop.models import ScriptedModel
from rlm_loop.study import Study

REPLIES = {"right": ["yes"] * 9, "wrong": ["no"] * 9, "stopped": ["yes", KeyboardInterrupt]}
ARMS, STEPS, DIFFERS = ("right", "wrong"), {}, None


def study(split="test", model="ollama/own", steps=5):
    budget = Budget(steps=steps)

    def agent(arm, model):
        scripted = ScriptedModel(REPLIES[arm], name=model, price=(1e-6, 2e-6) if model == "ollama/cheap" else None)
        return DirectAgent(model=scripted, max_tokens=10, budget=Budget(steps=STEPS[arm]) if STEPS else budget)

    def arms(model, seed):
        return {arm: agent(arm, model) for arm in ARMS}

    tasks = tuple(Task(f"{split}-{i}", f"Is it {i}?", lambda attempt: attempt.answer == "yes") for i in range(3))
    return Study("small", arms, Suite("toy", tasks), model=model, differs=DIFFERS)
"""


def write(folder: Path, **names: object) -> None:
    """The experiment, with other values of its names."""
    changed = "".join(f"{name} = {value!r}\n" for name, value in names.items())
    (folder / "study.py").write_text(f"{EXPERIMENT}\n{changed}")


@pytest.fixture
def experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder `experiments/small` with the experiment, below the working folder; no weights can be had."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "experiments" / "small"
    monkeypatch.setenv("RLM_LOOP_CACHE", str(folder / "empty"))
    folder.mkdir(parents=True)
    write(folder)
    (folder / "demo.py").write_text(EXPERIMENT)
    return folder


@pytest.mark.parametrize("name", ["small", "experiments/small", "experiments/small/study.py"])
def test_a_study_runs_by_name_folder_or_file(experiment: Path, name: str, line: Any) -> None:
    code, out, err = line("study", "run", name, "--set", "split=dev")
    assert (code, "right" in out, "100%" in out) == (0, True, True)
    for part in ("runs/small/figure.png", "runs/small/results.jsonl", "runs/small/traces"):
        assert (part in err, Path(part).exists()) == (True, True), part
    assert {row["task"] for row in load_study("runs/small").rows} == {"dev-0", "dev-1", "dev-2"}
    code, out, _ = line("study", "report", "runs/small")
    assert (code, "right" in out, "recorded run" in out) == (0, True, True)


def test_ctrl_c_keeps_what_is_finished(experiment: Path, line: Any) -> None:
    write(experiment, ARMS=("stopped",))
    code, _, err = line("study", "run", "small")
    assert (code, "again" in err, "Traceback" in err) == (130, True, False)
    assert len(load_study("runs/small")) == 1


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("small --model local:no-such-model", "no-such-model"),
        ("small --out file", "cannot write"),
        ("nothing", "small"),
        ("small --set steps=-3", "(given: steps=-3)"),
    ],
)
def test_faults_are_one_line(experiment: Path, line: Any, words: str, says: str) -> None:
    Path("file").write_text("")
    code, _, err = line("study", "run", *words.split(), named=True)
    assert (code, err.count("\n"), err.startswith("error: "), says in err) == (2, 1, True, True), err
    assert ("not expected" in err, Path("runs").exists()) == (False, False)


def test_a_contract_is_printed_and_an_unfair_study_does_not_start(experiment: Path, line: Any) -> None:
    steps = {"right": 1, "wrong": 2}
    for differs, status, says in (
        ({}, 0, "small: 2 arms (right, wrong)"),
        ({"STEPS": steps}, 0, '-  "steps": 1,\n  +  "steps": 2,'),  # nothing is declared, so it is only shown
        ({"STEPS": steps, "DIFFERS": ()}, 1, "UNDECLARED"),
    ):
        write(experiment, **differs)
        code, out, _ = line("study", "check", "small")
        assert (code, says in out) == (status, True)
    code, out, err = line("study", "run", "small")
    assert (code, out, '+  "steps": 2' in err, "budget" in err.splitlines()[-1]) == (2, "", True, True)
    assert not Path("runs/small/traces").exists()
    write(experiment, STEPS=steps, DIFFERS="budget")
    assert line("study", "run", "small")[0] == 0
    code, out, _ = line("study", "check", "runs/small")  # as it was recorded
    assert (code, "budget" in out) == (0, True)


@pytest.mark.slow
def test_what_it_says_meanwhile_is_a_note(experiment: Path, line: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert line("study", "run", "small", "--limit", "1")[0] == 0
    other = {"version": "9.9.9", "commit": None, "code": "f" * 16}
    monkeypatch.setattr("rlm_loop.study.plan.identity.package", lambda: other)
    code, _, err = line("study", "run", "small", "--retry-failed", "--mixed")
    assert (code, "note: small" in err, "StudyWarning" in err) == (0, True, False)


def test_a_finished_demo_needs_neither_model_nor_network_and_without_weights_it_says_what_to_do(
    experiment: Path, line: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment.rename("experiments/lean_vs_react")
    monkeypatch.setenv("RLM_LOOP_CACHE", "empty")
    assert line("study", "run", "experiments/lean_vs_react/demo.py", "--out", "runs/demo", "--limit", 1)[0] == 0
    code, _, err = line("demo")
    assert (code, err.count("\n"), "qwen2.5-coder" in err) == (2, 2, True)  # which model it is, and the error
    line("study", "run", "experiments/lean_vs_react/demo.py", "--out", "runs/demo")
    code, out, err = line("demo")
    assert (code, "right" in out, "runs/demo/traces" in err) == (0, True, True)


BOTH = ("study", "run", "small", "--models", "ollama/cheap,ollama/own")


@pytest.mark.slow
def test_several_models_run_into_one_folder_up_to_a_limit_and_more_goes_on(experiment: Path, line: Any) -> None:
    line("study", "run", "small", "--out", "runs/before")
    each = sum(r["input_tokens"] + r["output_tokens"] for r in load_study("runs/before").rows)
    code, _, err = line(*BOTH, "--max-tokens", each)
    assert (code, "6 episodes" in err) == (0, True)
    assert {r["model"] for r in load_study("runs/small").rows} == {"ollama/cheap"}
    code, out, _ = line(*BOTH, "--max-tokens", 3 * each)
    assert (code, len(load_study("runs/small"))) == (0, 12)
    assert {r["model"] for r in load_study("runs/small").rows} == {"ollama/cheap", "ollama/own"}
    assert ("ollama/own: 6 episodes" in out, "cost unknown" in out) == (True, True)
    code, out, _ = line(*BOTH)
    assert (code, "ollama/own: 0 episodes" in out, len(load_study("runs/small"))) == (0, True, 12)


@pytest.mark.slow
def test_a_dry_run_shows_arms_tasks_first_requests_and_an_estimate_from_rows(experiment: Path, line: Any) -> None:
    cheap = ("study", "run", "small", "--model", "ollama/cheap")
    code, out, _ = line(*cheap, "--dry-run")
    assert (code, Path("runs").exists()) == (0, False)
    said = ["2 arms", "6 episodes", "tasks: 3 of toy", "--- right", "--- wrong", "[user]\nIs it 0?", "no results"]
    assert [part for part in said if part not in out] == []
    assert line(*cheap, "--limit", "1")[0] == 0
    tokens = sum(r["input_tokens"] for r in load_study("runs/small").rows) * 2
    code, out, _ = line(*cheap, "--dry-run")
    assert (code, f"ollama/cheap: 4 episodes, {tokens:,} tokens in" in out) == (0, True)
    assert "(from 2 rows of ollama/cheap)" in out


def answers(prompt: Prompt) -> str:
    """The right answer to each question of the file, as a reply of plain text."""
    text = prompt.messages[-1].text
    return next(answer for word, answer in (("leap", "25"), ("ERROR", "2"), ("root", "35")) if word in text)


@pytest.mark.parametrize(
    ("given", "written", "name"),
    [([], "study.py", ""), (["new/folder"], "new/folder/study.py", "folder"), (["a b.py"], "a b.py", "ab")],
)
def test_init_writes_a_study_that_runs(
    given: list[str], written: str, name: str, experiment: Path, line: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert line("study", "init", *given)[0] == 0
    text = Path(written).read_text().splitlines()
    assert (len(text) < 40, max(map(len, text)) <= 120) == (True, True)
    study = load_study_file(written, model=ScriptedModel([answers] * 6))
    found = study.run("out", progress=False)
    assert (study.name, found.arms) == (name or Path.cwd().name, ["code", "calls"])
    assert [r["resolved"] for r in found.rows] == [True] * 6
    monkeypatch.setenv("RLM_LOOP_MODEL", "ollama/some")
    assert {e.model for e in load_study_file(written).episodes()} == {"ollama/some"}
    Path(written).write_text("mine = 1\n")  # nothing is overwritten
    code, _, err = line("study", "init", *given)
    assert (code, f"{written} is there already" in err, Path(written).read_text()) == (2, True, "mine = 1\n")

"""`rlm-loop study` and `rlm-loop demo` on small experiments with scripted replies."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable
from pathlib import Path

import pytest

from rlm_loop.study import export, load_study

Line = Callable[..., tuple[int, str, str]]
EXPERIMENT = """
from rlm_loop import DirectAgent, Suite, Task
from rlm_loop.models import ScriptedModel
from rlm_loop.tasks import Score


def judge(attempt):
    return Score(attempt.answer == "yes", 1.0 if attempt.answer == "yes" else 0.0)


def study(split="test", model=None):
    from rlm_loop.study import Study

    tasks = tuple(Task(f"{split}-{i}", f"Is it {i}?", judge) for i in range(3))

    def arms(model, seed):
        replies = {"right": ["yes"] * 9, "wrong": ["no"] * 9, "stopped": ["yes", KeyboardInterrupt]}
        return {arm: DirectAgent(model=ScriptedModel(replies[arm], name="local:scripted")) for arm in ARMS}

    return Study("small", arms, Suite("toy", tasks))


ARMS = ["right", "wrong"]
"""


@pytest.fixture
def experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder `experiments/small` with the experiment, below the working folder."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "experiments" / "small"
    folder.mkdir(parents=True)
    (folder / "study.py").write_text(EXPERIMENT)
    (folder / "demo.py").write_text(EXPERIMENT)
    return folder


@pytest.mark.parametrize("name", ["small", "experiments/small", "experiments/small/study.py"])
def test_a_study_runs_by_name_folder_or_file(experiment: Path, name: str, line: Line) -> None:
    code, out, err = line("study", "run", name, "--set", "split=dev")
    assert (code, "right" in out, "100%" in out) == (0, True, True)
    for part in ("runs/small/figure.png", "runs/small/results.jsonl", "runs/small/traces"):
        assert part in err
        assert Path(part).exists()
    assert {row["task"] for row in load_study("runs/small").rows} == {"dev-0", "dev-1", "dev-2"}


def test_a_study_goes_on_where_it_stopped(experiment: Path, line: Line) -> None:
    assert line("study", "run", "small", "--limit", "1")[0] == 0
    (first, _) = load_study("runs/small").rows
    assert line("study", "run", "small")[0] == 0
    found = load_study("runs/small")
    assert (len(found), found.rows[0]["started"]) == (6, first["started"])
    code, out, _ = line("study", "status", "runs/small")
    assert (code, "6 of 6" in out) == (0, True), out


@pytest.mark.parametrize(("value", "read"), [("abc", "'abc'"), ("-3", "-3")])
def test_a_value_that_the_file_refuses_is_told_with_what_was_given(
    experiment: Path, value: str, read: str, line: Line
) -> None:
    text = EXPERIMENT.replace(
        "model=None):", "model=None, steps=5):\n    from rlm_loop import Budget\n    Budget(steps=steps)"
    )
    (experiment / "study.py").write_text(text)
    code, _, err = line("study", "run", "small", "--set", f"steps={value}")
    assert (code, err.startswith("error: small: Budget.steps")) == (2, True)
    assert f"(given: steps={read})" in err
    assert "not expected" not in err


def test_ctrl_c_keeps_what_is_finished(experiment: Path, line: Line) -> None:
    (experiment / "study.py").write_text(EXPERIMENT.replace('ARMS = ["right", "wrong"]', 'ARMS = ["stopped"]'))
    code, _, err = line("study", "run", "small")
    assert (code, "again" in err, "Traceback" in err) == (130, True, False)
    assert len(load_study("runs/small")) == 1


def test_a_report_has_tables_and_a_figure(experiment: Path, line: Line) -> None:
    line("study", "run", "small")
    code, out, _ = line("study", "report", "runs/small", "--markdown")
    assert (code, "| arm |" in out, "recorded run" in out) == (0, True, True)
    assert Path("runs/small/figure.png").stat().st_size > 10_000
    code, _, err = line("study", "report", "runs/small", "--baseline", "nobody")
    assert (code, "nobody" in err) == (2, True)


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["small", "--model", "local:no-such-model"], "no-such-model"),
        (["small", "--out", "file"], "cannot write"),
        (["nothing"], "small"),
        (["small", "--model", "local", "--models", "local"], "--models"),
    ],
)
def test_faults_are_one_line(experiment: Path, line: Line, more: list[str], says: str) -> None:
    Path("file").write_text("")
    code, _, err = line("study", "run", *more, named=True)
    assert (code, err.count("\n"), err.startswith("error: ")) == (2, 1, True)
    assert says in err
    assert not Path("runs").exists()


# -- demo

DEMO = ("demo", "--experiment", "experiments/small")


def test_a_finished_demo_needs_neither_model_nor_network(
    experiment: Path, line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    line("study", "run", "experiments/small/demo.py", "--out", "runs/demo")
    monkeypatch.setenv("RLM_LOOP_CACHE", str(experiment / "empty"))
    code, out, err = line(*DEMO)
    assert (code, "right" in out, "runs/demo/traces" in err, "NOTICE" in err) == (0, True, True, False)
    assert not (experiment / "empty").exists()


def test_without_weights_the_recorded_run_is_shown_where_it_agrees_with_its_traces(
    experiment: Path, line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    # An empty cache and no package index: the weights cannot be had.
    monkeypatch.setenv("RLM_LOOP_CACHE", str(experiment / "empty"))
    assert line(*DEMO)[0] == 2, "nothing is recorded"
    line("study", "run", "small", "--out", "runs/small")
    export("runs/small", experiment / "results")
    code, out, err = line(*DEMO)
    assert (code, "NOTICE" in err, "recorded" in out.casefold()) == (0, True, True)
    assert not Path("runs/demo").exists()
    rows = experiment / "results" / "results.jsonl.gz"
    text = gzip.decompress(rows.read_bytes()).decode()
    rows.write_bytes(gzip.compress(text.replace('"output_tokens":1', '"output_tokens":2').encode()))
    code, _, err = line(*DEMO)
    assert (code, "agree" in err) == (2, True)


def test_a_contract_is_printed_and_an_unfair_study_does_not_start(experiment: Path, line: Line) -> None:
    check, run = ("study", "check", "small"), ("study", "run", "small")
    code, out, _ = line(*check)
    assert (code, "small: 2 arms (right, wrong)" in out) == (0, True)
    text = EXPERIMENT.replace(
        "return {arm: DirectAgent(",
        "from rlm_loop import Budget\n        limit = {'right': 1, 'wrong': 2}\n        return {arm: DirectAgent("
        "budget=Budget(steps=limit[arm]), ",
    )
    (experiment / "study.py").write_text(text)
    code, out, _ = line(*check)  # nothing is declared, so the difference is only shown
    assert (code, "-budget.steps: 1\n  +budget.steps: 2" in out) == (0, True)
    (experiment / "study.py").write_text(text.replace('Suite("toy", tasks))', 'Suite("toy", tasks), differs=())'))
    code, out, _ = line(*check)
    assert (code, "UNDECLARED" in out) == (1, True)
    code, out, err = line(*run)
    assert (code, out, "+budget.steps: 2" in err, "budget" in err.splitlines()[-1]) == (2, "", True, True)
    assert not Path("runs/small/traces").exists()
    (experiment / "study.py").write_text(text.replace('Suite("toy", tasks))', 'Suite("toy", tasks), differs="budget")'))
    assert line(*run)[0] == 0
    code, out, _ = line("study", "check", "runs/small")  # as it was recorded
    assert (code, "budget" in out) == (0, True)


@pytest.mark.slow
def test_what_a_study_says_while_it_runs_is_a_note(
    experiment: Path, line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert line("study", "run", "small", "--limit", "1")[0] == 0
    other = {"version": "9.9.9", "commit": None, "code": "f" * 16}
    monkeypatch.setattr("rlm_loop.study.plan.identity.package", lambda: other)
    code, _, err = line("study", "run", "small", "--retry-failed")
    assert (code, "another rlm-loop" in err) == (2, True)
    code, _, err = line("study", "run", "small", "--retry-failed", "--mixed")
    assert (code, "note: small" in err, "StudyWarning" in err) == (0, True, False)
    code, _, err = line("study", "run", "small", "--max-cost", "1", "--out", "runs/other")
    assert (code, "local:scripted" in err) == (2, True)


# -- several models


MODELS = """
from rlm_loop import Budget, DirectAgent, Suite, Task
from rlm_loop.models import ScriptedModel
from rlm_loop.tasks import Score

PRICES = {"ollama/cheap": (1e-6, 2e-6), "ollama/own": None}


def study(model="ollama/cheap"):
    from rlm_loop.study import Study

    def arms(model, seed):
        same = {"max_tokens": 10, "budget": Budget(steps=1)}
        return {
            arm: DirectAgent(model=ScriptedModel(["yes"] * 9, name=model, price=PRICES[model]), **same)
            for arm in ("a", "b")
        }

    tasks = tuple(Task(f"t-{i}", f"Is it {i}?", lambda attempt: True) for i in range(3))
    return Study("many", arms, Suite("toy", tasks), model=model)
"""


@pytest.fixture
def many(experiment: Path) -> Path:
    """An experiment that takes a model, one with a price and one without."""
    folder = experiment.parent / "many"
    folder.mkdir()
    (folder / "study.py").write_text(MODELS)
    return folder


BOTH = ("study", "run", "many", "--models", "ollama/cheap,ollama/own")


@pytest.mark.slow
def test_one_command_runs_several_models_into_one_folder(many: Path, line: Line) -> None:
    code, out, _ = line(*BOTH)
    found = load_study("runs/many")
    assert (code, len(found)) == (0, 12)
    assert sorted({r["model"] for r in found.rows}) == ["ollama/cheap", "ollama/own"]
    for part in ("ollama/cheap: 6 episodes", "ollama/own: 6 episodes", "cost unknown"):
        assert part in out
    code, out, _ = line(*BOTH)
    assert (code, "ollama/own: 0 episodes" in out) == (0, True)
    assert len(load_study("runs/many")) == 12


def test_a_dry_run_shows_arms_tasks_and_first_requests(many: Path, line: Line) -> None:
    code, out, _ = line(*BOTH, "--dry-run")
    assert (code, Path("runs").exists()) == (0, False)
    for part in (
        "2 arms",
        "6 episodes",
        "tasks: 3 of toy",
        "--- a",
        "--- b",
        "[user]\nIs it 0?",
        "no results to go by",
    ):
        assert part in out


@pytest.mark.slow
def test_an_estimate_is_of_rows_where_there_are_any(many: Path, line: Line) -> None:
    assert line("study", "run", "many", "--limit", "1")[0] == 0
    tokens = sum(r["input_tokens"] for r in load_study("runs/many").rows) * 2
    code, out, _ = line("study", "run", "many", "--dry-run")
    assert (code, f"ollama/cheap: 4 episodes, {tokens:,} tokens in" in out) == (0, True)
    assert "(from 2 rows of ollama/cheap)" in out


@pytest.mark.slow
def test_a_limit_of_tokens_ends_a_study_and_more_goes_on(many: Path, line: Line) -> None:
    line("study", "run", "many", "--out", "runs/before")
    each = sum(r["input_tokens"] + r["output_tokens"] for r in load_study("runs/before").rows)
    code, _, err = line(*BOTH, "--max-tokens", each)
    assert (code, "6 episodes" in err) == (0, True)
    assert {r["model"] for r in load_study("runs/many").rows} == {"ollama/cheap"}
    assert line(*BOTH, "--max-tokens", 3 * each)[0] == 0
    assert len(load_study("runs/many")) == 12


def test_it_asks_before_it_spends_and_no_is_no(many: Path, line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = io.StringIO("no\n")
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr("sys.stdin", terminal)
    code, _, err = line(*BOTH)
    assert (code, "nothing was run" in err, Path("runs").exists()) == (0, True, False)
    assert line(*BOTH, "--yes")[0] == 0
    assert len(load_study("runs/many")) == 12

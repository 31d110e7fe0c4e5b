"""`rlm-loop study` and `rlm-loop demo` on small experiments with scripted replies."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from rlm_loop.cli.main import main
from rlm_loop.study import export, load_study

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
def test_a_study_runs_by_name_folder_or_file(experiment: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["study", "run", name, "--set", "split=dev"]) == 0
    out, err = capsys.readouterr()
    assert "right" in out
    assert "100%" in out
    for part in ("runs/small/figure.png", "runs/small/results.jsonl", "runs/small/traces"):
        assert part in err
        assert Path(part).exists()
    assert {row["task"] for row in load_study("runs/small").rows} == {"dev-0", "dev-1", "dev-2"}


def test_a_study_goes_on_where_it_stopped(experiment: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["study", "run", "small", "--limit", "1"]) == 0
    assert len(load_study("runs/small")) == 2
    before = load_study("runs/small").rows[0]["started"]
    assert main(["study", "run", "small"]) == 0
    found = load_study("runs/small")
    assert len(found) == 6
    assert found.rows[0]["started"] == before
    assert main(["study", "status", "runs/small"]) == 0
    assert capsys.readouterr().out.count("right") >= 2


@pytest.mark.parametrize(("value", "read"), [("abc", "'abc'"), ("-3", "-3")])
def test_a_value_that_the_file_refuses_is_told_with_what_was_given(
    experiment: Path, value: str, read: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = EXPERIMENT.replace(
        "model=None):", "model=None, steps=5):\n    from rlm_loop import Budget\n    Budget(steps=steps)"
    )
    (experiment / "study.py").write_text(text)
    assert main(["study", "run", "small", "--set", f"steps={value}"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("error: small: Budget.steps")
    assert f"(given: steps={read})" in err
    assert "not expected" not in err


def test_ctrl_c_keeps_what_is_finished(experiment: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (experiment / "study.py").write_text(EXPERIMENT.replace('ARMS = ["right", "wrong"]', 'ARMS = ["stopped"]'))
    assert main(["study", "run", "small"]) == 130
    err = capsys.readouterr().err
    assert "again" in err
    assert "Traceback" not in err
    assert len(load_study("runs/small")) == 1


def test_a_report_has_tables_and_a_figure(experiment: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["study", "run", "small"])
    capsys.readouterr()
    assert main(["study", "report", "runs/small", "--markdown"]) == 0
    out, _ = capsys.readouterr()
    assert "| arm |" in out
    assert "recorded run" in out
    assert Path("runs/small/figure.png").stat().st_size > 10_000
    assert main(["study", "report", "runs/small", "--baseline", "nobody"]) == 2
    assert "nobody" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["study", "run", "small", "--model", "local:no-such-model"], "no-such-model"),
        (["study", "run", "small", "--out", "file"], "cannot write"),
        (["study", "run", "nothing"], "small"),
    ],
)
def test_faults_are_one_line(experiment: Path, capsys: pytest.CaptureFixture[str], argv: list[str], says: str) -> None:
    Path("file").write_text("")
    assert main(argv) == 2
    err = capsys.readouterr().err.strip()
    assert err.count("\n") == 0
    assert err.startswith("error: ")
    assert says in err


# -- demo


def test_a_finished_demo_needs_neither_model_nor_network(
    experiment: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    main(["study", "run", "experiments/small/demo.py", "--out", "runs/demo"])
    capsys.readouterr()
    monkeypatch.setenv("RLM_LOOP_CACHE", str(experiment / "empty"))
    assert main(["demo", "--experiment", "experiments/small"]) == 0
    out, err = capsys.readouterr()
    assert "right" in out
    assert "runs/demo/traces" in err
    assert "NOTICE" not in err
    assert not (experiment / "empty").exists()


def test_without_weights_the_recorded_run_is_shown_where_it_agrees_with_its_traces(
    experiment: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # An empty cache and no package index: the weights cannot be had.
    monkeypatch.setenv("RLM_LOOP_CACHE", str(experiment / "empty"))
    demo = ["demo", "--experiment", "experiments/small"]
    assert main(demo) == 2, "nothing is recorded"
    main(["study", "run", "small", "--out", "runs/small"])
    export("runs/small", experiment / "results")
    capsys.readouterr()
    assert main(demo) == 0
    out, err = capsys.readouterr()
    assert "NOTICE" in err
    assert "recorded" in out.casefold()
    assert not Path("runs/demo").exists()
    rows = experiment / "results" / "results.jsonl.gz"
    text = gzip.decompress(rows.read_bytes()).decode()
    rows.write_bytes(gzip.compress(text.replace('"output_tokens":1', '"output_tokens":2').encode()))
    assert main(demo) == 2
    assert "agree" in capsys.readouterr().err


def test_a_contract_is_printed_and_an_unfair_study_does_not_start(
    experiment: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["study", "check", "small"]) == 0
    assert "small: 2 arms (right, wrong)" in capsys.readouterr().out
    text = EXPERIMENT.replace(
        "return {arm: DirectAgent(",
        "from rlm_loop import Budget\n        limit = {'right': 1, 'wrong': 2}\n        return {arm: DirectAgent("
        "budget=Budget(steps=limit[arm]), ",
    )
    (experiment / "study.py").write_text(text)
    assert main(["study", "check", "small"]) == 0  # nothing is declared, so the difference is only shown
    assert "-budget.steps: 1\n  +budget.steps: 2" in capsys.readouterr().out
    (experiment / "study.py").write_text(text.replace('Suite("toy", tasks))', 'Suite("toy", tasks), differs=())'))
    assert main(["study", "check", "small"]) == 1
    assert "UNDECLARED" in capsys.readouterr().out
    assert main(["study", "run", "small"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "+budget.steps: 2" in err
    assert "budget" in err.splitlines()[-1]
    assert not Path("runs/small/traces").exists()
    (experiment / "study.py").write_text(text.replace('Suite("toy", tasks))', 'Suite("toy", tasks), differs="budget")'))
    assert main(["study", "run", "small"]) == 0
    capsys.readouterr()
    assert main(["study", "check", "runs/small"]) == 0  # as it was recorded
    assert "budget" in capsys.readouterr().out


@pytest.mark.slow
def test_what_a_study_says_while_it_runs_is_a_note(
    experiment: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["study", "run", "small", "--limit", "1"]) == 0
    other = {"version": "9.9.9", "commit": None, "code": "f" * 16}
    monkeypatch.setattr("rlm_loop.study.plan.identity.package", lambda: other)
    assert main(["study", "run", "small", "--retry-failed"]) == 2
    assert "another rlm-loop" in capsys.readouterr().err
    assert main(["study", "run", "small", "--retry-failed", "--mixed"]) == 0
    err = capsys.readouterr().err
    assert "note: small" in err
    assert "StudyWarning" not in err
    assert main(["study", "run", "small", "--max-cost", "1", "--out", "runs/other"]) == 2
    assert "local:scripted" in capsys.readouterr().err


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


BOTH = ["study", "run", "many", "--models", "ollama/cheap,ollama/own"]


@pytest.mark.slow
def test_one_command_runs_several_models_into_one_folder(many: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(BOTH) == 0
    out, _ = capsys.readouterr()
    found = load_study("runs/many")
    assert sorted({r["model"] for r in found.rows}) == ["ollama/cheap", "ollama/own"]
    assert len(found) == 12
    assert "ollama/cheap: 6 episodes" in out
    assert "ollama/own: 6 episodes" in out
    assert "cost unknown" in out
    assert main(BOTH) == 0
    assert "ollama/own: 0 episodes" in capsys.readouterr().out
    assert len(load_study("runs/many")) == 12


def test_a_dry_run_shows_arms_tasks_and_first_requests(many: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*BOTH, "--dry-run"]) == 0
    out, _ = capsys.readouterr()
    assert not Path("runs").exists()
    for part in ("2 arms", "6 episodes", "tasks: 3 of toy", "--- a", "--- b", "[user]\nIs it 0?"):
        assert part in out
    assert "no results to go by" in out


@pytest.mark.slow
def test_an_estimate_is_of_rows_where_there_are_any(many: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["study", "run", "many", "--limit", "1"]) == 0
    rows = load_study("runs/many").rows
    capsys.readouterr()
    assert main(["study", "run", "many", "--dry-run"]) == 0
    tokens = sum(r["input_tokens"] for r in rows) * 2
    out = capsys.readouterr().out
    assert f"ollama/cheap: 4 episodes, {tokens:,} tokens in" in out
    assert "(from 2 rows of ollama/cheap)" in out


@pytest.mark.slow
def test_a_limit_of_tokens_ends_a_study_and_more_goes_on(many: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["study", "run", "many", "--out", "runs/before"])
    each = [r["input_tokens"] + r["output_tokens"] for r in load_study("runs/before").rows]
    capsys.readouterr()
    assert main([*BOTH, "--max-tokens", str(sum(each))]) == 0
    assert "6 episodes" in capsys.readouterr().err
    assert {r["model"] for r in load_study("runs/many").rows} == {"ollama/cheap"}
    assert main([*BOTH, "--max-tokens", str(3 * sum(each))]) == 0
    assert len(load_study("runs/many")) == 12


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["--model", "ollama/cheap"], "--models"),
    ],
)
def test_what_several_models_cannot_do_is_said_before_anything_runs(
    many: Path, capsys: pytest.CaptureFixture[str], more: list[str], says: str
) -> None:
    assert main([*BOTH, *more]) == 2
    assert says in capsys.readouterr().err
    assert not Path("runs").exists()


def test_it_asks_before_it_spends_and_no_is_no(
    many: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Terminal:
        def __init__(self, said: str) -> None:
            self.said = said

        def isatty(self) -> bool:
            return True

        def readline(self) -> str:
            return self.said

    monkeypatch.setattr("sys.stdin", Terminal("no\n"))
    assert main(BOTH) == 0
    assert "nothing was run" in capsys.readouterr().err
    assert not Path("runs").exists()
    assert main([*BOTH, "--yes"]) == 0
    assert len(load_study("runs/many")) == 12

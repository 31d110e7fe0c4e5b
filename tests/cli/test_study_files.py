"""`rlm-loop study init` writes a file that runs as it is, and `list` says what is below a folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rlm_loop import ScriptedModel
from rlm_loop.cli.main import main
from rlm_loop.messages import Prompt
from rlm_loop.study import load_study_file


def answers(prompt: Prompt) -> str:
    """The right answer to each question of the file, as a reply of plain text."""
    text = prompt.messages[-1].text
    return next(answer for word, answer in (("leap", "25"), ("ERROR", "2"), ("root", "35")) if word in text)


@pytest.mark.parametrize(
    ("given", "written", "name"),
    [
        ([], "study.py", "here"),
        (["mine.py"], "mine.py", "mine"),
        (["new/folder"], "new/folder/study.py", "folder"),
        (["a b.py"], "a b.py", "ab"),
    ],
)
def test_init_writes_a_study_that_runs(
    given: list[str], written: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert main(["study", "init", *given]) == 0
    assert len(Path(written).read_text().splitlines()) < 40
    assert max(map(len, Path(written).read_text().splitlines())) <= 120
    study = load_study_file(written, model=ScriptedModel([answers] * 6))
    found = study.run("out", progress=False)
    assert study.name == name
    assert [r["resolved"] for r in found.rows] == [True] * 6
    assert found.arms == ["code", "calls"]


def test_the_file_takes_the_model_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLM_LOOP_MODEL", "ollama/some")
    main(["study", "init", str(tmp_path / "study.py")])
    (found,) = {e.model for e in load_study_file(tmp_path / "study.py").episodes()}
    assert found == "ollama/some"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("there.py", "there.py is there already"),
        ("study.yaml", "does not end in .py"),
    ],
)
def test_init_overwrites_nothing(
    given: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("there.py").write_text("mine = 1\n")
    assert main(["study", "init", given]) == 2
    assert said in capsys.readouterr().err
    assert [p.name for p in tmp_path.iterdir()] == ["there.py"]
    assert Path("there.py").read_text() == "mine = 1\n"


def test_list_says_what_is_below_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["study", "list"]) == 0
    assert "no studies below ." in capsys.readouterr().err
    main(["study", "init"])
    study = load_study_file("study.py", model=ScriptedModel([answers] * 4))
    study.run("runs/whole", progress=False, limit=2)
    study.run("runs/.hidden/x", progress=False, limit=0)
    (tmp_path / "runs" / "torn").mkdir()
    (tmp_path / "runs" / "torn" / "study.json").write_text('{"name": ')
    capsys.readouterr()
    assert main(["study", "list", "runs"]) == 0
    out, err = capsys.readouterr()
    assert "whole" in out
    assert "code, calls" in out
    assert "4/4" in out
    assert "cannot be read" in out
    assert "torn" in err
    assert ".hidden" not in out
    assert main(["study", "list", "runs", "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(e.get("done"), e.get("arms")) for e in lines] == [(None, None), (4, ["code", "calls"])]


def test_list_of_what_is_no_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["study", "list", str(tmp_path / "nowhere")]) == 2
    assert "is no folder: name one that has studies below it" in capsys.readouterr().err

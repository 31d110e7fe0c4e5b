"""`rlm-loop study init` writes a file that runs as it is, and overwrites nothing."""

from __future__ import annotations

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


def test_init_overwrites_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("there.py").write_text("mine = 1\n")
    assert main(["study", "init", "there.py"]) == 2
    assert "there.py is there already" in capsys.readouterr().err
    assert [p.name for p in tmp_path.iterdir()] == ["there.py"]
    assert Path("there.py").read_text() == "mine = 1\n"

"""`rlm-loop trace replay` and `rlm-loop trace fork`."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from rlm_loop.cli.main import main
from rlm_loop.models import ScriptedModel

GOLDEN = Path(__file__).parent.parent / "golden"


def said(capsys: pytest.CaptureFixture[str], *arguments: object, replies: tuple[str, ...] = ()) -> tuple[int, str, str]:
    code = main([str(a) for a in arguments], models=lambda name, **_: ScriptedModel(replies, name=name))
    out, err = capsys.readouterr()
    return code, out, err


def edited(tmp_path: Path) -> Path:
    path = tmp_path / "edited.jsonl"
    path.write_text(
        (GOLDEN / "react_text.jsonl").read_text().replace("pig", "cow").replace('\\"fig\\"', '\\"pig\\"', 1)
    )
    return path


def test_the_same_run(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = said(capsys, "trace", "replay", GOLDEN / "react_text.jsonl")
    assert (code, out, err) == (0, "same: 4 of 4 requests equal byte for byte, 4 turns\n", "")


def test_a_run_that_differs_has_exit_status_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = said(capsys, "trace", "replay", edited(tmp_path))
    assert code == 1
    assert out.startswith("differs: ")


def test_several_traces_and_archives(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with tarfile.open(tmp_path / "traces.tar.xz", "w:xz") as tar:
        tar.add(GOLDEN / "direct.jsonl", "traces/direct.jsonl")
        tar.add(edited(tmp_path), "traces/edited.jsonl")
    code, out, _ = said(capsys, "trace", "replay", tmp_path / "traces.tar.xz", GOLDEN / "repeated.jsonl")
    lines = out.splitlines()
    assert code == 1
    assert lines[0].startswith("traces/edited.jsonl: differs: ")
    assert lines[-1] == "2 of 3 runs are the same"


def test_a_file_that_is_no_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.jsonl").write_text('{"event": "run_start", "schema": 99}\n')
    (tmp_path / "y.tar.gz").write_text("no archive")
    for name in ("x.jsonl", "y.tar.gz", "z.jsonl"):
        code, out, err = said(capsys, "trace", "replay", tmp_path / name)
        assert (code, out) == (2, "")
        assert err.startswith("error: ")
        assert err.count("\n") == 1


def test_fork(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = (
        "trace",
        "fork",
        GOLDEN / "repeated.jsonl",
        "--at",
        "1",
        "--trace",
        tmp_path / "new.jsonl",
        "--model",
        "local",
    )
    code, out, _ = said(capsys, *line, replies=("```python\nfinal_answer = x + 41\n```",))
    assert code == 0
    assert "answer: 42" in out
    assert "turn 2" in out
    code, out, _ = said(capsys, "trace", "replay", tmp_path / "new.jsonl")
    assert code == 0
    code, out, _ = said(capsys, *line, "--max-steps", "1")
    assert code == 1
    assert "steps" in out


def test_fork_says_what_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = said(capsys, "trace", "fork", GOLDEN / "tool_loop_sub_agents.jsonl", "--at", "1", "--model", "local")
    assert code == 2
    assert "--context" in err
    code, _, err = said(capsys, "trace", "fork", GOLDEN / "lean_text.jsonl", "--at", "1", "--model", "local")
    assert "stock" in err
    code, _, err = said(capsys, "trace", "fork", GOLDEN / "workspace.jsonl", "--at", "1", "--model", "local")
    assert "worked in a workspace" in err


def test_fork_asks_no_model_that_only_the_trace_names(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = said(capsys, "trace", "fork", GOLDEN / "repeated.jsonl", "--at", "1")
    assert code == 2
    assert "--model" in err

"""Call trees on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_traces import Told

from rlm_loop.cli.main import main
from rlm_loop.models import ScriptedModel

TEXT = "".join(f"record {i:04d} holds the value {i * 7919 % 10007:05d} for its owner\n" for i in range(1000))


@pytest.fixture
def trace(tmp_path: Path) -> str:
    told = Told(tmp_path / "run.jsonl", context=TEXT)
    told.turn("print(context[:480])", TEXT[:480])
    told.batch([f"count: {TEXT[i * 2400 : i * 2400 + 2400]}" for i in range(20)], ["3"] * 20)
    told.turn("n = 0\nfinal_answer = n", answer=60)
    told.end(60)
    told.trace.close()
    (tmp_path / "context.txt").write_text(TEXT, encoding="utf-8", newline="")
    return str(tmp_path / "run.jsonl")


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(list(arguments), models=lambda name, **_: ScriptedModel([]))
    out, err = capsys.readouterr()
    return code, out, err


def test_show_has_the_tree_where_there_are_sub_calls(trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = said(capsys, "trace", "show", trace)
    assert "20 completions" in out

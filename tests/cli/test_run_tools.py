"""`rlm-loop run --tools`: servers, and files with functions marked `@tool`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from rlm_loop.cli.main import main
from rlm_loop.models import ScriptedModel

SERVER = f"{sys.executable} {Path(__file__).parents[1] / 'tools' / 'mcp_server.py'}"
FILE = '''
from rlm_loop import tool
from helper import ONE

@tool
def double(x: int) -> int:
    """Twice as much."""
    return 2 * x + ONE - 1

def not_offered() -> None:
    """No tool."""
'''


def run(*options: str, cell: str = "final_answer = double(21)") -> int:
    script = [f"```python\n{cell}\n```"]
    return main(["run", "How much?", "-q", *options], models=lambda name, **_: ScriptedModel(list(script)))


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "mine.py").write_text(FILE)
    (tmp_path / "helper.py").write_text("ONE = 1\n")
    monkeypatch.syspath_prepend(tmp_path.parent)  # so that what the file adds to sys.path is seen to go
    return str(tmp_path / "mine.py")


def test_a_file_gives_its_marked_functions(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--tools", file, "--allow", "double") == 0
    assert capsys.readouterr().out == "42\n"
    assert str(Path(file).parent) not in sys.path


@pytest.mark.slow
def test_a_server_and_a_file_together(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("mcp")
    cell = "final_answer = double(int(add_numbers(1, 2)))"
    assert run("--tools", SERVER, "--tools", file, cell=cell) == 0
    assert capsys.readouterr().out == "6\n"


@pytest.mark.parametrize(
    ("source", "text", "said"),
    [
        ("gone.py", None, "gone.py"),
        ("bad.py", "1 / 0", "ZeroDivisionError"),
        ("none.py", "def f():\n    'No tool.'\n", "@tool"),
        ("no-such-command --x", None, "no-such-command"),
    ],
)
def test_what_gives_no_tools_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], source: str, text: str | None, said: str
) -> None:
    if source.endswith(".py"):
        source = str(tmp_path / source)
        if text is not None:
            Path(source).write_text(text)
    else:
        pytest.importorskip("mcp")
    assert run("--tools", source) == 2
    assert said in capsys.readouterr().err


def test_an_unknown_allowed_tool_is_named(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--tools", file, "--allow", "dubble") == 2
    assert "double" in capsys.readouterr().err

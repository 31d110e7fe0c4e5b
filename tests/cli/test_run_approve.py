"""`rlm-loop run --approve` asks in a terminal before anything runs, and nowhere else."""

from __future__ import annotations

import os
import pty
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from rlm_loop.cli.main import main
from rlm_loop.models import ScriptedModel

CELL = "```python\nprint('ran', 6 * 7)\n```"
MORE = "```python\nprint('again')\n```"


def from_(model: ScriptedModel) -> Callable[..., ScriptedModel]:
    def models(name: str, **_: Any) -> ScriptedModel:
        return model

    return models


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Standard input is a terminal at which these lines were typed."""
    keyboard, terminal = pty.openpty()

    def type_(text: str) -> None:
        os.write(keyboard, text.encode())
        monkeypatch.setattr(sys, "stdin", os.fdopen(os.dup(terminal)))

    yield type_
    sys.stdin.close()
    os.close(keyboard)
    os.close(terminal)


@pytest.mark.parametrize(
    ("lines", "ran", "told"),
    [
        ("y\ny\n", ["ran 42", "again"], ""),
        ("a\n", ["ran 42", "again"], ""),
        ("n\ny\n", ["again"], "not approved"),
        ("\nn\n", [], "not approved"),
        ("do not print\nall\n", ["again"], "not approved: do not print"),
        ("\x04\x04", [], "nobody could be asked"),  # the end of the input
    ],
)
def test_what_the_user_types_decides(
    typed: Any, capsys: pytest.CaptureFixture[str], lines: str, ran: list[str], told: str
) -> None:
    typed(lines)
    model = ScriptedModel([CELL, MORE, "Done."])
    assert main(["run", "Q?", "--approve", "--quiet"], models=from_(model)) == 0
    out, err = capsys.readouterr()
    assert out.endswith("Done.\n")
    assert "print('ran', 6 * 7)" in err
    said = "\n".join(m.text for m in model.prompts[-1].messages if m.role != "assistant")
    assert [line for line in said.splitlines() if line in ("ran 42", "again")] == ran
    assert told in said


@pytest.mark.parametrize("argv", [["Q?"], ["-"], ["Q?", "--context", "-"]])
def test_without_a_terminal_nothing_starts(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    model = ScriptedModel([CELL])
    assert main(["run", *argv, "--approve"], models=from_(model)) == 2
    assert "--approve" in capsys.readouterr().err
    assert not model.prompts

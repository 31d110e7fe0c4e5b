"""A run as a notebook file: valid, with code as code, and nothing that was written drawn as Markdown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rlm_loop import LeanAgent, Outcome, ToolLoopAgent
from rlm_loop.models import ScriptedModel

nbformat: Any = pytest.importorskip("nbformat")


def written(outcome: Outcome, folder: Path) -> list[Any]:
    path = outcome.to_notebook(folder / "run.ipynb")
    first = path.read_bytes()
    assert outcome.to_notebook(path).read_bytes() == first, "the same run gives the same file"
    book = nbformat.read(path, as_version=4)
    nbformat.validate(book)
    return book.cells


def test_code_blocks_are_cells_with_their_outputs(tmp_path: Path) -> None:
    replies = [
        "I look.\n```python\nprint(6 * 7)\n```\nThen I answer.",
        "```python\n1 / 0\n```",
        "The answer is ```42```.",
    ]
    cells = written(ToolLoopAgent(model=ScriptedModel(replies)).run("What is 6 x 7? ![x](http://a.b/c.png)"), tmp_path)
    code = [(cell.source, [(o.name, o.text) for o in cell.outputs]) for cell in cells if cell.cell_type == "code"]
    assert code[0] == ("print(6 * 7)", [("stdout", "42\n")])
    assert code[1][1][0][0] == "stderr"
    assert "ZeroDivisionError" in code[1][1][0][1]
    said = [cell.source for cell in cells if cell.cell_type == "markdown"]
    assert said[0] == "**Question**\n\n```text\nWhat is 6 x 7? ![x](http://a.b/c.png)\n```"
    assert [text.split("\n")[3] for text in said[1:3]] == ["I look.", "Then I answer."]
    assert said[-1].startswith("**Answer**\n\n````text\nThe answer is ```42```.\nanswered")


def test_calls_are_cells_too_and_secrets_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "hunter2-hunter2-hunter2")

    def look(place: str) -> str:
        """Look at a place."""
        return f"at {place}: hunter2-hunter2-hunter2"

    replies = [
        '{"name": "look", "arguments": {"place": "home"}}',
        '{"name": "final_answer", "arguments": {"answer": 7}}',
    ]
    cells = written(LeanAgent(model=ScriptedModel(replies), presentation="text", tools=[look]).run("Look."), tmp_path)
    assert "hunter2" not in (tmp_path / "run.ipynb").read_text()
    calls = [cell.source for cell in cells if cell.cell_type == "code"]
    assert calls == ["look(place='home')", "final_answer(answer=7)"]
    assert cells[-1].source.startswith("**Answer**\n\n```text\n7\nanswered")

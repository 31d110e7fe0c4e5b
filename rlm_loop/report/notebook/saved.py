"""A run as a notebook file: the model's words, its cells and calls as code, and what came of them as outputs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlm_loop.actions import Answer, CallTool, Malformed, Observation, RunCode
from rlm_loop.errors import install_line
from rlm_loop.report.notebook.formatting import action_text, answer_text, closing_line, observation_text, prose
from rlm_loop.traces.redact import redact

if TYPE_CHECKING:
    from rlm_loop.outcome import Outcome

_KERNEL = {"name": "python3", "display_name": "Python 3", "language": "python"}


def write_notebook(outcome: Outcome, path: str | Path) -> Path:
    """Write a run as a notebook (nbformat 4) and return its path; an existing file is replaced.

    What a model or a tool wrote stands as code, as an output or in a fence, never as Markdown that a front end would
    draw.  Secrets are taken out.  Raises `ImportError` where `nbformat` is not installed, and `OSError`.
    """
    try:
        import nbformat
    except ImportError:
        raise ImportError(f"to write a notebook: {install_line('jupyter')}") from None
    v4: Any = nbformat.v4
    book = v4.new_notebook(metadata={"kernelspec": _KERNEL})
    for number, (text, outputs) in enumerate(_cells(outcome)):
        if outputs is None:
            made = v4.new_markdown_cell(text)
        else:
            made = v4.new_code_cell(text, execution_count=number, outputs=[v4.new_output(**o) for o in outputs])
        made.id = f"cell-{number}"  # the same run gives the same file
        book.cells.append(made)
    target = Path(path)
    target.write_text(nbformat.writes(book), encoding="utf-8")
    return target


_Cell = tuple[str, list[dict[str, Any]] | None]


def _cells(outcome: Outcome) -> Iterator[_Cell]:
    """Source and outputs of each cell; Markdown has `None`."""
    yield _said("Question", outcome.question)
    for turn in outcome.turns:
        *before, after = prose(turn)
        for words, action, seen in zip(before, turn.actions, turn.observations, strict=True):
            if words:
                yield _said(f"Turn {turn.index}", words)
            match action:
                case RunCode(code):
                    yield redact(code), list(_outputs(seen))
                case CallTool(name, arguments):
                    yield redact(_call(name, arguments)), list(_outputs(seen))
                case Answer() | Malformed():
                    for label, text in (action_text(action), *([observation_text(seen)] if seen.failure else [])):
                        yield _said(f"Turn {turn.index}: {label}", text)
        if after:
            yield _said(f"Turn {turn.index}", after)
    yield _said("Answer" if outcome.answered else "No answer", f"{answer_text(outcome)}\n{closing_line(outcome)}")


def _said(title: str, text: str) -> _Cell:
    """A title, and below it a text in a fence that is longer than any in the text."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"**{title}**\n\n{fence}text\n{redact(text)}\n{fence}", None


def _call(name: str, arguments: str) -> str:
    try:
        given: Any = json.loads(arguments or "{}")
    except ValueError:
        given = None
    if not isinstance(given, Mapping):
        return f"# a call of {name} that could not be read\n{arguments!r}"
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in given.items())})"


def _outputs(seen: Observation) -> Iterator[dict[str, Any]]:
    text = observation_text(seen)[1]
    if text:
        name = "stdout" if seen.failure is None else "stderr"
        yield {"output_type": "stream", "name": name, "text": redact(text)}
    for display in seen.displays:
        data = display.data if display.mime in ("image/png", "image/jpeg") else redact(display.data)
        yield {"output_type": "display_data", "data": {display.mime: data}}

"""A run as a notebook file: the model's words, its cells and calls as code, and what came of them as outputs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlm_loop.actions import Answer, CallTool, Malformed, Observation, RunCode
from rlm_loop.errors import install_line
from rlm_loop.report.notebook.formatting import answer_text, closing_line, labelled, observation_text, prose
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
    made: Any = nbformat.v4
    book = made.new_notebook(metadata={"kernelspec": _KERNEL})
    book.cells = list(_cells(outcome, made))
    for number, cell in enumerate(book.cells):
        cell.id = f"cell-{number}"  # the same run gives the same file
    target = Path(path)
    target.write_text(nbformat.writes(book), encoding="utf-8")
    return target


def _cells(outcome: Outcome, made: Any) -> Iterator[Any]:
    """The cells of a run; `made` are nbformat's functions."""

    def said(title: str, text: str) -> Any:
        return made.new_markdown_cell(_said(title, text))

    yield said("Question", outcome.question)
    for turn in outcome.turns:
        *before, after = prose(turn)
        for words, action, seen in zip(before, turn.actions, turn.observations, strict=True):
            if words:
                yield said(f"Turn {turn.index}", words)
            match action:
                case Answer() | Malformed():
                    yield from (said(f"Turn {turn.index}: {label}", text) for label, text in labelled(action, seen))
                case RunCode() | CallTool():
                    code = action.code if isinstance(action, RunCode) else _call(action.name, action.arguments)
                    yield made.new_code_cell(redact(code), execution_count=turn.index, outputs=_outputs(seen, made))
        if after:
            yield said(f"Turn {turn.index}", after)
    yield said("Answer" if outcome.answered else "No answer", f"{answer_text(outcome)}\n{closing_line(outcome)}")


def _said(title: str, text: str) -> str:
    """A title, and below it a text in a fence that is longer than any in the text."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"**{title}**\n\n{fence}text\n{redact(text)}\n{fence}"


def _call(name: str, arguments: str) -> str:
    try:
        given: Any = json.loads(arguments or "{}")
    except ValueError:
        given = None
    if not isinstance(given, Mapping):
        return f"# a call of {name} that could not be read\n{arguments!r}"
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in given.items())})"


def _outputs(seen: Observation, made: Any) -> list[Any]:
    text = observation_text(seen)[1]
    stream = {"name": "stdout" if seen.failure is None else "stderr", "text": redact(text)}
    shown = [made.new_output("stream", **stream)] if text else []
    for display in seen.displays:
        data = display.data if display.mime in ("image/png", "image/jpeg") else redact(display.data)
        shown.append(made.new_output("display_data", data={display.mime: data}))
    return shown

"""The parts that commands share: options, their errors, and output that steers no terminal.

What models, servers and files of others say ends up here.  An escape sequence in it could set the clipboard (OSC 52),
the title, or rewrite the lines above; a bidirectional control shows code in another order than it runs in.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from rlm_loop.models.names import MODEL_VARIABLE
from rlm_loop.report.notebook.formatting import harmless, visible
from rlm_loop.report.tables.table import Table, folded

if TYPE_CHECKING:
    from rlm_loop.models.base import Model

#: Exit codes beside 0 (answered, done, the same) and 1 (not so).  130 is the shell's convention for Ctrl-C.
MISUSE, INTERRUPTED = 2, 130
#: Makes a model of its name (and options such as `seed`); the object of a command's `typer.Context`.
Models = Callable[..., "Model"]

TraceFile = Annotated[str, Argument(help="A trace (.jsonl or .jsonl.gz).")]
ModelName = Annotated[
    str, Option("--model", metavar="NAME", envvar=MODEL_VARIABLE, help="local, local:FILE.gguf, ollama/..., openai/...")
]
Markdown = Annotated[bool, Option("--markdown", help="Tables as Markdown.")]
Json = Annotated[bool, Option("--json", help="One JSON object on standard output and nothing else.")]


class Misuse(Exception):
    """The command cannot be carried out as given; the message is one line that says what to do."""


def explain(error: BaseException) -> str:
    """Describe an error in one line.

    Errors of this package, a plain `ValueError` (a setting that cannot be) and `ImportError` (an optional part that is
    missing) say what to do by themselves; what a library makes of `ValueError` does not.
    """
    text = visible(" ".join(str(error).split()))
    ours = type(error) is ValueError or type(error).__module__.startswith("rlm_loop.")
    if ours or isinstance(error, ImportError):
        return text or type(error).__name__
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror}; choose another path, or change its permissions"
    return f"{type(error).__name__}: {text} (not expected; `--debug` shows where)"


def echo(text: object = "", *, err: bool = False, exact: bool = False) -> None:
    """Print a line of the result, or (`err`) a note, without what would steer a terminal, which may show a pipe too.

    An `exact` text goes to a pipe as it is.
    """
    stream = sys.stderr if err else sys.stdout
    print(text if exact and not stream.isatty() else harmless(str(text)), file=stream, flush=True)


def note(text: object) -> None:
    """Print a line that is not the result: to standard error, so that the result can be piped."""
    echo(fitting(text, err=True), err=True)


def show_table(table: Table, *, markdown: bool = False) -> None:
    """Print a table within the width of the terminal; a pipe gets whole lines."""
    echo(table.to_markdown() if markdown else table.to_text(_width()))


def fitting(text: object, *, err: bool = False) -> str:
    """A text in lines that fit the terminal; as it is where nothing says how wide that is."""
    width = _width(err=err)
    return str(text) if width is None else folded(str(text), width)


def _width(*, err: bool = False) -> int | None:
    """The characters of a line: what `COLUMNS` says, else the terminal; `None` for a pipe or a file."""
    stated = os.environ.get("COLUMNS", "")
    if stated.isdecimal() and int(stated):
        return int(stated)
    return shutil.get_terminal_size().columns if (sys.stderr if err else sys.stdout).isatty() else None


def as_json(value: Any) -> str:
    """Return a line of strict JSON (no NaN), objects by their `repr`."""
    from rlm_loop.traces.values import plain

    return json.dumps(plain(value), ensure_ascii=True, allow_nan=False)


def write_page(path: Path, page: str) -> None:
    """Write a page of HTML, in a folder that is made where it is not there, and say where it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page, encoding="utf-8", newline="")
    echo(path)

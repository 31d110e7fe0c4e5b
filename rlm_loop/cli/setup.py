"""What commands share: their options, what they need from outside, and how they say that something is wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from rlm_loop.cli.terminal import echo, note
from rlm_loop.models.names import MODEL_VARIABLE

if TYPE_CHECKING:
    from rlm_loop.models.base import Model
    from rlm_loop.tasks.base import Suite
    from rlm_loop.traces.reader import RunRecord

#: Exit codes.  130 is the shell's convention for Ctrl-C.
ANSWERED, NOT_ANSWERED, MISUSE, INTERRUPTED = 0, 1, 2, 130


class Misuse(Exception):
    """The command cannot be carried out as given; the message is one line that says what to do."""


@dataclass(frozen=True)
class Setup:
    """Where models come from: the function that turns a name (and options such as `seed`) into a model."""

    models: Callable[..., Model]


def setup_of(context: typer.Context) -> Setup:
    """The set-up that `cli.main` was called with."""
    return context.obj


def explain(error: BaseException) -> str:
    """What went wrong, as one line."""
    from rlm_loop.accounting.budget import UnknownPrice
    from rlm_loop.formats.traces.errors import FormatError
    from rlm_loop.models.base import ModelError
    from rlm_loop.repl.base import ReplError
    from rlm_loop.repl.contexts.on_disk import ContextError
    from rlm_loop.replay.recorded import ReplayError
    from rlm_loop.report.notebook.formatting import visible
    from rlm_loop.study.errors import StudyError
    from rlm_loop.tasks.clones import CloneError
    from rlm_loop.tasks.jsonl import SuiteFileError
    from rlm_loop.tasks.swebench.harness import HarnessError
    from rlm_loop.traces.trace import TraceError
    from rlm_loop.workspace.git import WorkspaceError

    text = visible(" ".join(str(error).split()))
    of_input = (CloneError, ContextError, FormatError, ReplayError, SuiteFileError, TraceError, UnknownPrice)
    of_place = (HarnessError, ModelError, ReplError, StudyError, WorkspaceError, ImportError)
    if isinstance(error, (*of_input, *of_place, Misuse)):
        return text or type(error).__name__
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror}; choose another path, or change its permissions"
    return f"{type(error).__name__}: {text} (not expected; `--debug` shows where)"


def read_text(path: str, *, stdin: Callable[[], bytes], what: str = "the context") -> str:
    """A file as text, byte-exact, or standard input for `-`.  Raises `Misuse` for what is not UTF-8."""
    try:
        raw = stdin() if path == "-" else Path(path).read_bytes()
    except OSError as error:
        raise Misuse(f"cannot read {what} {path}: {error.strerror}; name a text file, or -") from error
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        name = "standard input" if path == "-" else path
        raise Misuse(
            f"{name} is not UTF-8 text (byte {error.start:,} is 0x{raw[error.start]:02x}); "
            "convert it first, for example with iconv"
        ) from error


def suite_named(name: str) -> Suite:
    """The suite of this name or file.  Raises `Misuse` for one that is not there, with the known ones."""
    from rlm_loop.tasks import get_suite

    try:
        return get_suite(name)
    except ValueError as error:
        raise Misuse(str(error)) from error


def as_json(value: Any) -> str:
    """One line of strict JSON (no NaN), objects by their `repr`."""
    import json

    from rlm_loop.traces.values import plain

    return json.dumps(plain(value), ensure_ascii=True, allow_nan=False)


def write_page(path: Path, page: str) -> None:
    """Write a page of HTML, in a folder that is made where it is not there, and say where it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page, encoding="utf-8", newline="")
    echo(path)


TraceFile = Annotated[str, Argument(help="A trace (.jsonl or .jsonl.gz).")]
ModelName = Annotated[
    str,
    Option("--model", metavar="NAME", envvar=MODEL_VARIABLE, help="local, local:FILE.gguf, ollama/..., openai/..."),
]
RecordedContext = Annotated[
    str | None, Option("--context", metavar="FILE", help="The very text or file that the run was given.")
]
Markdown = Annotated[bool, Option("--markdown", help="Tables as Markdown.")]
Run = Annotated[
    str | None,
    Option(
        "--run",
        metavar="ID",
        help="Which run of the file: its id, or its number from 0, negative from the end. Default: the "
        "last one that was not broken off and tried again.",
    ),
]


def record_of(file: str, run: str | None) -> RunRecord:
    """The chosen run of a file; without a choice the last one, named on standard error if there are several."""
    from rlm_loop.traces.reader import read

    record = read(file, run=run)
    tell_others(file, record, run)
    return record


def tell_others(file: str, record: RunRecord, run: str | None) -> None:
    """Say on standard error which run was taken, where nobody chose and there are several."""
    from rlm_loop.traces.reader import runs_in

    if run is None and len(there := runs_in(file)) > 1:
        note(f"run {record.id}, one of {len(there)} in {file}: --run chooses")

"""Arguments and options that several commands take, and which run of a trace file a command is about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from rlm_loop.cli.terminal import note

if TYPE_CHECKING:
    from rlm_loop.traces.reader import RunRecord

TraceFile = Annotated[str, typer.Argument(help="A trace (.jsonl or .jsonl.gz).")]
ModelName = Annotated[
    str,
    typer.Option(
        "--model", metavar="NAME", envvar="RLM_LOOP_MODEL", help="local, local:FILE.gguf, ollama/..., openai/..."
    ),
]
RecordedContext = Annotated[
    str | None, typer.Option("--context", metavar="FILE", help="The very text, file or folder that the run was given.")
]
Markdown = Annotated[bool, typer.Option("--markdown", help="Tables as Markdown.")]
Run = Annotated[
    str | None,
    typer.Option(
        "--run",
        metavar="ID",
        help="Which run of the file: its id (`trace runs`), or its number from 0, negative from the end. Default: the "
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
    from rlm_loop.traces.runs import runs_in

    if run is None and len(there := runs_in(file)) > 1:
        note(f"run {record.id}, one of {len(there)} in {file}: --run chooses, `trace runs` lists them")

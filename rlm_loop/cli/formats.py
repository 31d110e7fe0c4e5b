"""`rlm-loop trace export`, `trace import` and `study export`: runs as files of other tools, and back."""

from __future__ import annotations

from typing import Annotated

import typer
from typer import Argument, Option

from rlm_loop.cli.experiments import Folder
from rlm_loop.cli.setup import Run, TraceFile, tell_others
from rlm_loop.cli.terminal import echo

To = Annotated[str, Option("--to", metavar="FORMAT", help="atif, inspect or hf; see docs/formats.md.")]


def add_to_trace(app: typer.Typer) -> None:
    """Give the `trace` command `export` and `import`."""
    app.command("export")(export_run)
    app.command("import")(import_runs)


def export_run(
    file: TraceFile,
    to: To,
    out: Annotated[str, Option(metavar="FILE", help="Where it goes; a file that is there is replaced.")],
    run: Run = None,
) -> None:
    """A recorded run as a file that another tool reads."""
    from rlm_loop.formats.traces import export_trace
    from rlm_loop.traces.reader import read

    record = read(file, run=run)
    tell_others(file, record, run)
    echo(str(export_trace(file, to, out, run=record.id)))  # pyright: ignore[reportArgumentType]


def import_runs(
    file: Annotated[str, Argument(help="An ATIF document or a log of Inspect.")],
    out: Annotated[str, Option(metavar="TRACE", help="The trace file that the runs are appended to.")],
) -> None:
    """The runs of another tool's file as a trace: `trace show`, `tree`, `price` and the page of a run read it."""
    from rlm_loop.formats.traces import import_trace

    found = import_trace(file, out=out)
    for conversation in found:
        used = conversation.usage
        echo(
            f"{conversation.task}: {conversation.agent} with {conversation.model}, {len(conversation.steps)} calls, "
            f"{_said(used.input_tokens)} tokens in, {_said(used.output_tokens)} out"
        )
    echo(out)


def export_results(
    folder: Folder,
    to: To,
    out: Annotated[str, Option(metavar="FOLDER", help="Where the files go.")],
) -> None:
    """The runs of a study, with their scores, as files that another tool reads."""
    from rlm_loop.formats.traces import export_study

    written = export_study(folder, to, out)  # pyright: ignore[reportArgumentType]
    echo(f"{len(written)} file{'' if len(written) == 1 else 's'} in {out}")


def _said(tokens: int | None) -> str:
    return "unknown" if tokens is None else f"{tokens:,}"

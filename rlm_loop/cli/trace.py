"""`rlm-loop trace`: reading what a run wrote down."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from rlm_loop.cli import trace_export, trace_replay
from rlm_loop.cli.setup import Misuse, Run, TraceFile, as_json, record_of, write_page
from rlm_loop.cli.terminal import echo, results

app = typer.Typer(help="Recorded runs.", no_args_is_help=True)
app.command("export")(trace_export.export_run)
app.command()(trace_replay.replay)
app.command()(trace_replay.fork)


@app.command()
def show(
    file: TraceFile,
    run: Run = None,
    json_: Annotated[bool, Option("--json", help="A summary as one JSON object.")] = False,
    html: Annotated[
        str | None, Option(metavar="OUT.html", help="Write a page to read it in a browser instead.")
    ] = None,
    open_: Annotated[bool, Option("--open", help="Open the page that --html writes.")] = False,
) -> None:
    """The steps of a recorded run, readable, and how it ended.  A page holds all runs of the file, or the one named."""
    if html is not None or open_:
        _page(file, run, html, open_)
        return
    from rich.text import Text

    from rlm_loop.accounting.tree import tree_of
    from rlm_loop.agents.past_run import outcome_of
    from rlm_loop.cli.run import summary
    from rlm_loop.cli.steps import step_panel, tree_lines
    from rlm_loop.report.notebook.formatting import closing_line, compaction_line, visible

    record = record_of(file, run)
    outcome = outcome_of(record, trace=file)
    if json_:
        echo(as_json(summary(outcome)))
        return
    console = results()
    start = record.start
    console.print(Text(f"{outcome.agent} with {outcome.model}, task {start.get('task', '?')}", style="bold"))
    console.print(Text(visible(outcome.question)))
    shortened = {e["turn"]: e for e in record.of("compaction") if not e["depth"]}
    for turn in outcome.turns:
        console.print(step_panel(turn))
        if turn.index in shortened:
            console.print(Text(visible(compaction_line(shortened[turn.index])), style="yellow"))
    tree = tree_of(record)
    if len(tree) > 1:
        for line in tree_lines(tree):
            console.print(line, soft_wrap=True)
    console.print(Text(closing_line(outcome)))
    console.print(Text(visible(f"answer: {outcome.answer!r}")))


def _page(file: str, run: str | None, html: str | None, opened: bool) -> None:
    import webbrowser

    from rlm_loop.report.run import run_page

    if html is None:
        raise Misuse("--open opens the page that --html writes; say where with --html OUT.html")
    page = run_page(file, run=run)
    out = Path(html)
    if out.exists() and out.samefile(file):
        raise Misuse(f"--html {html} is the trace itself; name another file")
    write_page(out, page)
    if opened:
        webbrowser.open(out.resolve().as_uri())

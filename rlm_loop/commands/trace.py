"""`rlm-loop trace`: reading what a run wrote down."""

from __future__ import annotations

from typing import Annotated

import typer

from rlm_loop.commands.setup import as_json, results

app = typer.Typer(help="Recorded runs.", no_args_is_help=True)


@app.command()
def show(
    file: Annotated[str, typer.Argument(help="A trace (.jsonl or .jsonl.gz).")],
    run: Annotated[int, typer.Option("--run", help="Which run of the file, from 0; negative from the end.")] = -1,
    json_: Annotated[bool, typer.Option("--json", help="A summary as one JSON object.")] = False,
) -> None:
    """The steps of a recorded run, readable, and how it ended."""
    from rich.text import Text

    from rlm_loop.commands.run import summary
    from rlm_loop.commands.steps import closing_line, step_panel, visible
    from rlm_loop.past_run import outcome_of
    from rlm_loop.show import compaction_line
    from rlm_loop.trace_reader import read

    record = read(file, run=run)
    outcome = outcome_of(record, trace=file)
    if json_:
        typer.echo(as_json(summary(outcome)))
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
    console.print(Text(closing_line(outcome)))
    console.print(Text(visible(f"answer: {outcome.answer!r}")))

"""`rlm-loop trace`: read, replay, fork and export what a run wrote down."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Option

from rlm_loop.cli.run import summary
from rlm_loop.cli.terminal import Json, Misuse, TraceFile, as_json, echo, fitting, note, write_page
from rlm_loop.report.notebook.formatting import closing_line, compaction_line, step_text, visible
from rlm_loop.traces.reader import RunRecord, read, runs_in
from rlm_loop.traces.redact import redact

app = typer.Typer(name="trace", help="Recorded runs.", no_args_is_help=True)

Run = Annotated[
    str | None, Option("--run", metavar="ID", help="Its id, or number from 0 or -1; default the last not tried again.")
]


def record_of(file: str, run: str | None) -> RunRecord:
    """The chosen run of a file; without a choice the last one, named on standard error if there are several."""
    record = read(file, run=run)
    if run is None and len(there := runs_in(file)) > 1:
        note(f"run {record.id}, one of {len(there)} in {file}: --run chooses")
    return record


@app.command()
def show(
    file: TraceFile,
    run: Run = None,
    json_: Json = False,
    html: Annotated[str | None, Option(metavar="OUT.html", help="Write a page for a browser instead.")] = None,
) -> None:
    """The steps of a recorded run, readable, and how it ended.  A page holds all runs of the file, or the one named."""
    from rlm_loop.accounting.tree import tree_of
    from rlm_loop.agents.past_run import outcome_of
    from rlm_loop.report.call_tree import lines
    from rlm_loop.report.run.page import run_page

    if html is not None:
        page, out = run_page(file, run=run), Path(html)
        if out.exists() and out.samefile(file):
            raise Misuse(f"--html {html} is the trace itself; name another file")
        write_page(out, page)
        return
    record = record_of(file, run)
    outcome = outcome_of(record, trace=file)
    if json_:
        echo(as_json(summary(outcome)))
        return
    shortened = {event["turn"]: event for event in record.of("compaction") if not event["depth"]}
    head = f"{outcome.agent} with {outcome.model}, task {record.start.get('task', '?')}\n{outcome.question}"
    echo(fitting(visible(head)))
    for turn in outcome.turns:
        echo(visible(step_text(turn)))
        if turn.index in shortened:
            echo(visible(compaction_line(shortened[turn.index])))
    tree = tree_of(record)
    for line, _ in lines(tree) if len(tree.nodes) > 1 else ():
        echo(visible(line))
    echo(visible(f"{closing_line(outcome)}\nanswer: {outcome.answer!r}"))


@app.command("export")
def export_run(
    file: TraceFile,
    to: Annotated[str, Option(metavar="FORMAT", help="inspect or otel; see docs/statistics.md.")],
    out: Annotated[
        str, Option(metavar="FILE", help="Where it goes; a file that is there is replaced. otel: or an OTLP address.")
    ],
    run: Run = None,
) -> None:
    """A recorded run as a file that another tool reads, or as spans sent to an address."""
    from rlm_loop.formats import export_trace

    record = record_of(file, run)
    export_trace(file, to, out, run=record.id)
    echo(redact(out))


@app.command()
def replay(file: TraceFile, run: Run = None) -> int:
    """Drive today's loop with a recorded run: exit status 1 where a request differs.

    No model and no code is run.
    """
    from rlm_loop.replay import replay as again

    result = again(record_of(file, run))
    echo(visible(str(result)))
    return 0 if result.same else 1


@app.command()
def fork(
    setup: typer.Context,
    file: TraceFile,
    at: Annotated[int, Option(help="The last recorded turn to keep; 0 begins anew.")],
    run: Run = None,
    model: Annotated[str | None, Option(help="The model to ask; a recorded name is not asked by itself.")] = None,
    context: Annotated[str | None, Option(metavar="FILE", help="The very text or file that the run was given.")] = None,
    steps: Annotated[int | None, Option("--max-steps", help="Turns at most, the recorded ones included.")] = None,
    trace: Annotated[str | None, Option(metavar="FILE", help="Where to record the new run.")] = None,
) -> int:
    """Go on live from a turn of a recorded run; what was done until then is not paid for again."""
    from rlm_loop.replay import ReplayError
    from rlm_loop.replay import fork as go_on

    record, given = record_of(file, run), None if context is None else Path(context)
    settings: dict[str, Any] = {} if steps is None else {"max_steps": steps}
    try:
        live = None if model is None else setup.obj(model)
        outcome = go_on(record, at=at, model=live, context=given, trace=trace, **settings)
    except ReplayError as error:  # which names the arguments of the function
        told = str(error).replace("give context=", "give --context").replace("give model=", "give --model")
        raise Misuse(told) from error
    echo(f"turns 1 to {at} are recorded")
    for turn in outcome.turns[at:]:
        echo(visible(step_text(turn)))
    echo(visible(f"{closing_line(outcome)}\nanswer: {outcome.answer!r}"))
    for text in outcome.notes:
        note(visible(f"note: {text}"))
    return 0 if outcome.answered else 1

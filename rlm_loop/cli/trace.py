"""`rlm-loop trace`: read, replay, fork and export what a run wrote down."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from rlm_loop.cli.setup import (
    ANSWERED,
    NOT_ANSWERED,
    Misuse,
    RecordedContext,
    Run,
    TraceFile,
    as_json,
    record_of,
    setup_of,
    tell_others,
    write_page,
)
from rlm_loop.cli.terminal import echo, note, results
from rlm_loop.traces.redact import redact

app = typer.Typer(help="Recorded runs.", no_args_is_help=True)


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


@app.command("export")
def export_run(
    file: TraceFile,
    to: Annotated[str, Option(metavar="FORMAT", help="inspect or otel; see docs/compare.md.")],
    out: Annotated[
        str, Option(metavar="FILE", help="Where it goes; a file that is there is replaced. otel: or an OTLP address.")
    ],
    run: Run = None,
    content: Annotated[bool, Option(help="With what was said, or without (otel).")] = True,
) -> None:
    """A recorded run as a file that another tool reads, or as spans sent to an address."""
    from rlm_loop.formats.traces import export_trace, send_trace
    from rlm_loop.traces.reader import read

    record = read(file, run=run)
    tell_others(file, record, run)
    if _sent(to, out):
        send_trace(record, out, content=content)
    else:
        export_trace(file, to, out, run=record.id, content=content)  # pyright: ignore[reportArgumentType]
    echo(redact(out))


def _sent(to: str, out: str) -> bool:
    """Whether it goes to an address; a file's name is never one."""
    if not out.startswith(("http://", "https://")):
        return False
    if to != "otel":
        raise Misuse(f"--to {to} writes a file; --to otel goes to an address")
    return True


@app.command()
def replay(
    files: Annotated[list[str], Argument(help="Traces (.jsonl, .jsonl.gz), or archives of traces (.tar, .tar.gz).")],
    run: Run = None,
    context: RecordedContext = None,
    json_: Annotated[bool, Option("--json", help="One JSON object a run, one a line.")] = False,
) -> int:
    """Drive today's loop with recorded runs: exit status 1 where a request differs.

    No model and no code is run.
    """
    from rlm_loop.replay import Replayed, ReplayError
    from rlm_loop.replay import replay as again
    from rlm_loop.report.notebook.formatting import visible
    from rlm_loop.study.store.archive import TRACES, recorded_runs
    from rlm_loop.traces.trace import TraceError

    bad, total, given = 0, 0, None if context is None else Path(context)
    for file in files:
        packed = file.endswith(TRACES)
        for name, record in recorded_runs(file, run=run):
            total += 1
            if not packed and not isinstance(record, TraceError):
                tell_others(file, record, run)
            found: Replayed | ReplayError | TraceError
            try:
                found = record if isinstance(record, TraceError) else again(record, context=given)
            except ReplayError as error:
                if not packed and len(files) == 1:
                    raise
                found = error
            bad += not (isinstance(found, Replayed) and found.same)
            if json_:
                echo(as_json(_facts(name, found)))
            elif not packed or not (isinstance(found, Replayed) and found.same):
                head = f"{name}: " if packed or len(files) > 1 else ""
                echo(visible(f"{head}{found}"))
    if not json_ and (total > 1 or any(f.endswith(TRACES) for f in files)):
        echo(f"{total - bad} of {total} runs are the same")
    return NOT_ANSWERED if bad else ANSWERED


def _facts(name: str, found: object) -> dict[str, object]:
    from rlm_loop.replay import Replayed

    if not isinstance(found, Replayed):
        return {"trace": name, "same": False, "error": str(found)}
    return {
        "trace": name,
        **{field: getattr(found, field) for field in ("same", "requests", "equal", "turns", "complete")},
        "difference": None if found.difference is None else str(found.difference),
        "notes": list(found.notes),
    }


@app.command()
def fork(
    setup: typer.Context,
    file: TraceFile,
    at: Annotated[int, Option(help="The last recorded turn to keep; 0 begins anew.")],
    run: Run = None,
    model: Annotated[str | None, Option(help="The model to ask; a recorded name is not asked by itself.")] = None,
    context: RecordedContext = None,
    workspace: Annotated[str | None, Option(metavar="SOURCE", help="The very source of the run's workspace.")] = None,
    steps: Annotated[int | None, Option("--max-steps", help="Turns at most, the recorded ones included.")] = None,
    trace: Annotated[str | None, Option(metavar="FILE", help="Where to record the new run.")] = None,
    json_: Annotated[bool, Option("--json", help="A summary as one JSON object.")] = False,
) -> int:
    """Go on live from a turn of a recorded run; what was done until then is not paid for again."""
    from rlm_loop.cli.run import summary
    from rlm_loop.cli.steps import step_panel
    from rlm_loop.replay import ReplayError
    from rlm_loop.replay import fork as go_on
    from rlm_loop.report.notebook.formatting import closing_line, visible
    from rlm_loop.workspace import Workspace

    record, given = record_of(file, run), None if context is None else Path(context)
    settings: dict[str, Any] = {} if steps is None else {"max_steps": steps}
    opened = None if workspace is None else Workspace(Path(workspace))
    try:
        live = None if model is None else setup_of(setup).models(model)
        outcome = go_on(
            record,
            at=at,
            model=live,
            context=given,
            workspace=opened,
            trace=trace,
            **settings,
        )
    except ReplayError as error:
        raise Misuse(_as_options(str(error))) from error
    finally:
        if opened is not None:
            opened.close()
    if json_:
        echo(as_json(summary(outcome)))
    else:
        console = results()
        console.print(f"turns 1 to {at} are recorded", style="dim")
        for turn in outcome.turns[at:]:
            console.print(step_panel(turn))
        echo(closing_line(outcome))
        echo(visible(f"answer: {outcome.answer!r}"))
    for text in outcome.notes:
        note(visible(f"note: {text}"))
    return ANSWERED if outcome.answered else NOT_ANSWERED


def _as_options(text: str) -> str:
    """An error of `fork` with its arguments named as options; functions can only be given in Python."""
    for option in ("context", "model"):
        text = text.replace(f"give {option}=", f"give --{option}")
    text = text.replace("give workspace=Workspace(...)", "give --workspace")
    return text + " (in Python: rlm_loop.replay.fork)" if "give " in text and "--" not in text else text

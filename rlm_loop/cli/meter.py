"""`rlm-loop meter` and `rlm-loop view`: what is served until Ctrl-C, a metered address and pages of runs."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
import webbrowser
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer
from typer import Argument, Option

from rlm_loop.cli.terminal import Misuse, ModelName, echo, note, show_table
from rlm_loop.report.notebook.formatting import number
from rlm_loop.report.tables.table import Table

if TYPE_CHECKING:
    from rlm_loop.meter import Branch, Figures, MeteredCall

Address = TypeVar("Address", bound=str)


def meter(
    context: typer.Context,
    model: ModelName = "local",
    forward: Annotated[
        str | None, Option(metavar="URL", help="Pass all on untouched to this provider instead.")
    ] = None,
    port: Annotated[int, Option(min=0, max=65535, help="0 takes a free one.")] = 8765,
    host: Annotated[str, Option(help="Beyond this machine only if you say so here.")] = "127.0.0.1",
    out: Annotated[str | None, Option(metavar="FOLDER", help="Write one trace a session into this folder.")] = None,
    max_tokens: Annotated[int | None, Option(min=0, help="Tokens of all sessions at most, input plus output.")] = None,
    max_cost: Annotated[float | None, Option(min=0, help="US dollars of all sessions at most.")] = None,
    show: Annotated[str | None, Option(metavar="FOLDER", help="Only print the tables of these traces.")] = None,
    quiet: Annotated[bool, Option("--quiet", "-q", help="No line for each request.")] = False,
) -> None:
    """Serve a model, or stand in front of a provider, and charge every token to its cause.

    Point any framework at the address (any key will do; each key is a session of its own).  Ctrl-C ends it and prints
    tokens by cause and times by session.
    """
    from rlm_loop.accounting.budget import Budget
    from rlm_loop.meter import metered_endpoint, read_meter

    if show is not None:
        _show(read_meter(show))
        return
    served = None if forward is not None else context.obj(model)
    budget = None
    if max_tokens is not None or max_cost is not None:
        budget = Budget(steps=None, malformed=None, tool_failures=None, tokens=max_tokens, cost=max_cost)
    if forward is not None:
        sys.setswitchinterval(0.0005)  # a stream does not wait for what reads the replies before
    if host not in ("127.0.0.1", "localhost", "::1"):
        note("anyone who can reach this machine can use it: no key is asked for")
    told = None if quiet else _line
    endpoint = metered_endpoint(served, forward=forward, port=port, host=host, out=out, budget=budget, told=told)
    url = _serve(endpoint, f"{host}:{port}", f"{forward if served is None else served.name} is")
    _show(url.meter.figures)
    if out is not None:
        note(f"traces are in {out}: rlm-loop trace show {out}/SESSION.jsonl")


def view(
    folder: Annotated[
        str | None,
        Argument(metavar="FOLDER", help="Of runs, studies or a meter, or a trace file; without it the log folder."),
    ] = None,
    port: Annotated[int, Option(min=0, max=65535, help="0 takes a free one.")] = 8766,
    opened: Annotated[bool, Option("--open", help="Open the page in the browser.")] = False,
) -> None:
    """Show a folder of runs as a table and a page for each, while they run.  Ctrl-C ends it.

    The pages are served on this machine alone and nothing is written.
    """
    from rlm_loop.report.view.server import viewing
    from rlm_loop.traces.kept import LOG_VARIABLE, log_folder

    where = log_folder() if folder is None else Path(folder)
    if where is None:
        raise Misuse(f"no run was kept ({LOG_VARIABLE} is off); name a folder of runs or studies")
    if not where.exists():
        raise Misuse(f"there is no folder {where}; name one that a study, an agent or the meter writes to")
    if where.is_file() and not where.name.endswith((".jsonl", ".jsonl.gz")):
        raise Misuse(f"{where} is no trace; name the folder that it lies in ({where.parent})")
    _serve(viewing(where, port=port), f"port {port}", f"{where} is shown", opened=opened)


def _serve(server: AbstractContextManager[Address], place: str, about: str, *, opened: bool = False) -> Address:
    """Serve until Ctrl-C or a polite request to end (SIGTERM); return the address."""
    try:
        with server as url:
            for signal_number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(signal_number, signal.default_int_handler)
            note(f"{about} at {url} (Ctrl-C ends it)")
            if opened:
                webbrowser.open(url)
            with contextlib.suppress(KeyboardInterrupt):
                threading.Event().wait()
    except OSError as error:
        reason = error.strerror or str(error)
        raise Misuse(f"cannot serve at {place}: {reason}; choose another --port (0: any free one)") from error
    return url


def _line(call: MeteredCall) -> None:
    where = call.session if call.node == "0" else f"{call.session} {call.node}"
    if call.call is None:
        note(f"{where}: refused with {call.status}: {call.error or call.unread}")
    else:
        tokens = f"{number(call.input_tokens)} tokens in, {number(call.output_tokens)} out"
        note(f"{where} turn {call.turn}: {tokens}, model {call.model_seconds:.2f} s")


def _show(figures: Figures) -> None:
    if not figures.sessions:
        note("nothing was asked")
        return
    for root in figures.trees():
        show_table(_tree(root))
        echo()
    rows: list[list[str]] = []
    for name, (ledger, calls) in figures.sessions.items():
        usage, replies = ledger.usage, sum(call.call is not None for call in calls)
        tokens = map(number, (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens))
        spent = sum(call.model_seconds for call in calls), sum(call.harness_seconds or 0.0 for call in calls)
        rows.append([name, str(replies), str(len(calls) - replies), *tokens, *(f"{seconds:,.1f}" for seconds in spent)])
    columns = ("session", "replies", "refused", "in", "out", "cached", "model s", "framework s")
    show_table(Table("Tokens and times by session", columns, rows))


def _tree(root: Branch) -> Table:
    """Print a line a branch: tokens of the first request, of a later one on average, of all; what a cache has."""
    rows: list[list[str]] = []
    for depth, one in root.lines():
        name = f"{one.requests} requests" if depth == 0 else f"{'  ' * depth}{one.name}"
        later = "" if one.per_turn is None else f"{one.per_turn:,.0f}"
        share, again = f"{one.total / (root.total or 1):.1%}", f"{one.cacheable or 0:.1%}"
        rows.append([name, f"{one.first:,}", later, f"{one.total:,}", share, again, number(one.cached)])
    columns = ("", "first", "per turn", "total", "share", "sent before", "cached")
    return Table(f"Input tokens of {root.name}", columns, rows)

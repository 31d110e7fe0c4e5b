"""`rlm-loop meter`: a metered address for any framework."""

from __future__ import annotations

import json
import signal
import sys
import threading
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from rlm_loop.cli.setup import Misuse, ModelName, as_json, read_text, setup_of
from rlm_loop.cli.terminal import echo, note, notes, results

if TYPE_CHECKING:
    from rich.table import Table

    from rlm_loop.meter import Branch, Figures, MeteredCall
    from rlm_loop.models.base import Model

_HERE = ("127.0.0.1", "localhost", "::1")


def meter(
    context: typer.Context,
    model: ModelName = "local",
    forward: Annotated[
        str | None,
        typer.Option("--forward", metavar="URL", help="Instead of a model: a provider that gets all untouched."),
    ] = None,
    replies: Annotated[
        str | None, Option(metavar="FILE", help="Instead of a model: replies to give in order, JSON Lines.")
    ] = None,
    recorded: Annotated[str | None, Option(metavar="TRACE", help="Instead of a model: the replies of a trace.")] = None,
    counter: Annotated[
        str | None, Option(metavar="NAME", help="Count with the template and tokenizer of this local model.")
    ] = None,
    port: Annotated[int, Option(min=0, max=65535, help="0 takes a free one.")] = 8765,
    host: Annotated[str, Option(help="Beyond this machine only if you say so here.")] = "127.0.0.1",
    out: Annotated[str | None, Option(metavar="FOLDER", help="Write one trace a session into this folder.")] = None,
    concurrency: Annotated[int | None, Option(min=1, help="Requests that the model gets at once.")] = None,
    max_tokens: Annotated[int | None, Option(min=0, help="Tokens of all sessions at most, input plus output.")] = None,
    max_cost: Annotated[float | None, Option(min=0, help="US dollars of all sessions at most.")] = None,
    show: Annotated[
        str | None, Option(metavar="FOLDER", help="Serve nothing: print the tables of these traces.")
    ] = None,
    json_: Annotated[bool, Option("--json", help="The totals as one JSON object a session.")] = False,
    quiet: Annotated[bool, Option("--quiet", "-q", help="No line for each request.")] = False,
) -> None:
    """Serve a model, or stand in front of a provider, and charge every token to its cause.

    Point any framework at the address (any key will do; each key is a session of its own).  Ctrl-C ends it and prints
    tokens by cause and times by session.
    """
    from rlm_loop.accounting.limits import Budget
    from rlm_loop.meter import metered_endpoint, read_meter

    if show is not None:
        _show(read_meter(show), json_=json_)
        return
    if forward is not None and (replies is not None or recorded is not None or concurrency):
        raise Misuse("--forward goes with neither --replies, --recorded nor --concurrency")
    served = None if forward is not None else _model(context, model, replies, recorded)
    counting = None if counter is None else setup_of(context).models(counter)
    limits: dict[str, Any] = {"tokens": max_tokens, "cost": max_cost}
    limited = max_tokens is not None or max_cost is not None
    budget = Budget(steps=None, malformed=None, tool_failures=None, **limits) if limited else None
    told = None if quiet or json_ else _line
    if forward is not None:
        sys.setswitchinterval(0.0005)  # a stream does not wait for what reads the replies before
    options: dict[str, Any] = {"port": port, "host": host, "out": out, "counter": counting, "budget": budget}
    try:
        with metered_endpoint(served, forward=forward, **options, concurrency=concurrency, told=told) as url:
            name = served.name if served is not None else forward
            note(f"{name} is at {url} (Ctrl-C ends it)")
            if host not in _HERE:
                notes().print("anyone who can reach this machine can use it: no key is asked for", style="yellow")
            until_interrupted()
    except ValueError as error:
        raise Misuse(str(error)) from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise Misuse(
            f"cannot serve at {host}:{port}: {reason}; choose another with --port (0: any free one)"
        ) from error
    _show(url.meter.figures, json_=json_)
    if out is not None:
        note(f"traces are in {out}: rlm-loop trace show {out}/SESSION.jsonl")


def _model(context: typer.Context, name: str, replies: str | None, recorded: str | None) -> Model:
    from rlm_loop.models import RecordedModel, ScriptedModel

    if replies is not None and recorded is not None:
        raise Misuse("--replies and --recorded are two sources of replies; use one")
    if recorded is not None:
        return RecordedModel.from_trace(recorded)
    if replies is not None:
        return ScriptedModel(_replies(read_text(replies, stdin=lambda: b"", what="the replies")))
    return setup_of(context).models(name)


def _replies(text: str) -> list[Any]:
    """One reply a line: a JSON string, or an object with `text` and `tool_calls` (`name`, `arguments`)."""
    from rlm_loop.messages import Reply, ToolCall

    made: list[Any] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            given = json.loads(line)
            if isinstance(given, str):
                made.append(given)
                continue
            calls = [
                ToolCall(c.get("id"), c["name"], a if isinstance(a := c.get("arguments", ""), str) else json.dumps(a))
                for c in given.get("tool_calls", ())
            ]
            made.append(Reply(given.get("text", ""), tuple(calls), "tool_calls" if calls else "stop"))
        except (ValueError, AttributeError, KeyError, TypeError) as error:
            raise Misuse(
                f"line {number} of the replies is no reply ({type(error).__name__}): write a JSON string, "
                'or {"text": ..., "tool_calls": [{"name": ..., "arguments": {...}}]}'
            ) from error
    return made


def until_interrupted() -> None:
    """Waits for Ctrl-C or a polite request to end (SIGTERM)."""

    def stop(_signal: int, _frame: object) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        return
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _line(call: MeteredCall) -> None:
    where = call.session if call.node == "0" else f"{call.session} {call.node}"
    if call.call is None:
        text = f"{where}: refused with {call.status}: {call.error or call.unread}"
    else:
        cached = f" ({call.cached_tokens:,} cached)" if call.cached_tokens else ""
        between = "" if call.harness_seconds is None else f", framework {call.harness_seconds:.3f} s"
        left = ", ".join(call.not_applied)
        text = (
            f"{where} turn {call.turn}: {_n(call.input_tokens)} tokens in{cached}, {_n(call.output_tokens)} out, "
            f"model {call.model_seconds:.2f} s{between}{f'; not applied: {left}' if left else ''}"
        )
    note(text)


def _n(value: int | None) -> str:
    return "?" if value is None else f"{value:,}"


def _tree(root: Branch) -> Table:
    """One line a branch: tokens of the first request, of a later one on average, of all; what a cache could hold."""
    from rich.table import Table

    table = Table(root.name, box=None, pad_edge=False)
    for name in ("first", "per turn", "total", "share", "sent before", "cached", "$"):
        table.add_column(name, justify="right")
    for depth, one in root.lines():
        later = "" if one.per_turn is None else f"{one.per_turn:,.0f}"
        share, again = f"{one.total / (root.total or 1):.1%}", f"{one.cacheable or 0:.1%}"
        money = "" if one.dollars is None else f"{one.dollars:.4f}"
        name = f"{one.requests} requests" if depth == 0 else f"{'  ' * depth}{one.name}"
        table.add_row(name, f"{one.first:,}", later, f"{one.total:,}", share, again, _n(one.cached), money)
    return table


def _show(figures: Figures, *, json_: bool) -> None:
    from rich.table import Table

    totals = figures.totals()
    if json_:
        trees = {tree.name: tree for tree in figures.trees()}
        for total in totals:
            causes = {cause: {"tokens": n, "resent": again} for cause, (n, again) in total.by_cause.items()}
            more = {"by_cause": causes, "tree": asdict(trees[total.session])}
            echo(as_json({**vars(total), "usage": dict(vars(total.usage)), **more}))
        return
    if not totals:
        note("nothing was asked")
        return
    times = Table("session", box=None, pad_edge=False)
    for name in ("replies", "refused", "in", "out", "cached", "model s", "frame s", "median ms", "meter ms"):
        times.add_column(name, justify="right")
    for total in totals:
        median = "" if total.harness_median is None else f"{1000 * total.harness_median:,.1f}"
        each = 1000 * total.meter_seconds / max(total.served + total.refused, 1)
        used = (_n(total.usage.input_tokens), _n(total.usage.output_tokens), _n(total.usage.cache_read_tokens))
        counts = (str(total.served), str(total.refused), *used)
        spent = (f"{total.model_seconds:,.1f}", f"{total.harness_seconds:,.1f}", median, f"{each:.2f}")
        times.add_row(total.session, *counts, *spent)
    console = results()
    for root in figures.trees():
        console.print(_tree(root))
    console.print()
    console.print(times)

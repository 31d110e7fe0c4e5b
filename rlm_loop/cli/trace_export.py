"""`rlm-loop trace export`: a run as a file of another tool."""

from __future__ import annotations

from typing import Annotated

from typer import Option

from rlm_loop.cli.setup import Misuse, Run, TraceFile, tell_others
from rlm_loop.cli.terminal import echo
from rlm_loop.traces.redact import redact


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

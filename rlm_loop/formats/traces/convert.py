"""From a trace to files of other tools: which format, which run, which file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, get_args

from rlm_loop.formats.traces.conversation import RunConversation
from rlm_loop.formats.traces.errors import FormatError
from rlm_loop.formats.traces.from_trace import conversation_of
from rlm_loop.traces.reader import Run, RunRecord, read

#: Formats that are written.
Format = Literal["inspect", "otel"]
FORMATS: tuple[Format, ...] = get_args(Format)


def export_trace(
    source: str | Path | RunRecord | RunConversation,
    to: Format,
    out: str | Path,
    *,
    run: Run = None,
    content: bool = True,
) -> Path:
    """Write one run in another tool's format and return the file's path.

    `source` is a trace file (`run` chooses as in `rlm_loop.traces.reader.read`), a run read from one, or a
    conversation; `to` is one of `FORMATS`.  An existing file is replaced.  Without `content` what was said is left out,
    which only `otel` can.  docs/compare.md lists what each format cannot hold.  Raises `FormatError` for an unknown
    format or a file that is its own source, `TraceError` as `read` does, `ImportError` where a format needs a package
    that is not installed, `OSError` as writing does.
    """
    check(to, content)
    target = Path(out)
    if isinstance(source, (str, Path)) and target.exists() and target.samefile(source):
        raise FormatError(f"{out} is the trace itself; name another file")
    write(_conversation(source, run), to, target, content)
    return target


def send_trace(
    source: str | Path | RunRecord | RunConversation,
    address: str,
    *,
    run: Run = None,
    content: bool = True,
    headers: Mapping[str, str] | None = None,
) -> None:
    """Send one run as spans of OpenTelemetry to an OTLP endpoint, such as Phoenix's or MLflow's.

    An address without a path gets `/v1/traces`.  `headers` replace those of `OTEL_EXPORTER_OTLP_HEADERS`.  Raises
    `FormatError` where the endpoint does not take the spans, and otherwise as `export_trace`.
    """
    from rlm_loop.formats.traces.otel.exporting import send_spans
    from rlm_loop.formats.traces.otel.spans import spans_of

    send_spans(spans_of(_conversation(source, run), content=content), address, headers)


def check(to: str, content: bool) -> None:
    """Raise `FormatError` for a format that is not there, or that cannot be written without what was said."""
    if to not in FORMATS:
        raise FormatError(f"there is no format {to!r}; there are {', '.join(FORMATS)}")
    if not content and to != "otel":
        raise FormatError(f"{to} is what was said; only otel can be written without it")


def _conversation(source: str | Path | RunRecord | RunConversation, run: Run) -> RunConversation:
    if isinstance(source, RunConversation):
        return source
    return conversation_of(read(source, run=run) if isinstance(source, (str, Path)) else source)


def write(conversation: RunConversation, to: Format, target: Path, content: bool) -> None:
    """Write one run as one file."""
    match to:
        case "inspect":
            from rlm_loop.formats.traces.inspect_out import write_log

            write_log([conversation], target)
        case "otel":
            from rlm_loop.formats.traces.otel.exporting import write_spans
            from rlm_loop.formats.traces.otel.spans import spans_of

            write_spans(spans_of(conversation, content=content), target)

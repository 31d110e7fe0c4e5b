"""From a trace to files of other tools, and back: which format, which run, which file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, cast, get_args

from rlm_loop.formats.traces.conversation import RunConversation
from rlm_loop.formats.traces.errors import FormatError
from rlm_loop.formats.traces.from_trace import conversation_of
from rlm_loop.messages import Prompt
from rlm_loop.models import LocalModel, get_model
from rlm_loop.traces.reader import RunRecord, read
from rlm_loop.traces.received import file_bytes, parse
from rlm_loop.traces.runs import Run

#: Formats that are written.
Format = Literal["atif", "inspect", "hf", "otel", "verifiers"]
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


def import_trace(path: str | Path, *, out: str | Path | None = None) -> tuple[RunConversation, ...]:
    """The runs of a file of another tool, and with `out` also as runs of a trace file, to which they are appended.

    Read are ATIF documents and Inspect's logs (`.eval` and JSON); what the file holds says which it is.  Raises
    `FormatError` in one line for what cannot be read: a truncated file, another version of its format; `ImportError`
    where a package is missing; `TraceError` where `out` cannot be written.
    """
    from rlm_loop.formats.traces.as_trace import write_conversations

    if out is not None and Path(out).exists() and Path(path).exists() and Path(out).samefile(path):
        raise FormatError(f"{out} is the file that is read; name another file")
    found = _read(path)
    if out is not None:
        write_conversations(found, out)
    return found


def _read(path: str | Path) -> tuple[RunConversation, ...]:
    from rlm_loop.formats.traces.atif_in import from_trajectory
    from rlm_loop.formats.traces.inspect_in import from_log

    try:
        data = file_bytes(path)
    except OSError as error:
        raise FormatError(f"cannot read {path}: {error.strerror or error}") from error
    if data.startswith(b"PK") or Path(path).suffix == ".eval":
        return from_log(path)
    try:
        value: Any = parse(data)
    except ValueError as error:
        raise FormatError(f"{path} is no JSON document: {error}") from error
    return from_log(path) if isinstance(value, dict) and "eval" in value else (from_trajectory(value, path),)


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
        case "atif":
            from rlm_loop.formats.traces.atif import to_trajectory

            write_text(target, json.dumps(to_trajectory(conversation), ensure_ascii=False, indent=1) + "\n")
        case "inspect":
            from rlm_loop.formats.traces.inspect_out import write_log

            write_log([conversation], target)
        case "hf":
            from rlm_loop.formats.traces.sessions import session_lines

            write_lines(session_lines(conversation), target)
        case "otel":
            from rlm_loop.formats.traces.otel.exporting import write_spans
            from rlm_loop.formats.traces.otel.spans import spans_of

            write_spans(spans_of(conversation, content=content), target)
        case "verifiers":
            from rlm_loop.formats.traces.verifiers_out import record_of_run

            write_lines([record_of_run(conversation, prompt_ids_of)], target)


def prompt_ids_of(model: str, prompt: Prompt) -> list[int]:
    """The ids of a request's tokens; only models whose replies kept theirs are asked, and those are local ones."""
    return cast(LocalModel, get_model(model)).prompt_ids(prompt)


def write_lines(values: Iterable[Any], target: Path) -> None:
    """Write values as JSON Lines."""
    write_text(target, "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values))


def write_text(target: Path, text: str) -> None:
    """Write a file, with its folder; a lone half of a surrogate pair is written as its escape."""
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8", errors="backslashreplace")

"""Runs for other tools: one run as a file or sent to an address, or the runs of a study as files."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from rlm_loop.formats.conversation import Conversation, FormatError, conversation_of
from rlm_loop.formats.inspect_log import write_log
from rlm_loop.formats.otel import send_spans, write_spans
from rlm_loop.outcome import Score
from rlm_loop.study.results import Results, load_study
from rlm_loop.traces.reader import Run, read

Writer = Callable[[Sequence[Conversation], Path], None]
#: What writes each, and how its files are called.
_WRITERS: Mapping[str, tuple[Writer, str]] = {"inspect": (write_log, ".eval"), "otel": (write_spans, ".otlp.jsonl")}
#: What of a study's row says which episode it is.
_EPISODE = ("study", "arm", "model", "suite", "task", "seed")


def export_trace(source: str | Path | Conversation, to: str, out: str | Path, *, run: Run = None) -> None:
    """Write one run in another tool's format, or send it to an OTLP endpoint, such as Phoenix's or MLflow's.

    `to` is `inspect` or `otel`.  `source` is a trace file (`run` chooses as in `rlm_loop.traces.read`) or a
    conversation.  `out` is a file, which is replaced, or for `otel` the `http` address of an endpoint; one without a
    path gets `/v1/traces`, and headers are those of `OTEL_EXPORTER_OTLP_HEADERS`.  Raises `FormatError` for an unknown
    format, a file that is its own source, or an endpoint that does not take the spans, `TraceError` as `read` does,
    `ImportError` where a format needs a package that is not installed, `OSError` as writing does.
    """
    write, _ = _writer(to)
    conversation = source if isinstance(source, Conversation) else conversation_of(read(source, run=run))
    target = Path(out)
    if str(out).startswith(("http://", "https://")):
        if to != "otel":
            raise FormatError(f"{to} is a file; only otel goes to an address")
        send_spans(conversation, str(out))
    elif isinstance(source, (str, Path)) and target.exists() and target.samefile(source):
        raise FormatError(f"{out} is the trace itself; name another file")
    else:
        write([conversation], target)


def export_study(study: str | Path | Results, to: str, out: str | Path) -> list[Path]:
    """Write every run of a study, with its score, into the folder `out`: a file for each arm, model and suite.

    `study` is the folder of a study's results, or the results.  Episodes that have no trace are left out.  Returns the
    files' paths.  Raises `StudyError` where the folder holds no study, and otherwise as `export_trace`.
    """
    write, ending = _writer(to)
    results = study if isinstance(study, Results) else load_study(study)
    files: dict[Path, list[Conversation]] = {}
    for row in results.rows:
        if not row.get("trace"):
            continue
        score = Score(row["resolved"], row.get("value") or 0.0, str(row.get("score_reason") or ""))
        episode = {name: row.get(name) for name in _EPISODE}
        name = re.sub(r"[^\w.-]+", "-", "--".join(str(row[part]) for part in ("arm", "model", "suite"))) + ending
        files.setdefault(Path(out) / name, []).append(conversation_of(results.trace(row), score, episode))
    for path, conversations in files.items():
        write(conversations, path)
    return list(files)


def _writer(to: str) -> tuple[Writer, str]:
    if to not in _WRITERS:
        raise FormatError(f"there is no format {to!r}; there are {', '.join(_WRITERS)}")
    return _WRITERS[to]

"""What happened in a run, as JSON Lines: one event a line, appended and flushed, a torn last line ignored.

Messages are stored once each, by content hash; a request names the request that it grew from and the messages
it added, so these are linear in turns.  The ledger's rows, kept with each reply, are not yet: a later call has more.
The context itself is never written, only its hash and size.
"""

from __future__ import annotations

import json
import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, is_dataclass
from pathlib import Path
from typing import IO, Any

from rlm_loop.messages import Message, Prompt, Reply, Span, ToolCall, Usage, digest

SCHEMA = 1


class TraceError(Exception):
    """A trace cannot be written or read; the message is one line that says what to do."""


class Trace:
    """Where events go: a file (`path`) or, without one, the list `events`.

    A file is appended to, so that an earlier run in it is never lost; each run starts with a `run_start` event
    which carries the schema version.  Raises `TraceError` where the file cannot be opened.
    """

    def __init__(self, path: str | Path | None = None, *, clock: Callable[[], float] = time.time) -> None:
        self.path = str(path) if path is not None else None
        self.events: list[dict[str, Any]] = []
        self._clock = clock
        self._stored: set[str] = set()
        self._last: tuple[str, tuple[Message, ...]] = ("", ())
        self._redact = redactor(os.environ)
        self._file: IO[str] | None = None
        self._lock = threading.RLock()  # sub-calls may be recorded from threads
        if path is not None:
            try:
                Path(path).parent.mkdir(parents=True, exist_ok=True)
                self._file = _open_for_append(Path(path))
            except OSError as error:
                raise TraceError(f"cannot write the trace {path}: {error.strerror}; choose another path") from error

    def record(self, event: str, **data: Any) -> None:
        """Append one event; values are made JSON (dataclasses by their fields, unknown objects by `repr`)."""
        line = {"event": event, "at": round(self._clock(), 3), **{k: plain(v) for k, v in data.items()}}
        text = self._redact(json.dumps(line, ensure_ascii=True, separators=(",", ":")))
        with self._lock:
            if self._file is None:
                self.events.append(json.loads(text))
                return
            self._file.write(text + "\n")
            self._file.flush()

    def start(self, **data: Any) -> None:
        """The first event of a run."""
        self._stored.clear()
        self._last = ("", ())
        self.record("run_start", schema=SCHEMA, **data)

    def request(self, prompt: Prompt, **data: Any) -> str:
        """Record a request by content hash, its new messages as bodies; returns the hash."""
        with self._lock:
            return self._request(prompt, data)

    def _request(self, prompt: Prompt, data: Mapping[str, Any]) -> str:
        base, sent = self._last
        grown = bool(base) and prompt.messages[: len(sent)] == sent
        hashes: list[str] = []
        for message in prompt.messages[len(sent) if grown else 0 :]:
            key = digest(asdict(message))
            if key not in self._stored:
                self._stored.add(key)
                self.record("message", hash=key, message=message)
            hashes.append(key)
        name = prompt.digest()
        rest = {"tools": prompt.tools, "stop": prompt.stop, "reply_schema": prompt.reply_schema}
        shared = digest(plain(rest))
        if shared not in self._stored:
            self._stored.add(shared)
            self.record("settings", hash=shared, **rest)
        self.record(
            "request",
            digest=name,
            base=base if grown else None,
            added=hashes,
            settings=shared,
            **data,
        )
        self._last = (name, prompt.messages)
        return name

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def __enter__(self) -> Trace:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _open_for_append(path: Path) -> IO[str]:
    """Open for appending; a torn last line (the writer was killed) is ended first, so it stays on its own."""
    file = path.open("a+", encoding="utf-8")
    if file.tell():
        with path.open("rb") as tail:
            tail.seek(-1, os.SEEK_END)
            if tail.read(1) != b"\n":
                file.write("\n")
    return file


def plain(value: Any) -> Any:
    """A value as JSON types: dataclasses by field with their class in `is`, NaN and objects as `{"repr": ...}`."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else {"repr": repr(value)}
    if is_dataclass(value) and not isinstance(value, type):
        return {"is": type(value).__name__, **{k: plain(v) for k, v in vars(value).items() if not k.startswith("_")}}
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, (set, frozenset)):  # in a fixed order: a set's own differs from process to process
        return sorted((plain(v) for v in value), key=repr)
    return {"repr": repr(value)[:10_000]}


_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL", re.IGNORECASE)
_SECRET_SHAPE = re.compile(
    r"\b(?:sk|pk|ghp|gho|hf|xox[bp])[-_][A-Za-z0-9_\-]{16,}|(?<=://)[^/\s:@\"\\]+:[^/\s@\"\\]+(?=@)"
)

_SECRET_MARKS = ("sk-", "sk_", "pk-", "pk_", "ghp_", "gho_", "ghp-", "gho-", "hf_", "hf-", "xoxb", "xoxp", "://")


def redactor(environ: Mapping[str, str]) -> Callable[[str], str]:
    """A function that replaces what looks like a secret: known key shapes, passwords in addresses, and the values
    of environment variables whose name speaks of a key, token, secret or password (8 characters or more)."""
    values = sorted({v for k, v in environ.items() if _SECRET_NAME.search(k) and len(v) >= 8}, key=len, reverse=True)
    escaped = [json.dumps(v)[1:-1] for v in values]

    def redact(text: str) -> str:
        for value in escaped:
            text = text.replace(value, "[redacted]")
        # the pattern is slow on long texts, and its fixed parts are rare
        return _SECRET_SHAPE.sub("[redacted]", text) if any(mark in text for mark in _SECRET_MARKS) else text

    return redact


@dataclass(frozen=True)
class RunRecord:
    """One run as read back: its events, and the model calls as (request digest, prompt, reply)."""

    events: tuple[Mapping[str, Any], ...]

    @property
    def start(self) -> Mapping[str, Any]:
        return self.events[0]

    @property
    def end(self) -> Mapping[str, Any] | None:
        """The `run_end` event; `None` if the run never came to its end."""
        return next((e for e in reversed(self.events) if e["event"] == "run_end"), None)

    def of(self, event: str) -> list[Mapping[str, Any]]:
        """All events of one kind."""
        return [e for e in self.events if e["event"] == event]

    def calls(self) -> Iterator[tuple[str, Prompt, Reply]]:
        """Every model call that got a reply, in order, with its whole request."""
        bodies = {e["hash"]: message_of(e["message"]) for e in self.of("message")}
        settings = {e["hash"]: e for e in self.of("settings")}
        grown: dict[str, tuple[Message, ...]] = {}
        pending: dict[str, Prompt] = {}
        for e in self.events:
            if e["event"] == "request":
                messages = (*grown.get(e["base"] or "", ()), *(bodies[h] for h in e["added"]))
                rest = settings[e["settings"]]
                grown[e["digest"]] = messages
                pending[e["digest"]] = Prompt(messages, tuple(rest["tools"]), tuple(rest["stop"]), rest["reply_schema"])
            elif e["event"] == "reply" and e["request"] in pending:
                yield e["request"], pending[e["request"]], reply_of(e["reply"])


def read(path: str | Path, *, run: int = -1) -> RunRecord:
    """Read one run of a trace file (the last by default); `.gz` files are read compressed.

    A torn last line is ignored.  Raises `TraceError` for a missing file, one that is not a trace, a newer schema
    and a damaged line in the middle.
    """
    runs = list(read_all(path))
    try:
        return runs[run]
    except IndexError:
        raise TraceError(f"{path} holds {len(runs)} runs; there is no run {run}") from None


def read_all(path: str | Path) -> Iterator[RunRecord]:
    """Every run of a trace file, in order."""
    import gzip

    try:
        raw = Path(path).read_bytes()
        text = (gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw).decode("utf-8", "replace")
    except OSError as error:
        raise TraceError(f"cannot read the trace {path}: {error.strerror}") from error
    events: list[Mapping[str, Any]] = []
    for number, event in _events(path, text.split("\n")):
        if event["event"] == "run_start":
            if event.get("schema", 0) > SCHEMA:
                raise TraceError(
                    f"{path} has schema {event['schema']}; this version reads up to {SCHEMA}: upgrade rlm-loop"
                )
            if events:
                yield RunRecord(tuple(events))
            events = []
        elif not events:
            raise TraceError(f"{path}:{number} is not a trace of rlm_loop: the first event is not run_start")
        events.append(event)
    if events:
        yield RunRecord(tuple(events))


def _events(path: str | Path, lines: list[str]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    damaged: int | None = None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            event = json.loads(line)
        except ValueError:
            event = None
        if not isinstance(event, dict) or "event" not in event:
            damaged = number
            continue
        # a torn line is forgiven at the end of the file and at the end of a run that another was appended to
        if damaged is not None and event["event"] != "run_start":
            raise TraceError(f"{path}:{damaged} is damaged in the middle of the file; restore it from a copy")
        damaged = None
        yield number, event


def message_of(data: Mapping[str, Any]) -> Message:
    """A `Message` from its stored form."""
    return Message(
        data["role"],
        tuple(Span(s["text"], s["cause"]) for s in data["spans"]),
        tuple(_tool_calls(data["tool_calls"])),
        data["tool_call_id"],
        data["turn"],
    )


def reply_of(data: Mapping[str, Any]) -> Reply:
    """A `Reply` from its stored form."""
    usage = data.get("usage")
    return Reply(
        data["text"],
        tuple(_tool_calls(data["tool_calls"])),
        data["finish_reason"],
        None if usage is None else Usage(**{k: v for k, v in usage.items() if k != "is"}),
        data.get("seconds", 0.0),
        data.get("waited", 0.0),
        data.get("extra") or {},
    )


def _tool_calls(data: Iterable[Mapping[str, Any]]) -> Iterator[ToolCall]:
    return (ToolCall(c["id"], c["name"], c["arguments"]) for c in data)

"""The writer of traces: a run as JSON Lines, one event a line, appended and flushed, a torn last line ignored.

Every event has the id of its run under `run`, so that several runs can be written to one file at the same time.
Messages are stored once each, by content hash; a request names the request that it grew from, how many messages of it
are `kept` where that is not all, and the messages it added, and a reply what its call was charged more than the call
before (see `charges`), so a trace is linear in turns.
The context itself is never written, only its hash and size.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import is_dataclass
from math import isfinite
from operator import is_
from pathlib import Path
from typing import Any, cast

from rlm_loop.actions import Display
from rlm_loop.messages import Message, Prompt, common, digest
from rlm_loop.traces.file import LineFile
from rlm_loop.traces.logs import tell
from rlm_loop.traces.received import DEEPEST, shown
from rlm_loop.traces.redact import redactor

_log = logging.getLogger(__name__)

SCHEMA = 5


class TraceError(Exception):
    """A trace cannot be written or read; the message is one line that says what to do."""


class TraceUnwritable(TraceError):
    """A trace cannot be written: a fault of the machine, and not of the run."""


class _Memory:
    """Events that go to no file."""

    def __init__(self) -> None:
        self._events: list[dict[str, Any]] = []
        self._unread: list[str] = []  # events that nobody has looked at yet, as lines
        self._lock = threading.Lock()
        self.append = self._unread.append

    @property
    def events(self) -> list[dict[str, Any]]:
        with self._lock:
            while self._unread:
                self._events += map(json.loads, self._unread.pop(0).splitlines())
            return self._events

    def rest(self) -> None:
        """Nothing is held open."""

    close = rest


def new_id() -> str:
    """An id of a run: a letter, so that it is no number of one, and ten hexadecimal digits."""
    return f"r{os.urandom(5).hex()}"


class Trace:
    """Where the events of a run go: a file (`path`) or, without one, the list `events`.

    A file is appended to, so that an earlier run in it is never lost, and others may write to it at the same time, from
    threads and processes; each run starts with a `run_start` event which carries the schema version.  `run` is the id
    of the run, which every event carries; `ids` makes them.  Raises `TraceError` where the file cannot be opened.
    """

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        clock: Callable[[], float] = time.time,
        ids: Callable[[], str] = new_id,
        beside: Trace | None = None,
    ) -> None:
        self.path = str(path) if path is not None else None
        self.run, self.task = ids(), ""
        self._started = self._taken = False
        self._clock, self._ids = clock, ids
        self._stored: set[str] = set()
        self._shared: tuple[str, tuple[Any, ...]] = "", (None, None, None)  # the latest settings and their hash
        self._last: dict[str, tuple[str, tuple[Message, ...]]] = {}  # by node: sub-calls come in between
        self._calls = 0
        self._steps: float | None = None  # that the root agent may take
        self._tokens: dict[str, int | None] = {}  # of the latest reply, by node: for the log
        self._redact = redactor(os.environ)
        self._lock = threading.RLock()  # sub-calls may be recorded from threads
        self._owns = beside is None
        try:
            self._out: LineFile | _Memory = beside._out if beside else _Memory() if path is None else LineFile(path)
        except OSError as error:
            raise TraceUnwritable(f"cannot write the trace {path}: {error.strerror}; choose another path") from error

    def for_run(self) -> Trace:
        """For one run: this trace, or another of the same file or list where this one is taken.

        Runs that are given the same trace may go on at the same time; closing another closes nothing.
        """
        with self._lock:
            taken, self._taken = self._taken or self._started, True
        return Trace(self.path, clock=self._clock, ids=self._ids, beside=self) if taken else self

    @property
    def events(self) -> list[dict[str, Any]]:
        """The recorded events of all runs, where there is no file."""
        return self._out.events if isinstance(self._out, _Memory) else []

    def record(self, event: str, **data: Any) -> None:
        """Append one event; values are made JSON (dataclasses by their fields, unknown objects by `repr`)."""
        self._write((event, data))
        if _log.isEnabledFor(logging.INFO):
            self._tell(event, data)

    def copy(self, event: str, **data: Any) -> None:
        """Append an event of another trace, of which the log has been told already."""
        self._write((event, data))

    def steps_left(self, node: str, turn: int) -> int | None:
        """The turns that are left after one of the root agent; `None` where nobody limits or knows them."""
        return None if self._steps is None or node != "0" else max(0, int(self._steps) - turn)

    def _tell(self, event: str, data: Mapping[str, Any]) -> None:
        node = str(data.get("node", "0"))
        if event == "reply" and (usage := data["reply"].usage) is not None:
            self._tokens[node] = usage.total_tokens
        said = event in ("reply", "turn")
        tokens = self._tokens.get(node) if said else getattr(data.get("usage"), "total_tokens", None)
        left = self.steps_left(node, int(data["turn"])) if event == "turn" else None
        tell(_log, event, data, run=self.run, task=self.task, tokens=tokens, steps_remaining=left)

    def _write(self, *events: tuple[str, Mapping[str, Any]]) -> None:
        """Append events in one write, which costs less than one each."""
        text, at = "", round(self._clock(), 3)
        for event, data in events:
            line = {"run": self.run, "event": event, "at": at, **data}  # a torn line tells its run: the id comes first
            try:
                text += _as_json(self._redact.value(line, default=one_level)) + "\n"
            except (ValueError, RecursionError):  # a value of a cell's that Python will not write out
                text += _as_json(self._redact.value(plain(line))) + "\n"
        try:
            with self._lock:
                self._out.append(text)
        except OSError as error:
            reason = error.strerror or error
            hint = "free some space, or choose another path"
            raise TraceUnwritable(f"cannot write the trace {self.path}: {reason}; {hint}") from error

    def start(self, **data: Any) -> None:
        """The first event of a run."""
        with self._lock:
            self.run = self._ids()  # only now: a process may have been forked since this trace was made
            self._started, self._calls, self.task = True, 0, str(data.get("task", ""))
            self._steps = getattr(data.get("budget"), "steps", None)
            if self._steps is not None:  # of a session's further question the turns are numbered on
                self._steps += (data.get("session") or {}).get("turns", 0)
            self._redact = redactor(os.environ)  # a key may have been set since the last run
            for known in (self._tokens, self._stored, self._last):
                known.clear()
            self._shared = "", (None, None, None)
            self.record("run_start", schema=SCHEMA, **data)

    def next_call(self) -> int:
        """The id of a further model call: its number among those of the run, in the order in which they are made."""
        with self._lock:
            self._calls += 1
            return self._calls

    def request(self, prompt: Prompt, **data: Any) -> str:
        """Record a request by content hash, its new messages as bodies; returns the hash."""
        node, name = data.get("node", "0"), prompt.digest()
        rest = {"tools": prompt.tools, "stop": prompt.stop, "reply_schema": prompt.reply_schema}
        with self._lock:
            base, sent = self._last.get(node, ("", ()))
            kept = common(sent, prompt.messages)
            cut = {"kept": kept} if 0 < kept < len(sent) else {}  # the base had more: compaction left something out
            hashes, events = self._bodies(prompt.messages[kept:])
            if not all(map(is_, self._shared[1], rest.values())):
                self._shared = digest(rest), tuple(rest.values())
            shared = self._shared[0]
            if shared not in self._stored:
                self._stored.add(shared)
                events.append(("settings", {"hash": shared, **rest}))
            about = {"digest": name, "base": base if kept else None, "added": hashes, **cut, "settings": shared, **data}
            self._write(*events, ("request", about))
            self._last[node] = name, prompt.messages
        return name

    def earlier(self, messages: Sequence[Message], **data: Any) -> None:
        """Record the messages that a run begins with, which were said before it."""
        with self._lock:
            hashes, events = self._bodies(messages)
            self._write(*events, ("earlier", {"messages": hashes, **data}))

    def _bodies(self, messages: Sequence[Message]) -> tuple[list[str], list[tuple[str, Mapping[str, Any]]]]:
        """The hashes of messages, and an event for each whose body was not stored yet."""
        hashes, events = list[str](), list[tuple[str, Mapping[str, Any]]]()
        for message in messages:
            key = digest(body_of(message))
            if key not in self._stored:
                self._stored.add(key)
                events.append(("message", {"hash": key, "message": message}))
            hashes.append(key)
        return hashes, events

    def text(self, text: str) -> str:
        """Store a text that is no message, once; returns the hash by which other events name it."""
        key = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        with self._lock:
            if key not in self._stored:
                self._stored.add(key)
                self.record("text", sha256=key, text=text)
        return key

    def once(self, event: str, **data: Any) -> str:
        """Record an event unless its like was recorded before; returns the hash by which other events name it."""
        key = digest({"event": event, **plain(data)})
        with self._lock:
            if key not in self._stored:
                self._stored.add(key)
                self.record(event, hash=key, **data)
        return key

    def patch(self, tree: str, patch: str, *, most: int = 1_000_000, **data: Any) -> None:
        """Record the patch that leads from the start to a git tree, each text once; none of over `most` characters."""
        kept = self.text(patch) if len(patch) <= most else None
        self.record("tree", tree=tree, patch=kept, characters=len(patch), **data)

    def forget(self, node: str) -> None:
        """A sub-call is over: its requests need not be remembered."""
        with self._lock:
            self._last.pop(node, None)
            self._tokens.pop(node, None)

    def rest(self) -> None:
        """Hold no file open until the next event."""
        self._out.rest()

    def close(self) -> None:
        if self._owns:
            self._out.close()

    def __enter__(self) -> Trace:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_as_json = json.JSONEncoder(ensure_ascii=True, separators=(",", ":")).encode


def body_of(message: Message) -> dict[str, Any]:
    """The message as `dataclasses.asdict` gives it, in a fifth of the time."""
    calls = message.tool_calls
    return {
        "role": message.role,
        "spans": [{"text": s.text, "cause": s.cause} for s in message.spans],
        "tool_calls": [{"id": c.id, "name": c.name, "arguments": c.arguments} for c in calls] if calls else [],
        "tool_call_id": message.tool_call_id,
        "turn": message.turn,
    }


_ATOMS = frozenset({str, bool, type(None)})
_WRITTEN = 14_000  # bits of a whole number that has fewer than the 4,300 digits which Python writes out


def plain(value: Any, level: int = 0) -> Any:
    """A value as JSON types: dataclasses by field with their class in `is`, NaN and objects as `{"repr": ...}`.

    So is what JSON cannot take: a number of 5,000 digits, and what lies deeper than `DEEPEST` levels.
    """
    kind = type(value)
    if kind in _ATOMS:
        return value
    if level > DEEPEST:
        return {"repr": f"<{kind.__name__}>"}
    if isinstance(value, int):
        return value if value.bit_length() <= _WRITTEN else {"repr": shown(value)}
    if isinstance(value, str) or (kind is float and isfinite(value)):
        return value
    if kind is not dict and kind is not list and kind is not tuple:
        value = one_level(value)
    if isinstance(value, dict):  # most keys and values are texts, which need no call
        found = dict[str, Any]()
        for k, v in cast("dict[Any, Any]", value).items():
            found[k if type(k) is str else _name(k)] = v if type(v) in _ATOMS else plain(v, level + 1)
        return found
    if isinstance(value, list | tuple):
        return [v if type(v) in _ATOMS else plain(v, level + 1) for v in cast("Sequence[Any]", value)]
    return value


def _name(key: Any) -> str:
    try:
        return str(key)
    except Exception:  # another number of 5,000 digits, or a class of a cell's
        return shown(key)


def one_level(value: Any) -> Any:
    """What is no JSON value as one, whose parts may again be none."""
    if isinstance(value, Display):  # a trace is no album
        return {"is": "Display", "mime": value.mime, "characters": len(value.data)}
    if is_dataclass(value) and not isinstance(value, type):
        fields: dict[str, Any] = {"is": type(value).__name__}
        for name, part in vars(value).items():  # a comprehension is a call more, for each value of an event
            if name[0] != "_":
                fields[name] = part
        return fields
    if isinstance(value, Mapping):
        return {str(k): v for k, v in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, (list, tuple)):
        return [*cast("Sequence[Any]", value)]
    if isinstance(value, (set, frozenset)):  # in a fixed order: a set's own differs from process to process
        listed = [plain(v) for v in cast("set[Any]", value)]
        return sorted(listed, key=repr if set(map(type, listed)) <= {str} else shown)
    if isinstance(value, float) and isfinite(value):
        return float(value)
    return {"repr": shown(value)[:10_000]}

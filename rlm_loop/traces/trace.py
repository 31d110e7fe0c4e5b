"""The writer of traces: a run as JSON Lines, without secrets, one event a line, appended and flushed.

Every event has the id of its run under `run`, so that several runs can be written to one file at the same time.  Bodies
are stored once, and a reply names what its call was charged more than the call before (`charges`), so a trace
is linear in turns.  The context itself is never written, only its hash and size.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import itertools
import json
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from pathlib import Path
from typing import Any

from rlm_loop.errors import ShownBriefly
from rlm_loop.messages import Message, Prompt, common, digest
from rlm_loop.traces.logs import tell
from rlm_loop.traces.redact import Redactor, redactor
from rlm_loop.traces.values import plain

_log = logging.getLogger(__name__)

SCHEMA = 5
_LONGEST = 1_000_000  # characters of a patch that is kept
#: Events that are bodies, which others name by their hash, and its field.
_BODIES = {"message": "hash", "settings": "hash", "tools": "hash", "text": "sha256"}
_as_json = json.JSONEncoder(ensure_ascii=True, separators=(",", ":")).encode


class TraceError(ShownBriefly, Exception):
    """A trace cannot be written or read; the message is one line that says what to do."""


class TraceUnwritable(TraceError):
    """A trace cannot be written: a fault of the machine, and not of the run."""


class EventLines:
    """Make the lines of one run's events, in their order.

    Bodies are stored once each, by content hash.  A request names the request that it grew from, how many messages
    of it are `kept` where that is not all, and the messages it added.
    """

    def __init__(self, run: str) -> None:
        self.run = run
        self._stored: set[tuple[str, str]] = set()  # kinds and hashes of bodies
        self._last: dict[str, tuple[str, tuple[Message, ...]]] = {}  # by node: sub-calls come in between

    @functools.cached_property
    def _redact(self) -> Redactor:
        return redactor(os.environ)  # a key may have been set since the run before

    def of(self, event: str, at: float, data: Mapping[str, Any]) -> str:
        """Return an event as lines.

        A `request` has its whole prompt as `prompt`, `earlier` its messages; both become hashes, and what they name
        comes in lines before.  An event that says which `request` it is about may name it by its prompt.
        """
        text, asked = "", data.get("request")
        if event == "request" and "prompt" in data:
            text, data = self._request(at, **data)
        elif isinstance(asked, Prompt):
            data = {**data, "request": asked.digest}
        elif event == "earlier":
            text, hashes = self._bodies(data["messages"], at)
            data = {**data, "messages": hashes}
        elif event == "subcall_end":
            self._last.pop(data["node"], None)  # its requests need not be remembered
        return text + self._line(event, at, data)

    def _request(self, at: float, prompt: Prompt, node: str = "0", **more: Any) -> tuple[str, Mapping[str, Any]]:
        name = prompt.digest
        base, sent = self._last.get(node, ("", ()))
        kept = common(sent, prompt.messages)
        cut = {"kept": kept} if 0 < kept < len(sent) else {}  # the base had more: compaction left something out
        text, hashes = self._bodies(prompt.messages[kept:], at)
        rest = {"tools": prompt.tools, "stop": prompt.stop, "reply_schema": prompt.reply_schema}
        settings = digest(rest)
        text += self._line("settings", at, {"hash": settings, **rest})
        self._last[node] = name, prompt.messages
        about = {"digest": name, "base": base if kept else None, "added": hashes, **cut, "settings": settings}
        return text, {**about, "node": node, **more}

    def _bodies(self, messages: Iterable[Message], at: float) -> tuple[str, list[str]]:
        """Return the lines of messages that were not stored yet, and the hashes of all."""
        hashes = [digest(repr(message)) for message in messages]
        pairs = zip(hashes, messages, strict=True)
        return "".join([self._line("message", at, {"hash": h, "message": m}) for h, m in pairs]), hashes

    def _line(self, event: str, at: float, data: Mapping[str, Any]) -> str:
        """Return an event as a line; a body that was stored already gives none."""
        if event in _BODIES:
            body = event, str(data.get(_BODIES[event]))
            if body in self._stored:
                return ""
            self._stored.add(body)
        # a torn line tells its run: the id comes first
        line = {"run": self.run, "event": event, "at": round(at, 3), **data}
        return _as_json(self._redact.value(plain(line))) + "\n"


class LineFile:
    """Lines at the end of a file, which is open only while one is written.  Raises `OSError`."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.open("ab").close()
        self._lock = threading.Lock()
        self._closed = False

    def append(self, lines: str) -> None:
        """Write lines at once, or nothing of them; after `close`, nothing."""
        data = lines.encode()
        with self._lock:
            if self._closed or not data:
                return
            with self._path.open("a+b", buffering=0) as file:
                size = os.fstat(file.fileno()).st_size
                file.seek(max(0, size - 1))
                if file.read(1) not in (b"\n", b""):  # another writer was killed within a line
                    data = b"\n" + data
                try:
                    while data:
                        data = data[file.write(data) :]
                except OSError:
                    with contextlib.suppress(OSError):
                        file.truncate(size)
                    raise

    def close(self) -> None:
        with self._lock:
            self._closed = True


class Trace:
    """A place for the events of a run: a file (`path`) or, without one, the list `events`.

    A file is appended to, so that an earlier run in it is never lost, and others may write to it at the same time, from
    threads and processes; each run starts with a `run_start` event which carries the schema version.  `run` is the id
    of the run, which every event carries; `ids` makes them.  Raises `TraceError` where the file cannot be opened.
    """

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        clock: Callable[[], float] = time.time,
        ids: Callable[[], str] = lambda: f"r{os.urandom(5).hex()}",  # with a letter: a number is a run's place
    ) -> None:
        self.path = str(path) if path is not None else None
        self.run = self.task = ""
        self._owns = True
        self._clock, self._ids = clock, ids
        self._lines: Any = None  # of the run, once it has begun
        self._tokens: dict[str, int | None] = {}  # of the latest reply, by node: for the log
        self._lock = threading.Lock()  # sub-calls may be recorded from threads
        self._events: list[dict[str, Any]] = []
        self._unread: deque[tuple[EventLines, str, float, Mapping[str, Any]]] = deque()  # events that no file holds
        try:
            self._out = None if path is None else LineFile(path)
        except OSError as error:
            raise TraceUnwritable(f"cannot write the trace {path}: {error.strerror}; choose another path") from error

    def for_run(self) -> Trace:
        """Return a trace for one run, in the same file or list; closing it closes nothing.

        Runs that are given the same trace may go on at the same time.
        """
        beside = copy(self)
        beside._tokens, beside._owns = {}, False
        return beside

    @property
    def events(self) -> list[dict[str, Any]]:
        """The recorded events of all runs, where there is no file."""
        with self._lock:
            while self._unread:
                lines, name, at, data = self._unread.popleft()
                self._events += map(json.loads, lines.of(name, at, data).splitlines())
        return self._events

    def start(self, **data: Any) -> None:
        """Record the first event of a run."""
        self.run = self._ids()  # only now: a process may have been forked since this trace was made
        self._lines = EventLines(self.run)
        self.task = str(data.get("task", ""))
        self._tokens.clear()
        #: Return the id of a further model call: its number among those of the run.
        self.next_call: Callable[[], int] = itertools.count(1).__next__
        self.record("run_start", schema=SCHEMA, **data)

    def record(self, event: str, logged: bool = True, /, **data: Any) -> None:
        """Append one event of a run that has begun; dataclasses are written by their fields, other objects by `repr`.

        See `EventLines.of` for events with prompts and messages.  Without a file, an event is made JSON when `events`
        is read.  Where `logged` is off, no log line is written.  Raises `TraceError` where the file cannot be written.
        """
        if self._lines is None:
            return
        if self._out is None:
            self._unread.append((self._lines, event, self._clock(), data))
        else:
            try:
                with self._lock:
                    self._out.append(self._lines.of(event, self._clock(), data))
            except OSError as error:
                hint = "free some space, or choose another path"
                told = f"cannot write the trace {self.path}: {error.strerror or error}; {hint}"
                raise TraceUnwritable(told) from error
        if logged and _log.isEnabledFor(logging.INFO):
            self._tell(event, data)

    def _tell(self, event: str, data: Mapping[str, Any]) -> None:
        node, usage = str(data.get("node", "0")), data.get("usage")
        if event == "reply" and (usage := data["reply"].usage) is not None:
            self._tokens[node] = usage.total_tokens
        tokens = self._tokens.get(node) if event in ("reply", "turn") else getattr(usage, "total_tokens", None)
        tell(_log, event, data, run=self.run, task=self.task, tokens=tokens)

    def text(self, text: str) -> str:
        """Store a text that is no message, once; returns the hash by which other events name it."""
        key = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        self.record("text", sha256=key, text=text)
        return key

    def once(self, event: str, **data: Any) -> str:
        """Record an event unless its like was recorded before; returns the hash by which other events name it."""
        key = digest({"event": event, **plain(data)})
        self.record(event, hash=key, **data)
        return key

    def patch(self, tree: str, patch: str, **data: Any) -> None:
        """Record the patch that leads from the start to a git tree, each text once; none of over 1 MB."""
        kept = self.text(patch) if len(patch) <= _LONGEST else None
        self.record("tree", tree=tree, patch=kept, characters=len(patch), **data)

    def close(self) -> None:
        if self._owns and self._out is not None:
            self._out.close()

    def __enter__(self) -> Trace:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

"""The writer of traces: a run as JSON Lines, one event a line, appended and flushed, a torn last line ignored.

Every event has the id of its run under `run`, so that several runs can be written to one file at the same time.  Bodies
are stored once (`lines`), and a reply names what its call was charged more than the call before (`charges`), so a trace
is linear in turns.  The context itself is never written, only its hash and size.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from copy import copy
from pathlib import Path
from typing import Any

from rlm_loop.errors import ShownBriefly
from rlm_loop.messages import digest
from rlm_loop.traces.lines import EventLines, LineFile
from rlm_loop.traces.logs import tell
from rlm_loop.traces.values import plain

_log = logging.getLogger(__name__)

SCHEMA = 5


class TraceError(ShownBriefly, Exception):
    """A trace cannot be written or read; the message is one line that says what to do."""


class TraceUnwritable(TraceError):
    """A trace cannot be written: a fault of the machine, and not of the run."""


_Event = tuple[EventLines, str, float, Mapping[str, Any]]


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
        self._taken, self._owns = False, True
        self._clock, self._ids = clock, ids
        self._lines: Any = None  # of the run, once it has begun
        self._tokens: dict[str, int | None] = {}  # of the latest reply, by node: for the log
        self._lock = threading.RLock()  # sub-calls may be recorded from threads
        self._events: list[dict[str, Any]] = []
        self._unread: deque[_Event] = deque()  # events that no file holds
        try:
            self._out = None if path is None else LineFile(path)
        except OSError as error:
            raise TraceUnwritable(f"cannot write the trace {path}: {error.strerror}; choose another path") from error

    def for_run(self) -> Trace:
        """Return a trace for one run: this one, or where it is taken another of the same file or list.

        Runs that are given the same trace may go on at the same time; closing another closes nothing.
        """
        with self._lock:
            taken, self._taken = self._taken or self._lines is not None, True
        if not taken:
            return self
        beside = copy(self)
        beside._lines, beside._tokens, beside._owns = None, {}, False
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
        with self._lock:
            self.run = self._ids()  # only now: a process may have been forked since this trace was made
            self._lines = EventLines(self.run)
            self.task = str(data.get("task", ""))
            self._tokens.clear()
            #: Return the id of a further model call: its number among those of the run.
            self.next_call: Callable[[], int] = itertools.count(1).__next__
            self.record("run_start", schema=SCHEMA, **data)

    def record(self, event: str, **data: Any) -> None:
        """Append one event of a run that has begun; dataclasses are written by their fields, other objects by `repr`.

        See `EventLines.of` for events with prompts and messages.  Without a file, an event is made JSON when `events`
        is read.
        """
        self.copy(event, data)
        if _log.isEnabledFor(logging.INFO):
            self._tell(event, data)

    def copy(self, event: str, data: Mapping[str, Any]) -> None:
        """Append an event without a log line, such as one of another trace."""
        if self._lines is None:
            return
        if self._out is None:
            self._unread.append((self._lines, event, self._clock(), data))
            return
        try:
            with self._lock:
                self._out.append(self._lines.of(event, self._clock(), data))
        except OSError as error:
            reason = error.strerror or error
            hint = "free some space, or choose another path"
            raise TraceUnwritable(f"cannot write the trace {self.path}: {reason}; {hint}") from error

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

    def patch(self, tree: str, patch: str, *, most: int = 1_000_000, **data: Any) -> None:
        """Record the patch that leads from the start to a git tree, each text once; none of over `most` characters."""
        kept = self.text(patch) if len(patch) <= most else None
        self.record("tree", tree=tree, patch=kept, characters=len(patch), **data)

    def close(self) -> None:
        if self._owns and self._out is not None:
            self._out.close()

    def __enter__(self) -> Trace:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

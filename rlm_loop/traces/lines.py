"""Events of one run as lines of JSON, without secrets, each body stored once; and a file of lines."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rlm_loop.messages import Message, Prompt, common, digest
from rlm_loop.traces.redact import Redactor, redactor
from rlm_loop.traces.values import plain

_as_json = json.JSONEncoder(ensure_ascii=True, separators=(",", ":")).encode


#: Events that are bodies, which others name by their hash, and its field.
_BODIES = {"message": "hash", "settings": "hash", "tools": "hash", "text": "sha256"}


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
        prompt, asked, earlier = data.get("prompt"), data.get("request"), data.get("messages")
        text = ""
        if event == "request" and isinstance(prompt, Prompt):
            text, data = self._request(prompt, at, data)
        elif isinstance(asked, Prompt):
            data = {**data, "request": asked.digest()}
        elif event == "earlier" and earlier and isinstance(earlier[0], Message):
            text, hashes = self._bodies(earlier, at)
            data = {**data, "messages": hashes}
        if event == "subcall_end":
            self._last.pop(data["node"], None)  # its requests need not be remembered
        return text + self._line(event, at, data)

    def _request(self, prompt: Prompt, at: float, data: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
        node, name = data.get("node", "0"), prompt.digest()
        base, sent = self._last.get(node, ("", ()))
        kept = common(sent, prompt.messages)
        cut = {"kept": kept} if 0 < kept < len(sent) else {}  # the base had more: compaction left something out
        text, hashes = self._bodies(prompt.messages[kept:], at)
        rest = {"tools": prompt.tools, "stop": prompt.stop, "reply_schema": prompt.reply_schema}
        settings = digest(rest)
        text += self._line("settings", at, {"hash": settings, **rest})
        self._last[node] = name, prompt.messages
        more = {k: v for k, v in data.items() if k != "prompt"}
        about = {"digest": name, "base": base if kept else None, "added": hashes, **cut, "settings": settings, **more}
        return text, about

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

"""Finding a text in what models wrote and saw: the transcripts are read once, by a thread, when it is first asked."""

from __future__ import annotations

import json
import sqlite3
import threading
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from rlm_loop.report.run.reading import mapping
from rlm_loop.report.view.episodes import ListedEpisode
from rlm_loop.report.view.index import RunIndex
from rlm_loop.traces.trace import TraceError

#: Transcripts that are written to the database together.
_BATCH = 50
#: The fields of an event that hold what a model wrote or saw; the same text under several counts once.
_TEXTS = ("message", "reply", "actions", "observations", "text", "answer", "question")
#: Fields inside of them that no reader sees as text.
_NAMES = frozenset({"is", "hash", "sha256", "cause", "role", "finish_reason", "how", "form"})


@dataclass(frozen=True)
class Hits:
    """The ids of the episodes whose transcript holds a text, among the `read` transcripts of all `of`."""

    ids: Sequence[str]
    read: int
    of: int


@dataclass
class Transcripts:
    """The texts of all traces of an index, in a database that SQLite keeps in memory as long as it is small, and else
    in a file of its own that goes with the process."""

    index: RunIndex
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _reading: threading.Lock = field(default_factory=threading.Lock)
    _marks: dict[str, object] = field(default_factory=dict[str, object])
    _database: sqlite3.Connection | None = None

    def search(self, text: str) -> Hits:
        """The episodes whose transcript holds `text`, small and capital letters alike, of those read so far.

        The first search begins the reading; those that come while it goes on find more each time.
        """
        waiting = self._waiting()
        if waiting and self._reading.acquire(blocking=False):
            threading.Thread(target=self._read, args=(waiting,), name="transcripts", daemon=True).start()
        with self._lock:
            found = self._open().execute("SELECT id FROM texts WHERE instr(text, ?)", (text.lower(),)).fetchall()
        known = self.index.found().by_id
        return Hits([ident for (ident,) in found if ident in known], len(known) - len(self._waiting()), len(known))

    def close(self) -> None:
        """Give back what the database holds.  A reading that goes on ends at its next batch."""
        with self._lock:
            if self._database is not None:
                self._database.close()
            self._database = None
            self._marks.clear()
            self.closed = True

    closed: bool = False

    def _waiting(self) -> list[ListedEpisode]:
        """The episodes whose trace has not been read, or has changed since."""
        return [e for e in self.index.found().episodes if self._marks.get(e.id) != self._mark(e)]

    def _mark(self, episode: ListedEpisode) -> object:
        return self.index.mark(episode) if episode.row is None else episode["state"]

    def _read(self, episodes: Sequence[ListedEpisode]) -> None:
        try:
            for start in range(0, len(episodes), _BATCH):
                batch = episodes[start : start + _BATCH]
                texts = [(e.id, self._text(e)) for e in batch]
                with self._lock:
                    if self.closed:
                        return
                    database = self._open()
                    database.executemany("INSERT OR REPLACE INTO texts VALUES (?, ?)", texts)
                    database.commit()
                    self._marks |= {e.id: self._mark(e) for e in batch}
        finally:
            self._reading.release()

    def _text(self, episode: ListedEpisode) -> str:
        try:
            return "\n".join(texts_of(self.index.trace(episode))).lower()
        except (TraceError, OSError):
            return ""

    def _open(self) -> sqlite3.Connection:
        if self._database is None:
            self._database = sqlite3.connect("", check_same_thread=False)  # the lock lets one thread in at a time
            self._database.execute("CREATE TABLE texts (id TEXT PRIMARY KEY, text TEXT)")
        return self._database


def texts_of(raw: bytes) -> list[str]:
    """The texts of a trace file, each once; lines that cannot be read are left out."""
    found: dict[str, None] = {}
    if raw[:2] == b"\x1f\x8b":
        raw = zlib.decompressobj(wbits=31).decompress(raw)
    for line in raw.split(b"\n"):
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            continue
        found |= dict.fromkeys(text for name in _TEXTS for text in _strings(mapping(event).get(name)))
    return list(found)


def _strings(value: Any) -> Iterator[str]:
    """All texts inside a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, inner in cast("dict[str, Any]", value).items():
            if name not in _NAMES:
                yield from _strings(inner)
    elif isinstance(value, list):
        for inner in cast("list[Any]", value):
            yield from _strings(inner)

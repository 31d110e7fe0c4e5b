"""The episodes under a folder: rows of studies and runs of trace files, read again where a file has changed."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from rlm_loop.messages import digest
from rlm_loop.report.notebook.formatting import value_text
from rlm_loop.report.run.marked import brief
from rlm_loop.report.run.page import state
from rlm_loop.report.run.view import mapping
from rlm_loop.report.trace_files import trace_file
from rlm_loop.study.errors import StudyError
from rlm_loop.study.store.archive import TRACES
from rlm_loop.study.store.reading import LOCK, RESULTS, read_rows
from rlm_loop.study.store.rows import Row
from rlm_loop.traces.received import file_bytes, parse
from rlm_loop.traces.trace import TraceError

#: The columns that are sent to the table, in this order.
FIELDS = (
    *("id", "study", "arm", "model", "suite", "task", "seed", "state", "value", "stop", "steps"),
    *("input", "output", "seconds", "cost", "answer", "expected"),
)
_UNIT = ("arm", "model", "suite", "task", "seed")
_ROWS = (RESULTS, f"{RESULTS}.gz", LOCK)
_TRACES = (".jsonl", ".jsonl.gz")
#: Folders of other tools, which are large and hold no runs.
_SKIPPED = frozenset({"node_modules", "__pycache__", "site-packages"})
#: Characters of an answer that the table holds.
_ANSWER = 160
#: The events that a line of the table needs, as the writer begins them.
_EVENTS = re.compile(rb'^\{(?:"run":"[^"\\]*",)?"event":"(?:run_start|run_end|turn|aborted)".*$', re.MULTILINE)


@dataclass(frozen=True)
class ListedEpisode:
    """A line of the table: an episode of a study, or a run that no row tells of (then `row` is `None`).

    `study` is the folder of its study, `path` the file of its trace, both relative to the folder that is shown; `run`
    is the id of its run in that file (empty: the one that counts).  `cells` are values of `FIELDS`.
    """

    study: str
    path: str
    run: str
    cells: Mapping[str, Any]
    row: Row | None = None
    number: int = 0
    """The place of the run among those of its file."""

    @cached_property
    def id(self) -> str:
        key = [self.path, self.number] if self.path else [self.study, *(self.cells[name] for name in _UNIT)]
        return digest(key)[:12]

    @property
    def name(self) -> str:
        return " · ".join(str(self.cells[name]) for name in ("arm", "suite", "task") if self.cells.get(name))


@dataclass(frozen=True)
class FolderContents:
    """The episodes of a folder by their ids, in order, and notes on what could not be read."""

    episodes: Mapping[str, ListedEpisode]
    notes: tuple[str, ...]

    @cached_property
    def json(self) -> str:
        """The table's data: `fields`, a list for each episode, and the notes."""
        rows = [
            [{**e.cells, "id": e.id, "study": e.study}.get(name) for name in FIELDS] for e in self.episodes.values()
        ]
        return json.dumps({"fields": FIELDS, "rows": rows, "notes": self.notes}, separators=(",", ":"))

    @cached_property
    def tag(self) -> str:
        return hashlib.sha256(self.json.encode()).hexdigest()[:16]


_Read = tuple[object, tuple[ListedEpisode, ...], str]
"""The mark of a study's or a trace's files when they were read, the episodes, and why they could not be read."""


@dataclass
class RunFolder:
    """The episodes under `root`, a folder or one trace file.

    A folder with the rows of a study gives its rows; every other trace file gives its runs, those of a study that have
    no row yet among them.  Hidden folders are left out, links to folders are not followed.  Nothing is written.
    """

    root: Path
    _reads: dict[str, _Read] = field(default_factory=dict[str, _Read])
    _contents: FolderContents = field(default_factory=lambda: FolderContents({}, ()))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def name(self) -> str:
        """The last two parts of the path: many folders are called `results`."""
        return "/".join(self.root.resolve().parts[-2:]).replace("//", "/")

    def contents(self) -> FolderContents:
        """The episodes that are there now; only files that changed are read."""
        with self._lock:
            before, self._reads = self._reads, {}
            studies, traces = self._files()
            for study in studies:
                folder = self._base / study
                marks = [_mark(folder / name) for name in _ROWS]
                self._read(f"{study}/", marks, before, partial(_episodes, folder, study))
            listed = {episode.path for _, episodes, _ in self._reads.values() for episode in episodes}
            for path, study in traces.items():
                if path not in listed:
                    self._read(path, _mark(self._base / path), before, partial(self._runs, path, study))
            if self._reads != before:
                episodes = {episode.id: episode for _, found, _ in self._reads.values() for episode in found}
                self._contents = FolderContents(episodes, tuple(note for _, _, note in self._reads.values() if note))
            return self._contents

    @contextlib.contextmanager
    def trace(self, episode: ListedEpisode) -> Generator[Path]:
        """A file that holds an episode's trace, loose or packed.

        Raises `TraceError` where there is none, or it would lie outside the folder.
        """
        path, study = self._base / episode.path, self._base / episode.study
        inside = bool(episode.path) and path.resolve().is_relative_to(self._base.resolve())
        with trace_file(study, episode.path.removeprefix(f"{episode.study}/")) as file:
            if not inside or file is None:
                raise TraceError(f"the trace {episode.path or 'of this episode'} is not there; only its row is")
            yield file

    def tag(self, episode: ListedEpisode) -> str:
        """A text that changes with an episode's row and trace."""
        mark = _mark(self._base / episode.path) or _mark(self._base / episode.study / TRACES)
        return hashlib.sha256(repr((mark, episode.row)).encode("utf-8", "replace")).hexdigest()[:16]

    @property
    def _base(self) -> Path:
        """The folder that paths of traces are relative to."""
        return self.root if self.root.is_dir() else self.root.parent

    def _files(self) -> tuple[list[str], dict[str, str]]:
        """The folders of studies, and trace files with the folder that they belong to."""
        if not self.root.is_dir():
            return [], {self.root.name: ""}
        studies: list[str] = []
        traces: dict[str, str] = {}
        within: dict[Path, str] = {}
        for path, folders, files in os.walk(self.root):
            folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _SKIPPED)
            folder = Path(path)
            here = "" if folder == self.root else folder.relative_to(self.root).as_posix()
            if not set(_ROWS).isdisjoint(files):
                studies.append(here)
                within[folder] = here
            elif folder.parent in within:
                within[folder] = within[folder.parent]
            for name in sorted(files):
                if name.endswith(_TRACES) and name not in _ROWS and not name.startswith("."):
                    traces[f"{here}/{name}" if here else name] = within.get(folder, here)
        return studies, traces

    def _read(
        self, key: str, mark: object, before: Mapping[str, _Read], read: Callable[[], Iterable[ListedEpisode]]
    ) -> None:
        if key in before and before[key][0] == mark:
            self._reads[key] = before[key]
            return
        episodes, note = tuple[ListedEpisode, ...](), ""
        try:
            episodes = tuple(read())
        except OSError as error:
            note = f"{key} cannot be read: {error.strerror or error}"
        except (StudyError, TraceError) as error:
            note = str(error)
        self._reads[key] = mark, episodes, note

    def _runs(self, path: str, study: str) -> Iterator[ListedEpisode]:
        for number, (run, cells) in enumerate(runs_of(self._base / path).items()):
            yield ListedEpisode(study, path, run, cells, number=number)


def _episodes(folder: Path, study: str) -> Iterator[ListedEpisode]:
    """The rows of a study as lines of the table."""
    for row in read_rows(folder):
        cells = {
            **{name: row[name] for name in _UNIT},
            **{name: row.get(name) for name in ("value", "steps", "seconds", "cost")},
            "state": state(row),
            "stop": row.get("stop") if row["error"] is None else str(row["error"]).partition(":")[0],
            "input": row.get("input_tokens"),
            "output": row.get("output_tokens"),
            "answer": ""
            if row.get("answered") is False and row["answer"] == "None"
            else brief(str(row.get("answer") or ""), _ANSWER),
            "expected": brief(str(row.get("expected") or ""), _ANSWER),
        }
        path = "/".join(part for part in (study, row["trace"]) if part) if row["trace"] else ""
        yield ListedEpisode(study, path, str(row.get("trace_run") or ""), cells, row)


def runs_of(path: Path) -> dict[str, dict[str, Any]]:
    """The runs of a trace file that count, by id: a dict of cells each.  Empty for a file that is no trace.

    A run without an end is `running`.  Only the lines that matter are read.  Raises `OSError` where that fails.
    """
    runs: dict[str, dict[str, Any]] = {}
    for line in _EVENTS.finditer(file_bytes(path)):
        try:
            event = mapping(parse(line[0]))
        except ValueError:
            continue
        run, kind = str(event.get("run", "")), event.get("event")
        root = event.get("node", "0") == "0" and not event.get("depth")
        if kind == "run_start":
            keys = (("arm", "agent"), ("model", "model"), ("task", "task"))
            named = {name: str(event.get(key) or "") for name, key in keys}
            seed = mapping(event.get("settings")).get("seed")
            runs[run] = {**named, "seed": seed, "state": "running", "stop": "running", "steps": 0}
        elif kind == "aborted":
            runs.pop(run, None)
        elif run in runs and root and kind == "turn":
            runs[run]["steps"] += 1
        elif run in runs and root:
            runs[run] |= _ended(event)
    return runs


def _ended(event: Mapping[str, Any]) -> dict[str, Any]:
    used, answer = mapping(event.get("usage")), event.get("answer")
    return {
        "state": "no score",
        "stop": str(event.get("stop", "?")),
        "steps": event.get("steps"),
        "input": used.get("input_tokens"),
        "output": used.get("output_tokens"),
        "cost": used.get("cost"),
        "seconds": event.get("seconds"),
        "answer": "" if answer is None else brief(value_text(answer), _ANSWER),
    }


def _mark(path: Path) -> tuple[int, int] | None:
    """By which a file is known to have changed: when it was written, and its size in bytes."""
    try:
        about = path.stat()
    except OSError:
        return None
    return about.st_mtime_ns, about.st_size

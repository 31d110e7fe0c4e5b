"""All episodes under a folder, read again where a file has changed."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from rlm_loop.report.view.episodes import ListedEpisode, from_row, from_run
from rlm_loop.report.view.loose import runs_of
from rlm_loop.study.errors import StudyError
from rlm_loop.study.plan.grid import trace_path
from rlm_loop.study.store.archive import archive_of, packed_traces
from rlm_loop.study.store.reading import RESULTS, read_lock, read_rows
from rlm_loop.traces.trace import TraceError

_ROWS = frozenset({RESULTS, f"{RESULTS}.gz"})
_TRACES = (".jsonl", ".jsonl.gz")
#: Folders of other tools, which are large and hold no runs.
_OTHERS = frozenset({"node_modules", "__pycache__", "site-packages"})
#: Seconds for which what was read counts as fresh.
FRESH = 1.0

Mark = tuple[int, int]
"""By which a file is known to have changed: when it was written, and its size in bytes."""


@dataclass(frozen=True)
class FolderContents:
    """What a folder held when it was read: `episodes` in their order, and `notes` on what could not be read."""

    episodes: tuple[ListedEpisode, ...] = ()
    notes: tuple[str, ...] = ()
    version: int = 0
    """Another number after each change; one that begins later begins higher."""

    @cached_property
    def by_id(self) -> Mapping[str, ListedEpisode]:
        return {episode.id: episode for episode in self.episodes}


Read = tuple[object, tuple[ListedEpisode, ...], str]
"""What was read of a study or a trace: the mark of its files, its episodes, and what is wrong with it."""


@dataclass
class RunIndex:
    """The episodes under `root`, a folder, or one trace file.

    Folders with the rows of a study give their rows; every other trace file gives its runs, those of a study that have
    no row yet among them.  Hidden folders are left out, links to folders are not followed.  Nothing is written.
    """

    root: Path
    clock: Callable[[], float] = time.monotonic
    _read: dict[str, Read] = field(default_factory=dict[str, Read])
    _packed: dict[str, Path] = field(default_factory=dict[str, Path])
    _latest: FolderContents = field(default_factory=FolderContents)
    _at: float = float("-inf")
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def name(self) -> str:
        """The last two parts of the path: many folders are called `results`."""
        return "/".join(self.root.resolve().parts[-2:]).replace("//", "/")

    def found(self) -> FolderContents:
        """What is there now; files that changed are read again, at most once in `FRESH` seconds."""
        with self._lock:
            if self.clock() - self._at >= FRESH:
                self._refresh()
                self._at = self.clock()
            return self._latest

    def trace(self, episode: ListedEpisode) -> bytes:
        """The bytes of an episode's trace, loose or packed, as they are in the file.

        Raises `TraceError` where there is none, or it would lie outside the folder.
        """
        path = self._loose(episode)
        try:
            if path is not None and path.is_file():
                return path.read_bytes()
            name = episode.path.removeprefix(f"{episode.study}/") if episode.study else episode.path
            with self._lock:
                packed = self._packed.get(episode.study)
            if packed is not None and (data := packed_traces(packed).get(name)) is not None:
                return data
        except OSError as error:
            raise TraceError(f"cannot read the trace {episode.path}: {error.strerror or error}") from error
        raise TraceError(f"the trace {episode.path or 'of this episode'} is not there; only its row is")

    def mark(self, episode: ListedEpisode) -> Mark:
        """By which a change of an episode's trace is seen; zeros where it does not lie loose."""
        path = self._loose(episode)
        return (path and _mark(path)) or (0, 0)

    def _loose(self, episode: ListedEpisode) -> Path | None:
        if not episode.path:
            return None
        path = self._base / episode.path
        return path if path.resolve().is_relative_to(self._base.resolve()) else None

    @property
    def _base(self) -> Path:
        """The folder that paths of traces are relative to."""
        return self.root if self.root.is_dir() else self.root.parent

    def _refresh(self) -> None:
        before, self._read = self._read, {}
        studies, traces = self._files()
        claimed: set[str] = set()
        for study in studies:
            self._study(study, before)
            claimed |= {episode.path for episode in self._read[f"{study}/"][1]}
        plans: dict[str, Mapping[str, Mapping[str, object]]] = {}
        for name, study in traces.items():
            if name not in claimed:
                plan = plans[study] if study in plans else plans.setdefault(study, self._planned(study))
                self._trace(name, study, plan.get(name.removeprefix(f"{study}/") if study else name, {}), before)
        if self._read == before and self._latest.version:
            return
        read = self._read.values()
        episodes = tuple(episode for _, found, _ in read for episode in found)
        notes = tuple(note for _, _, note in read if note)
        self._latest = FolderContents(episodes, notes, (self._latest.version or time.time_ns() // 1_000_000) + 1)

    def _files(self) -> tuple[list[str], dict[str, str]]:
        """The folders that hold rows of a study, and trace files with the folder that they belong to."""
        if not self.root.is_dir():
            return [], {self.root.name: ""}
        studies: list[str] = []
        traces: dict[str, str] = {}
        for place, folders, files in os.walk(self.root):
            folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _OTHERS)
            here = Path(place).relative_to(self.root).as_posix()
            here = "" if here == "." else here
            if not _ROWS.isdisjoint(files):
                studies.append(here)
            own = next((s for s in reversed(studies) if here == s or not s or here.startswith(f"{s}/")), here)
            for name in sorted(files):
                if name.endswith(_TRACES) and name not in _ROWS and not name.startswith("."):
                    traces[f"{here}/{name}" if here else name] = own
        return studies, traces

    def _study(self, study: str, before: Mapping[str, Read]) -> None:
        folder = self.root / study
        archive = archive_of(folder)

        def rows() -> Iterator[ListedEpisode]:
            yield from (from_row(study, row) for row in read_rows(folder))
            if archive is not None:
                self._packed[study] = archive

        mark = tuple(_mark(folder / name) for name in sorted(_ROWS)), _mark(archive)
        self._again(f"{study}/", mark, before, rows)

    def _again(
        self, key: str, mark: object, before: Mapping[str, Read], read: Callable[[], Iterable[ListedEpisode]]
    ) -> None:
        """Keep what was read `before` where the mark is the same, else read it."""
        if key in before and before[key][0] == mark:
            self._read[key] = before[key]
            return
        found, note = tuple[ListedEpisode, ...](), ""
        try:
            found = tuple(read())
        except OSError as error:
            note = f"{key} cannot be read: {error.strerror or error}"
        except (StudyError, TraceError, ImportError) as error:
            note = str(error)
        self._read[key] = mark, found, note

    def _planned(self, study: str) -> Mapping[str, Mapping[str, object]]:
        """What a study is to run, by the names of the traces, and so which episode an unfinished trace is of."""
        try:
            lock = read_lock(self.root / study) if self.root.is_dir() else None
        except StudyError:
            lock = None
        if lock is None or "arms" not in lock:
            return {}
        units = [
            (model, suite, task, seed)
            for model in lock["models"]
            for suite, of in lock["tasks"].items()
            for task in of
            for seed in lock["seeds"]
        ]
        return {
            trace_path(arm, *unit): {"arm": arm, **dict(zip(("model", "suite", "task", "seed"), unit, strict=True))}
            for arm in lock["arms"]
            for unit in units
        }

    def _trace(self, name: str, study: str, planned: Mapping[str, object], before: Mapping[str, Read]) -> None:
        path = self._base / name

        def runs() -> Iterator[ListedEpisode]:
            for place, run in enumerate(runs_of(path)):
                yield from_run(study, name, {**run, **planned}, first=not place)

        self._again(name, _mark(path), before, runs)


def _mark(path: Path | None) -> Mark | None:
    try:
        about = path.stat() if path is not None else None
    except OSError:
        return None
    return about and (about.st_mtime_ns, about.st_size)

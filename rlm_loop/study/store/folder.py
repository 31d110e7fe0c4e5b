"""A study's folder: `study.json` (the lock), `contract.json` (how its arms differ), `results.jsonl` (one row an
episode) and `traces/`.

Rows are appended one by one, each in one write that is never buffered, so whatever ends the process, all finished
episodes are kept.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

from rlm_loop.study.errors import StudyError
from rlm_loop.study.store.reading import LOCK, RESULTS, SCHEMA, SHARES, bytes_of, parse
from rlm_loop.study.store.rows import Row
from rlm_loop.traces.redact import redactor


class Store:
    """A study's folder opened for writing; one process at a time.  Raises `StudyError` if that cannot be.

    A job of an array (`share`) writes rows into a file of its own, and nothing else.
    """

    def __init__(self, folder: str | Path, study: str, share: int | None = None) -> None:
        self.folder = Path(folder)
        self._path = self.folder / (RESULTS if share is None else f"{SHARES}/{share:05d}.jsonl")
        self._redact = redactor(os.environ)
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            if self._path.exists() and not self._path.is_file():
                raise OSError(errno.EINVAL, f"its {self._path.name} is no ordinary file")
            if (packed := self._path.with_name(f"{self._path.name}.gz")).exists() and not self._path.exists():
                replace_file(self._path, bytes_of(packed))  # in whose place it is read from now on
            self._file = self._path.open("a+b", buffering=0)
        except OSError as error:
            raise StudyError(f"cannot write to {folder}: {error.strerror}; choose another folder") from error
        try:
            _claim(self._file, self.folder)
            _mend(self._file, self._path)
            self._size = self._file.seek(0, os.SEEK_END)
            if not self._size:
                self.append({"schema": SCHEMA, "study": study})
        except BaseException:
            self._file.close()
            raise

    def append(self, row: Row) -> None:
        """Write one row.

        Raises `StudyError` where it cannot be written whole; what was written of it is taken back, so that the rows
        before it can be read as they are.
        """
        data = (json.dumps(self._redact.value(row), separators=(",", ":"), default=str) + "\n").encode()
        try:
            done = 0
            while done < len(data):
                done += self._file.write(data[done:]) or 0
        except OSError as error:
            with contextlib.suppress(OSError):
                self._file.truncate(self._size)
            raise StudyError(
                f"cannot write to {self._path}: {error.strerror}; all finished episodes are kept: make room and run "
                "the same command again"
            ) from error
        self._size += len(data)

    def write(self, name: str, value: Mapping[str, Any]) -> None:
        """Replace a document of the folder in one step.  Raises `StudyError` where it cannot be written."""
        shown = value if name == LOCK else self._redact.value(value)  # of the lock the texts are hashed
        text = json.dumps(shown, indent=1, ensure_ascii=False, sort_keys=name == LOCK)
        path = self.folder / name
        try:
            replace_file(path, (text + "\n").encode("utf-8", "surrogatepass"))
        except OSError as error:
            raise StudyError(f"cannot write {path}: {error.strerror}; make room, or choose another folder") from error

    def __enter__(self) -> Store:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        with contextlib.suppress(OSError):  # a file system that cannot: the rows are with the system all the same
            os.fsync(self._file.fileno())
        self._file.close()


def replace_file(path: Path, data: bytes) -> None:
    """Write a file in one step: a reader sees the old one or the new one, never a part."""
    part = path.with_name(f"{path.name}.part")
    try:
        part.write_bytes(data)
        os.replace(part, path)
    except OSError:
        part.unlink(missing_ok=True)
        raise


def _claim(file: BinaryIO, folder: Path) -> None:
    """Refuse a second writer; the claim ends with the file, so a killed run leaves none behind.

    A reader that only looks (`claimed`) holds it for an instant, so it is tried for a moment.
    """
    for left in range(10, -1, -1):
        if _lock(file):
            return
        if left:
            time.sleep(0.02)
    raise StudyError(f"another run is writing to {folder}; wait for it, or choose another folder")


def claimed(path: Path) -> bool:
    """Return whether a process is writing to this file of results."""
    try:
        if not path.is_file():  # opening a pipe would wait for whoever writes to it
            return False
        with path.open("rb") as file:
            return not _lock(file)
    except OSError:
        return False


def _lock(file: BinaryIO) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _mend(file: BinaryIO, path: Path) -> None:
    """Drop a torn last line (its episode runs again), or end a whole one that lost its newline."""
    body, newline, tail = bytes_of(path).rpartition(b"\n")
    if tail and parse(tail.decode("utf-8", "replace")) is not None:
        file.write(b"\n")
    elif tail:
        file.truncate(len(body) + len(newline))

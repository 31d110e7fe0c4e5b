"""A study's folder: `study.json` (what it is), `contract.json` (in what its arms differ), `results.jsonl` (one row a
cell) and `traces/`.

Rows are appended and flushed one by one, so whatever ends the process, all finished cells are kept.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from rlm_loop.redact import redactor
from rlm_loop.study.contract_value import SCHEMA as CONTRACT_SCHEMA
from rlm_loop.study.contract_value import Contract
from rlm_loop.study.errors import StudyError
from rlm_loop.study.rows import Row, finished, key

SCHEMA = 1
RESULTS = "results.jsonl"
LOCK = "study.json"
CONTRACT = "contract.json"


class Store:
    """A study's folder opened for writing; one process at a time.  Raises `StudyError` if that cannot be."""

    def __init__(self, folder: str | Path, study: str) -> None:
        self.folder = Path(folder)
        self._redact = redactor(os.environ)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._file = _open(self.folder / RESULTS)
        except OSError as error:
            raise StudyError(f"cannot write to {folder}: {error.strerror}; choose another folder") from error
        try:
            _claim(self._file, self.folder)
            _mend(self._file, self.folder / RESULTS)
            if not self._file.tell():
                self._write({"schema": SCHEMA, "study": study})
        except BaseException:
            self._file.close()
            raise

    def append(self, row: Row) -> None:
        """Write one row and flush it."""
        self._write(row)

    def _write(self, value: Mapping[str, Any]) -> None:
        line = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
        try:
            self._file.write(self._redact(line) + "\n")
            self._file.flush()
        except OSError as error:
            path = self.folder / RESULTS
            raise StudyError(f"cannot write to {path}: {error.strerror}; make room and resume") from error

    def write_lock(self, lock: Mapping[str, Any]) -> None:
        """Replace `study.json` in one step."""
        self._replace(LOCK, json.dumps(lock, indent=1, ensure_ascii=False, sort_keys=True))

    def write_contract(self, contract: Contract) -> None:
        """Replace `contract.json` in one step."""
        self._replace(CONTRACT, self._redact(json.dumps(contract.to_dict(), indent=1, ensure_ascii=False)))

    def _replace(self, name: str, text: str) -> None:
        path = self.folder / name
        part = path.with_suffix(".json.part")
        try:
            part.write_text(text + "\n", encoding="utf-8", errors="surrogatepass")
            os.replace(part, path)
        except OSError as error:
            raise StudyError(f"cannot write {path}: {error.strerror}; choose another folder") from error

    def __enter__(self) -> Store:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._file.close()


def _open(path: Path) -> IO[str]:
    return path.open("a+", encoding="utf-8", newline="\n")


def _claim(file: IO[str], folder: Path) -> None:
    """Refuse a second writer; the claim ends with the file, so a killed run leaves none behind."""
    try:
        import fcntl
    except ImportError:  # not a POSIX system: two writers are not noticed there
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise StudyError(f"another run is writing to {folder}; wait for it, or choose another folder") from None


def _mend(file: IO[str], path: Path) -> None:
    """Drop a torn last line (its cell runs again), or end a whole one that lost its newline."""
    raw = path.read_bytes()
    body, newline, tail = raw.rpartition(b"\n")
    if not tail:
        return
    if _parse(tail.decode("utf-8", "replace")) is not None:
        file.write("\n")
        file.flush()
    else:
        file.truncate(len(body) + len(newline))
    file.seek(0, os.SEEK_END)


def _parse(line: str) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def read_lock(folder: str | Path) -> dict[str, Any] | None:
    """The `study.json` of a folder; `None` if there is none."""
    path = Path(folder) / LOCK
    try:
        lock = _parse(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise StudyError(f"cannot read {path}: {error}") from error
    if lock is None:
        raise StudyError(f"{path} is damaged; restore it from a copy, or start in another folder")
    if lock.get("schema", 0) > SCHEMA:
        raise StudyError(f"{path} has schema {lock['schema']}; this version reads up to {SCHEMA}: upgrade rlm-loop")
    return lock


def read_contract(folder: str | Path) -> Contract | None:
    """The `contract.json` of a folder; `None` if there is none, as in studies of before there were contracts."""
    path = Path(folder) / CONTRACT
    try:
        data = _parse(path.read_text(encoding="utf-8", errors="surrogatepass"))
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise StudyError(f"cannot read {path}: {error}") from error
    if data is None or data.get("schema", 0) > CONTRACT_SCHEMA:
        raise StudyError(f"{path} is damaged or of a later version; remove it, the next run makes it anew")
    return Contract.from_dict(data)


def read_rows(folder: str | Path) -> list[Row]:
    """The last row of each cell, in the order in which the cells were first tried.

    Reads `results.jsonl` or `results.jsonl.gz`; no such file means no rows.  A torn last line is ignored; a
    damaged line before it is a `StudyError` that names it.  A crash after a finished row does not replace it.
    """
    path = next((p for p in (Path(folder) / RESULTS, Path(folder) / f"{RESULTS}.gz") if p.exists()), None)
    if path is None:
        return []
    try:
        raw = path.read_bytes()
        text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode("utf-8", "replace")
    except (OSError, EOFError) as error:
        raise StudyError(f"cannot read {path}: {error}") from error
    lines = text.split("\n")
    rows: dict[tuple[str, str, str, str, int], Row] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        value = _parse(line)
        if value is None:
            if number == len(lines):
                break
            raise StudyError(f"{path}:{number} is damaged; delete that line and resume: its cell runs again")
        if "schema" in value:
            if value["schema"] > SCHEMA:
                raise StudyError(f"{path} has schema {value['schema']}; this version reads up to {SCHEMA}: upgrade")
            continue
        if key(value) not in rows or finished(value) or not finished(rows[key(value)]):
            rows[key(value)] = value
    return list(rows.values())

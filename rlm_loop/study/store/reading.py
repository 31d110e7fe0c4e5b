"""Read a study's folder: its lock, its fairness check and its rows, plain or packed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from rlm_loop.study.errors import StudyError
from rlm_loop.study.plan.fairness import FairnessCheck
from rlm_loop.study.store.rows import Row, finished, key, never_begun
from rlm_loop.tasks.base import current_suite
from rlm_loop.traces.received import file_bytes
from rlm_loop.traces.received import parse as parse_json

SCHEMA = 1
RESULTS = "results.jsonl"
SHARES = "results"  # the folder of the files that jobs of an array write
LOCK = "study.json"
FAIRNESS = "contract.json"

#: Marks that the lock has of each task, by suite.
BY_TASK = ("tasks", "truths", "scorers")
_OF_LOCK = {"name": str, "arms": dict, "models": list, "seeds": list, "tasks": dict}


def parse(line: str) -> dict[str, Any] | None:
    """A line that is a JSON object; `None` for anything else."""
    try:
        value = parse_json(line)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _document(path: Path) -> dict[str, Any] | None:
    """A JSON file of a folder; `None` if there is none.  Raises `StudyError` for one that this version cannot read."""
    try:
        data = parse(file_bytes(path).decode(errors="surrogatepass"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise StudyError(f"cannot read {path}: {error}") from error
    if data is None:
        raise StudyError(f"{path} is damaged; restore it from a copy, or start in another folder")
    _refuse_later(path, data.get("schema", 0))
    return data


def read_lock(folder: str | Path) -> dict[str, Any] | None:
    """The `study.json` of a folder; `None` if there is none.

    Raises `StudyError` where it cannot be read, is damaged, or is of a later version.
    """
    path = Path(folder) / LOCK
    lock = _document(path)
    if lock is None:
        return None
    wrong = [name for name, kind in _OF_LOCK.items() if not isinstance(lock.get(name), kind)]
    if wrong and set(lock) - {"schema", "name"}:
        raise StudyError(f"{path} is of no study that this version knows (no {wrong[0]}); give another folder")
    for part in BY_TASK:
        if part in lock:
            lock[part] = {current_suite(suite): marks for suite, marks in lock[part].items()}
    return lock


def lock_of(folder: str | Path) -> dict[str, Any]:
    """The `study.json` of a folder.  Raises `StudyError` where the folder holds no study, and as `read_lock` does."""
    lock = read_lock(folder)
    if lock is None:
        why = f"no {LOCK} in it" if Path(folder).is_dir() else "no such folder"
        raise StudyError(f"{folder} holds no study: {why}")
    return lock


def read_fairness_check(folder: str | Path) -> FairnessCheck | None:
    """The `contract.json` of a folder; `None` if there is none.  Raises `StudyError` where it cannot be read."""
    data = _document(Path(folder) / FAIRNESS)
    return None if data is None else FairnessCheck.from_dict(data)


def read_rows(folder: str | Path) -> list[Row]:
    """The last row of each episode, in the order in which the episodes were first tried.

    A torn last line is ignored; a damaged line before it is a `StudyError` that names it.
    """
    return latest(every_row(folder))


def latest(rows: Iterable[Row]) -> list[Row]:
    """The last row of each episode; a crash after a finished row does not replace it.

    Its `cost` is that of all its attempts: the others, that failed, are counted as `broken_off`.
    """
    found: dict[tuple[str, str, str, str, int], Row] = {}
    for row in rows:
        before = found.get(key(row))
        found[key(row)] = row if before is None else _both(before, row)
    return list(found.values())


def _both(before: Row, row: Row) -> Row:
    """Two rows of one episode as one."""
    kept, other = (row, before) if finished(row) or not finished(before) else (before, row)
    cost, broken_off = kept.get("cost"), kept.get("broken_off", 0)
    if row.get("rescored"):  # the same attempt: nothing was spent again
        cost, broken_off = before.get("cost"), before.get("broken_off", 0)
    elif not never_begun(other):
        cost = None if None in (cost, other.get("cost")) else cost + other["cost"]
        broken_off += other.get("broken_off", 0) + 1
    return {**kept, "cost": cost, **({"broken_off": broken_off} if broken_off else {})}


def every_row(folder: str | Path) -> Iterator[Row]:
    """All rows on record, those of failed attempts that were repeated included, oldest first."""
    for path in files_of(folder):
        yield from rows_of(bytes_of(path), path)


def files_of(folder: str | Path) -> list[Path]:
    """The files of a study's rows: `results.jsonl`, or what it is packed to, and one of each job of an array."""
    path = Path(folder) / RESULTS
    packed = path.with_name(f"{RESULTS}.gz")
    own = [path] if path.exists() else [packed] if packed.exists() else []
    return own + sorted((Path(folder) / SHARES).glob("*.jsonl"))


def rows_of(raw: bytes, path: Path) -> Iterator[Row]:
    """The rows in the bytes of a file of results; `path` is for messages."""
    from rlm_loop.study.store.recorded_row import fault_in  # with pydantic: 0.2 s

    lines = raw.decode("utf-8", "replace").split("\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        value = parse(line)
        if value is None and number == len(lines):
            return
        if value is not None and "schema" in value and "arm" not in value:
            _refuse_later(path, value["schema"])
            continue
        if fault := "no JSON object" if value is None else fault_in(value):
            raise StudyError(
                f"{path}:{number} is damaged, or no row that this version knows ({fault}); delete that line and "
                "resume: its episode runs again"
            )
        if value is not None:
            yield {**value, "suite": current_suite(value["suite"])}


def bytes_of(path: Path) -> bytes:
    """A file, unpacked.  Raises `StudyError` where it cannot be read, or is a pipe or a device."""
    try:
        return file_bytes(path)
    except OSError as error:
        raise StudyError(f"cannot read {path}: {error}") from error


def _refuse_later(path: Path, schema: Any) -> None:
    if isinstance(schema, bool) or not isinstance(schema, int) or schema > SCHEMA:
        raise StudyError(f"{path} has schema {schema}; this version reads up to {SCHEMA}: upgrade rlm-loop")

"""Read a study's folder: its lock, its fairness check and its rows, plain or packed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from rlm_loop.study.errors import StudyError
from rlm_loop.study.plan.fairness import SCHEMA as FAIRNESS_SCHEMA
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

#: What is recorded of each task, by suite.
BY_TASK = ("tasks", "truths", "scorers")
_OF_LOCK = {"name": str, "arms": dict, "models": list, "seeds": list, "tasks": dict}


def parse(line: str) -> dict[str, Any] | None:
    """A line that is a JSON object; `None` for anything else."""
    try:
        value = parse_json(line)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def read_lock(folder: str | Path) -> dict[str, Any] | None:
    """The `study.json` of a folder; `None` if there is none.

    Raises `StudyError` where it cannot be read, is damaged, or is of a later version.
    """
    path = Path(folder) / LOCK
    try:
        lock = parse(file_bytes(path).decode())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise StudyError(f"cannot read {path}: {error}") from error
    if lock is None or not isinstance(lock.get("schema", 0), int):
        raise StudyError(f"{path} is damaged; restore it from a copy, or start in another folder")
    _refuse_later(path, lock.get("schema", 0), SCHEMA)
    wrong = [name for name, kind in _OF_LOCK.items() if not isinstance(lock.get(name), kind)]
    if wrong and set(lock) - {"schema", "name"}:
        raise StudyError(f"{path} is of no study that this version knows (no {wrong[0]}); give another folder")
    for part in BY_TASK:
        if part in lock:
            lock[part] = {current_suite(suite): marks for suite, marks in lock[part].items()}
    return lock


def read_fairness_check(folder: str | Path) -> FairnessCheck | None:
    """The `contract.json` of a folder; `None` if there is none, as in studies of before it was kept."""
    path = Path(folder) / FAIRNESS
    try:
        data = parse(file_bytes(path).decode(errors="surrogatepass"))
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise StudyError(f"cannot read {path}: {error}") from error
    if data is None or not isinstance(schema := data.get("schema", 0), int) or schema > FAIRNESS_SCHEMA:
        raise StudyError(f"{path} is damaged or of a later version; remove it, the next run makes it anew")
    return FairnessCheck.from_dict(data)


def read_rows(folder: str | Path) -> list[Row]:
    """The last row of each episode, in the order in which the episodes were first tried.

    Reads `results.jsonl`, or `results.jsonl.gz` where that is not there; neither file means no rows.  A torn last line
    is ignored; a damaged line before it is a `StudyError` that names it.  A crash after a finished row does not replace
    it.
    """
    return latest(every_row(folder))


def latest(rows: Iterable[Row]) -> list[Row]:
    """The last row of each episode; a crash after a finished row does not replace it.

    Its `cost` is that of all its attempts: the others, that were broken off or failed, are counted as `broken_off`.
    """
    found: dict[tuple[str, str, str, str, int], Row] = {}
    for row in rows:
        before = found.get(key(row))
        found[key(row)] = row if before is None else _both(before, row)
    return list(found.values())


def _both(before: Row, row: Row) -> Row:
    """Two rows of one episode as one."""
    kept, other = (row, before) if finished(row) or not finished(before) else (before, row)
    if row.get("rescored"):  # the same attempt: nothing was spent again
        spent = before.get("cost"), before.get("broken_off", 0)
    elif never_begun(other):
        spent = kept.get("cost"), kept.get("broken_off", 0)
    else:
        costs = [kept.get("cost"), other.get("cost")]
        total = None if None in costs else sum(c for c in costs if c is not None)
        spent = total, kept.get("broken_off", 0) + other.get("broken_off", 0) + 1
    return {**kept, "cost": spent[0], **({"broken_off": spent[1]} if spent[1] else {})}


def every_row(folder: str | Path) -> Iterator[Row]:
    """All rows on record, those of failed attempts that were repeated included, oldest first."""
    return in_todays_words(row for path in files_of(folder) for row in rows_of(bytes_of(path), path))


def files_of(folder: str | Path) -> list[Path]:
    """The files of a study's rows: `results.jsonl`, or what it is packed to, and one of each job of an array."""
    path = Path(folder) / RESULTS
    packed = path.with_name(f"{RESULTS}.gz")
    own = [path] if path.exists() else [packed] if packed.exists() else []
    return own + sorted((Path(folder) / SHARES).glob("*.jsonl"))


def in_todays_words(rows: Iterable[Row]) -> Iterator[Row]:
    """Rows of 0.1 called `residual` what is `unattributed`, and the splits of a suite halves."""
    for row in rows:
        row["suite"] = current_suite(row["suite"])
        if "residual" in (causes := row.get("by_cause") or {}):
            causes["unattributed"] = causes.pop("residual")
        yield row


def rows_of(raw: bytes, path: Path) -> Iterator[Row]:
    """The rows in the bytes of a file of results; `path` is for messages."""
    from rlm_loop.study.store.recorded_row import wrong_field  # with pydantic: 0.2 s

    lines = raw.decode("utf-8", "replace").split("\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        value = parse(line)
        if value is None:
            if number == len(lines):
                break
            raise StudyError(f"{path}:{number} is damaged; delete that line and resume: its episode runs again")
        if "schema" in value and "arm" not in value:
            _refuse_later(path, value["schema"], SCHEMA)
            continue
        wrong = wrong_field(value)
        if wrong is not None and wrong[1]:
            raise StudyError(
                f"{path}:{number} is no row that this version knows (no {wrong[0]}); read it with the version of "
                "rlm-loop that wrote it"
            )
        if wrong is not None or "error" not in value:
            raise StudyError(
                f"{path}:{number} is damaged (its {'error' if wrong is None else wrong[0]} cannot be); delete that "
                "line and resume: its episode runs again"
            )
        yield value


def bytes_of(path: Path) -> bytes:
    """A file, unpacked.  Raises `StudyError` where it cannot be read, or is a pipe or a device."""
    try:
        return file_bytes(path)
    except OSError as error:
        raise StudyError(f"cannot read {path}: {error}") from error


def _refuse_later(path: Path, schema: Any, known: int) -> None:
    if isinstance(schema, bool) or not isinstance(schema, int) or schema > known:
        raise StudyError(f"{path} has schema {schema}; this version reads up to {known}: upgrade rlm-loop")

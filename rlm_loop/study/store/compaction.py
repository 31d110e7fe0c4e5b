"""Making one small file of a study's rows that other tools can read."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from rlm_loop.study.errors import StudyError, no_study
from rlm_loop.study.store.folder import claim
from rlm_loop.study.store.parquet import read_parquet, write_parquet
from rlm_loop.study.store.reading import PARQUET, RESULTS, bytes_of, read_lock, rows_from


def compact(folder: str | Path, *, keep: bool = True) -> Path:
    """Write all rows of a study's folder to `results.parquet` and return its path (needs the extra `parquet`).

    Failed attempts that were repeated are kept, as in the lines: they cost something too.  The file is read back and
    compared before it takes its place.  With `keep=False` `results.jsonl` is then removed; a later run begins a new
    one, and both are read together.  While a study runs it can be compacted, but keeps its lines.

    Raises `StudyError` where there are no rows, the rows cannot be read or written, or a run is writing and its lines
    were to be removed.
    """
    there = Path(folder)
    lines = there / RESULTS
    with contextlib.ExitStack() as stack:
        if not keep and lines.is_file():
            claim(stack.enter_context(lines.open("rb")), there)
        before = bytes_of(lines) if lines.exists() else None
        rows = list(rows_from(there, before))
        if read_lock(there) is None:
            raise StudyError(no_study(folder))
        if not rows:
            raise StudyError(f"{folder} holds no results yet; run the study first")
        part = there / f"{PARQUET}.part"
        try:
            write_parquet(part, rows, before or b"")
            if read_parquet(part) != rows:
                raise StudyError(f"{folder}: the rows do not come back from Parquet as they are; nothing was changed")
            os.replace(part, there / PARQUET)
            if not keep:
                lines.unlink(missing_ok=True)
        except OSError as error:
            raise StudyError(f"cannot write to {folder}: {error.strerror}; make room and try again") from error
        finally:
            part.unlink(missing_ok=True)
    return there / PARQUET

"""The traces of a study as files, whether they lie loose or packed."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path, PurePosixPath

from rlm_loop.study import Results, StudyError
from rlm_loop.study.store.archive import TRACES, packed_traces
from rlm_loop.traces.trace import TraceError


def names_of(results: Results) -> list[str]:
    """The traces that the rows name, in their order; none that would lie outside the study's folder."""
    names = dict.fromkeys(str(row["trace"]) for row in results.rows if row["trace"])
    return [n for n in names if not PurePosixPath(n).is_absolute() and ".." not in PurePosixPath(n).parts]


def has_traces(results: Results) -> bool:
    """Return whether any trace of the study is there."""
    if not results.folder:
        return False
    folder = Path(results.folder)
    return (folder / TRACES).is_file() or any((folder / name).is_file() for name in names_of(results))


@contextlib.contextmanager
def trace_file(folder: Path, name: str) -> Generator[Path | None]:
    """A file that holds the trace `name` of a study's folder, a packed one as long as the block runs; else `None`.

    Raises `TraceError` for packed traces that cannot be read.
    """
    path = folder / name
    if path.is_file():
        yield path
    elif (data := packed_traces(folder).get(name)) is None:
        yield None
    else:
        with tempfile.TemporaryDirectory() as scratch:
            unpacked = Path(scratch) / path.name
            unpacked.write_bytes(data)
            yield unpacked


def trace_files(results: Results, names: Iterable[str] | None = None) -> Iterator[tuple[str, Path]]:
    """Each trace that is there with a file that holds it; a packed one only until the next is asked for.

    `names` are those that are wanted (default: all).  Raises `StudyError` for packed traces that cannot be read.
    """
    known = names_of(results)
    for name in known if names is None else [n for n in names if n in set(known)]:
        try:
            with trace_file(Path(results.folder), name) as path:
                if path is not None:
                    yield name, path
        except TraceError as error:
            raise StudyError(f"{error}; export the study again, or leave the traces out") from error

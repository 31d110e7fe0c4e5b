"""The traces of a study as files, whether they lie loose or packed: read in one pass."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
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


def trace_files(results: Results, names: Iterable[str] | None = None) -> Iterator[tuple[str, Path]]:
    """Each trace that is there with a file that holds it; a packed one only until the next is asked for.

    `names` are those that are wanted (default: all).  Raises `StudyError` for packed traces that cannot be read.
    """
    known, folder = names_of(results), Path(results.folder)
    wanted = known if names is None else [n for n in dict.fromkeys(names) if n in set(known)]
    loose = [name for name in wanted if (folder / name).is_file()]
    yield from ((name, folder / name) for name in loose)
    rest = set(wanted) - set(loose)
    if not rest:
        return
    with tempfile.TemporaryDirectory() as scratch:
        try:
            for name, data in packed_traces(folder).items():
                if name in rest:
                    path = Path(scratch) / PurePosixPath(name).name
                    path.write_bytes(data)
                    yield name, path
                    path.unlink()
        except TraceError as error:
            raise StudyError(f"{error}; export the study again, or leave the traces out") from error

"""The traces of a study as files, whether they lie loose or packed: read in one pass."""

from __future__ import annotations

import gzip
import tarfile
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from rlm_loop.study import Results, StudyError
from rlm_loop.study.store.archive import TRACES


def names_of(results: Results) -> list[str]:
    """The traces that the rows name, in their order; none that would lie outside the study's folder."""
    names = dict.fromkeys(str(row["trace"]) for row in results.rows if row["trace"])
    return [n for n in names if not PurePosixPath(n).is_absolute() and ".." not in PurePosixPath(n).parts]


def has_traces(results: Results) -> bool:
    """Whether any trace of the study is there."""
    if not results.folder:
        return False
    folder = Path(results.folder)
    return (folder / TRACES).is_file() or any((folder / name).is_file() for name in names_of(results))


def trace_files(results: Results, names: Iterable[str] | None = None) -> Iterator[tuple[str, Path]]:
    """Each trace that is there with a file that holds it; a packed one only until the next is asked for.

    `names` are those that are wanted (default: all).  Raises `StudyError` for packed traces that cannot be read.
    """
    known = names_of(results)
    wanted = known if names is None else [n for n in dict.fromkeys(names) if n in set(known)]
    packed = Path(results.folder) / TRACES
    loose = [name for name in wanted if (Path(results.folder) / name).is_file()]
    yield from ((name, Path(results.folder) / name) for name in loose)
    rest = set(wanted) - set(loose)
    if not rest or not packed.is_file():
        return
    try:
        with tarfile.open(packed, "r:gz") as tar, tempfile.TemporaryDirectory() as scratch:
            for member in tar:
                if member.name in rest and (file := tar.extractfile(member)) is not None:
                    path = Path(scratch) / PurePosixPath(member.name).name
                    path.write_bytes(file.read())
                    yield member.name, path
                    path.unlink()
    except (tarfile.TarError, EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise StudyError(f"cannot read {packed}: {error}; export the study again, or leave the traces out") from error

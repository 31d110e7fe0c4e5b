"""A page for each trace of a study, and the addresses by which a report links them."""

from __future__ import annotations

import gzip
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from urllib.parse import quote

from rlm_loop.report.page import run_page
from rlm_loop.study import Results, StudyError
from rlm_loop.study.archive import TRACES
from rlm_loop.trace import TraceError

Progress = Callable[[Iterable[tuple[str, Path]]], Iterable[tuple[str, Path]]]


def write_trace_pages(results: Results, folder: str | Path, *, progress: Progress = iter) -> Mapping[str, str]:
    """Write the page of every trace of a study into `folder`, and return their addresses by the names of the traces.

    Addresses are relative to the folder above, for a report that lies there.  A trace that is not there, or holds not
    one event, has no page and no address.  Raises `StudyError` for packed traces that cannot be read, and `OSError`
    where the pages cannot be written.
    """
    there = Path(folder)
    links: dict[str, str] = {}
    for name, trace in progress(_traces(results)):
        try:
            text = run_page(trace)
        except TraceError:
            continue
        page = there.joinpath(*_below(name).parts)
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(text, encoding="utf-8", newline="")
        links[name] = address(there.name, name)
    return links


def address(folder: str, name: str) -> str:
    """Where the page of the trace `name` lies, as a link from beside `folder`."""
    return quote(f"{folder}/{_below(name)}")


def _below(name: str) -> PurePosixPath:
    """The path of a page in the folder of pages: that of the trace without its own folder."""
    path = PurePosixPath(name)
    inner = path.relative_to("traces") if path.is_relative_to("traces") else path
    return inner.with_suffix(".html")


def names_of(results: Results) -> list[str]:
    """The traces that the rows name, in their order; none that would lie outside the study's folder."""
    names = dict.fromkeys(str(row["trace"]) for row in results.rows if row["trace"])
    return [n for n in names if not PurePosixPath(n).is_absolute() and ".." not in PurePosixPath(n).parts]


def _traces(results: Results) -> Iterator[tuple[str, Path]]:
    """Each trace that is there with a file that holds it; a packed one only until the next is asked for."""
    wanted, packed = names_of(results), Path(results.folder) / TRACES
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

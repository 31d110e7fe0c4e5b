"""A page for each trace of a study, and the addresses by which a report links them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path, PurePosixPath
from urllib.parse import quote

from rlm_loop.report.run import run_page
from rlm_loop.report.tables.trace_files import trace_files
from rlm_loop.study import Results
from rlm_loop.traces.trace import TraceError

Progress = Callable[[Iterable[tuple[str, Path]]], Iterable[tuple[str, Path]]]


def write_trace_pages(results: Results, folder: str | Path, *, progress: Progress = iter) -> Mapping[str, str]:
    """Write the page of every trace of a study into `folder`, and return their addresses by the names of the traces.

    Addresses are relative to the folder above, for a report that lies there.  A trace that is not there, or holds not
    one event, has no page and no address.  Raises `StudyError` for packed traces that cannot be read, and `OSError`
    where the pages cannot be written.
    """
    there = Path(folder)
    links: dict[str, str] = {}
    rows = {str(row["trace"]): row for row in results.rows}
    for name, trace in progress(trace_files(results)):
        try:
            text = run_page(trace, row=rows.get(name))
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

"""The page of a study or of any comparison: one HTML file that holds all it shows, and asks the network for nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from rlm_loop.report.run.page import run_page
from rlm_loop.report.study.parts import ANSWERING, Head, answer_of, drawings, episodes_of, head_of, head_of_comparison
from rlm_loop.report.tables.comparison import effect_table, suite_effects
from rlm_loop.report.tables.study_tables import arm_table, suite_table
from rlm_loop.report.templates import sealed
from rlm_loop.report.trace_files import trace_files
from rlm_loop.study import Comparison, Results, StudyError, load_study
from rlm_loop.study.compare.comparison import compare
from rlm_loop.traces.trace import TraceError


def study_page(results: Results, *, baseline: str | None = None, links: Mapping[str, str] | None = None) -> str:
    """The report of a study as one HTML page: question and answer on one screen, and below it, folded, all else.

    `baseline` is what the other arms are compared with, by default that of the study's `Analysis`, else the first.
    `links` are the addresses of trace pages by the names of the traces, as `write_trace_pages` returns them.
    The same results give the same page.  Raises `StudyError` for an unknown arm, and without the extra `studies`.
    """
    against = _baseline(results, baseline)
    compared = compare(results, against) if results.complete_pairs and len(results.arms) > 1 else None
    return _page(results, head_of(results, against), against, compared, links or {})


def compare_page(compared: Comparison, notes: Sequence[str] = ()) -> str:
    """The page of a comparison, complete in itself: it asks the network for nothing.

    `notes` are those of how results were read (`load_sources`).  Whatever a model or a tool wrote is shown as text.
    """
    results = Results([dict(row) for row in compared.rows])
    return _page(results, head_of_comparison(compared, notes), compared.baseline, compared, {})


def _page(results: Results, head: Head, against: str, compared: Comparison | None, links: Mapping[str, str]) -> str:
    whole, several = bool(results.complete_pairs), len({row["suite"] for row in results.rows}) > 1
    drawn = drawings(results, against, compared) if whole else []
    beside = next((figure for figure in drawn if figure.name == ANSWERING), None)
    shown: list[tuple[str, str, Any]] = []  # the macro of `sections.html`, its heading and its value
    if compared is not None:
        tables = [table for table in (suite_effects(compared), effect_table(compared)) if table]
        shown.append(("findings", "Differences", (compared, tables)))
    if results.rows:
        shown.append(("episodes", "Episodes", episodes_of(results, links)))
    if whole:
        shown.append(("figures", "Figures", [figure for figure in drawn if figure is not beside]))
        tables = [arm_table(results, against), *([suite_table(results, against)] if several else [])]
        shown.append(("arms", "Arms", tables))
    return sealed(
        "study/study.html",
        "study/study.css",
        "study/study.js",
        title=head.title,
        head=head,
        answer=answer_of(results, against, compared, beside) if whole else None,
        sections=shown,
        contents=[*([("answer", "Answer")] if whole else []), ("about", "About"), *(one[:2] for one in shown)],
        name=results.name or head.over,
    )


def _baseline(results: Results, baseline: str | None) -> str:
    if baseline is not None and baseline not in results.arms:
        raise StudyError(f"there is no arm {baseline!r}; there are {', '.join(results.arms)}")
    return baseline or (results.baseline if results.arms else "")


Progress = Callable[[Iterable[tuple[str, Path]]], Iterable[tuple[str, Path]]]


def write_study_page(
    folder: str | Path,
    out: str | Path,
    *,
    baseline: str | None = None,
    traces: bool = True,
    progress: Progress = iter,
) -> Path:
    """Write the report of the study in `folder` to the file `out`, and return its path.

    With `traces` the page of each trace is written to a folder beside it (`report_traces` for `report.html`), and
    linked; the report is then moved together with that folder.  The same results give the same files.  `progress` is
    put around the traces as they are read (`tqdm`, for one).  Raises `StudyError` where `folder` holds no study,
    `baseline` is no arm of it, or the files cannot be written.
    """
    page, results = Path(out), load_study(folder)
    if page.is_dir():
        raise StudyError(f"{out} is a folder; name a file for the report, such as {page / 'report.html'}")
    _baseline(results, baseline)  # a wrong one is said before anything is written
    try:
        page.parent.mkdir(parents=True, exist_ok=True)
        pages = page.with_name(f"{page.stem}_traces")
        links = write_trace_pages(results, pages, progress=progress) if traces else {}
        page.write_text(study_page(results, baseline=baseline, links=links), encoding="utf-8", newline="")
    except OSError as error:
        raise StudyError(f"cannot write {error.filename or out}: {error.strerror}; choose another file") from error
    return page


def write_trace_pages(results: Results, folder: str | Path, *, progress: Progress = iter) -> Mapping[str, str]:
    """Write the page of every trace of a study into `folder`, and return their addresses by the names of the traces.

    Addresses are relative to the folder above, for a report that lies there.  A trace that is not there, or cannot be
    read, has no page and no address.  Raises `StudyError` for packed traces that cannot be read, and `OSError` where
    the pages cannot be written.
    """
    links: dict[str, str] = {}
    rows = {str(row["trace"]): row for row in results.rows}
    for name, trace in progress(trace_files(results)):
        try:
            text = run_page(trace, row=rows.get(name))
        except TraceError:
            continue
        page = Path(folder, name.removeprefix("traces/")).with_suffix(".html")
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(text, encoding="utf-8", newline="")
        links[name] = quote(page.relative_to(Path(folder).parent).as_posix())
    return links

"""The page of a study or of any comparison: one HTML file that holds all it shows, and asks the network for nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple
from urllib.parse import quote

from rlm_loop.report.run import run_page
from rlm_loop.report.study.parts import Head, answer_of, drawings, episodes_of, head_of, head_of_comparison
from rlm_loop.report.tables.comparison import effect_table, sentences, suite_effects
from rlm_loop.report.tables.study_tables import arm_table, suite_table
from rlm_loop.report.tables.table import Table
from rlm_loop.report.templates import sealed
from rlm_loop.report.trace_files import names_of, trace_files
from rlm_loop.study import Comparison, Results, StudyError, load_study
from rlm_loop.study.compare.comparison import compare
from rlm_loop.traces.trace import TraceError

#: Where trace pages are looked for if nobody says where they are.
_FOLDER = "study_traces"


def study_page(
    results_or_folder: Results | str | Path, *, baseline: str | None = None, traces: bool | Mapping[str, str] = True
) -> str:
    """The report of a study as one HTML page: question and answer on one screen, and below it, folded, all else.

    `baseline` is what the other arms are compared with, by default that of the study's `Analysis`, else the first.
    `traces` are the addresses of trace pages by the names of the traces, as `write_trace_pages` returns them; true
    links to where `write_trace_pages(results, "study_traces")` puts them beside the page, false leaves the links out.
    Figures need the extra `studies`, findings the extra `stats`; without them the page says so in their place.
    The same results give the same page.  Raises `StudyError` for a folder without a study and an unknown arm.
    """
    results = results_or_folder if isinstance(results_or_folder, Results) else load_study(results_or_folder)
    against = _baseline(results, baseline)
    if isinstance(traces, Mapping):
        links = traces
    else:
        links = {name: address(_FOLDER, name) for name in names_of(results)} if traces else {}
    return _page(results, head_of(results, against), against, links, lambda: _compared(results, against))


def compare_page(compared: Comparison, notes: Sequence[str] = (), *, title: str = "") -> str:
    """The page of a comparison, complete in itself: it asks the network for nothing.

    `notes` are those of how results were read (`Results.notes`).  Whatever a model or a tool wrote is shown as text.
    """
    results, head = Results([dict(row) for row in compared.rows]), head_of_comparison(compared, title, notes)
    return _page(results, head, compared.baseline, {}, lambda: compared, sentences(compared))


class Section(NamedTuple):
    """A part of the page: the value that the macro named `ident` of `sections.html` shows, or `why` there is none."""

    ident: str
    label: str
    value: Any = None
    why: str = ""


def _page(
    results: Results,
    head: Head,
    against: str,
    links: Mapping[str, str],
    make: Callable[[], Comparison],
    said: Sequence[str] | None = None,
) -> str:
    answer, shown = None, list[Section]()
    whole, frame = bool(results.complete_pairs), None
    if whole:
        findings = _section("findings", "Differences", lambda: _findings(make()))
        compared = findings.value and findings.value[0]
        frame = compared.frame() if compared else None
        answer = _section("answer", "Answer", lambda: answer_of(results, against, compared, said))
        shown.append(findings)
    if results.rows:
        shown.append(Section("episodes", "Episodes", episodes_of(results, links)))
    if whole:
        shown.append(_section("figures", "Figures", lambda: drawings(results, against, frame)))
    if results.rows:
        shown.append(_section("arms", "Arms", lambda: _arms(results, against)))
    return sealed(
        "study/study.html",
        "study/study.css",
        "study/study.js",
        title=head.title,
        head=head,
        answer=answer,
        sections=shown,
        contents=[*([("answer", "Answer")] if answer else []), ("about", "About"), *(one[:2] for one in shown)],
        name=results.name or head.over,
    )


def _section(ident: str, label: str, make: Callable[[], Any]) -> Section:
    """With the value that `make` returns; where the study or this machine cannot give it, with the reason."""
    try:
        return Section(ident, label, make())
    except StudyError as error:
        return Section(ident, label, why=str(error))


def _compared(results: Results, baseline: str) -> Comparison:
    if len(results.arms) < 2:
        raise StudyError("There is one arm, so there is nothing to compare it with.")
    return compare(results, baseline)


def _findings(compared: Comparison) -> tuple[Comparison, list[Table]]:
    return compared, [table for table in (suite_effects(compared), effect_table(compared)) if table]


def _arms(results: Results, baseline: str) -> list[Table]:
    if not results.complete_pairs:
        raise StudyError("No task was tried by every arm yet, so there is nothing to compare.")
    several = len({row["suite"] for row in results.rows}) > 1
    return [arm_table(results, baseline), *([suite_table(results, baseline)] if several else [])]


def _baseline(results: Results, baseline: str | None) -> str:
    if baseline is not None and baseline not in results.arms:
        raise StudyError(f"there is no arm {baseline!r}; there are {', '.join(results.arms)}")
    return baseline or (results.baseline if results.arms else "")


def write_study_page(
    folder: str | Path,
    out: str | Path,
    *,
    baseline: str | None = None,
    traces: bool = True,
    progress: Progress = iter,
) -> Path:
    """Write the report of the study in `folder` to the file `out`, and return its path.

    With `traces` the page of each trace is written to the folder `trace_folder(out)` beside it, and linked; the report
    is then moved together with that folder.  The same results give the same files.  `progress` is put around the traces
    as they are read (`tqdm`, for one).  Raises `StudyError` where `folder` holds no study, `baseline` is no arm of it,
    or the files cannot be written.
    """
    page, results = Path(out), load_study(folder)
    if page.is_dir():
        raise StudyError(f"{out} is a folder; name a file for the report, such as {page / 'report.html'}")
    _baseline(results, baseline)  # a wrong one is said before anything is written
    try:
        page.parent.mkdir(parents=True, exist_ok=True)
        links = write_trace_pages(results, trace_folder(page), progress=progress) if traces else False
        page.write_text(study_page(results, baseline=baseline, traces=links), encoding="utf-8", newline="")
    except OSError as error:
        raise StudyError(f"cannot write {error.filename or out}: {error.strerror}; choose another file") from error
    return page


def trace_folder(out: str | Path) -> Path:
    """The folder of the trace pages of the report `out`: `report_traces` for `report.html`."""
    return Path(out).with_name(f"{Path(out).stem}_traces")


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
    """Return where the page of the trace `name` lies, as a link from beside `folder`."""
    return quote(f"{folder}/{_below(name)}")


def _below(name: str) -> PurePosixPath:
    """The path of a page in the folder of pages: that of the trace without its own folder."""
    path = PurePosixPath(name)
    inner = path.relative_to("traces") if path.is_relative_to("traces") else path
    return inner.with_suffix(".html")

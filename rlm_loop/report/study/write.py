"""Writing a report: the page itself, and beside it one page for each trace of the study."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rlm_loop.report.study.page import study_page
from rlm_loop.report.study.trace_pages import Progress, write_trace_pages
from rlm_loop.study import StudyError, load_study


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
    if baseline is not None and baseline not in results.arms:  # said before anything is written
        raise StudyError(f"there is no arm {baseline!r}; there are {', '.join(results.arms)}")
    try:
        page.parent.mkdir(parents=True, exist_ok=True)
        links: Mapping[str, str] | bool = False
        if traces:
            links = write_trace_pages(results, trace_folder(page), progress=progress)
        page.write_text(study_page(results, baseline=baseline, traces=links), encoding="utf-8", newline="")
    except OSError as error:
        raise StudyError(f"cannot write {error.filename or out}: {error.strerror}; choose another file") from error
    return page


def trace_folder(out: str | Path) -> Path:
    """The folder of the trace pages of the report `out`: `report_traces` for `report.html`."""
    return Path(out).with_name(f"{Path(out).stem}_traces")

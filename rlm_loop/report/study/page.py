"""The report of a study: one HTML file that holds everything it shows, and asks the network for nothing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from markupsafe import Markup

from rlm_loop import __version__
from rlm_loop.report.run.sealed import resource, sealed
from rlm_loop.report.study.agreement import agreement
from rlm_loop.report.study.arms import arm_tables
from rlm_loop.report.study.drawings import drawings
from rlm_loop.report.study.episodes import episodes
from rlm_loop.report.study.findings import Findings, findings_of
from rlm_loop.report.study.head import head
from rlm_loop.report.study.missing import missing_pairs
from rlm_loop.report.study.origin import origin
from rlm_loop.report.study.parts import or_why, section
from rlm_loop.report.study.question import question_of
from rlm_loop.report.study.trace_pages import address
from rlm_loop.report.tables.trace_files import names_of
from rlm_loop.report.templates import safe
from rlm_loop.study import Results, StudyError, load_study

_HERE = "rlm_loop.report.study"
#: Where trace pages are looked for if nobody says where they are.
_FOLDER = "study_traces"


def study_page(
    results_or_folder: Results | str | Path, *, baseline: str | None = None, traces: bool | Mapping[str, str] = True
) -> str:
    """The report of a study as one HTML page: question, findings, tables, figures, missing pairs, contract, episodes.

    `baseline` is what the other arms are compared with, by default that of the study's `Analysis`, else the first.
    `traces` are the addresses of trace pages by the names of the traces, as `write_trace_pages` returns them; true
    links to where `write_trace_pages(results, "study_traces")` puts them beside the page, false leaves the links out.
    Figures need the extra `studies`, findings the extra `stats`; without them the page says so in their place.
    The same results give the same page.  Raises `StudyError` for a folder without a study and an unknown arm.
    """
    results = results_or_folder if isinstance(results_or_folder, Results) else load_study(results_or_folder)
    against = _baseline(results, baseline)
    links = traces if isinstance(traces, Mapping) else {}
    if traces is True:
        links = {name: address(_FOLDER, name) for name in names_of(results)}
    question = question_of(results)
    found = findings_of(results, against) if results.complete_pairs else Findings()
    sections = (
        ("findings", "Findings, exploratory" if found.exploratory else "Findings", found.html),
        ("arms", "Arms", or_why(lambda: arm_tables(results, against)) if results.rows else ""),
        ("figures", "Figures", drawings(results, against, found.frame) if results.complete_pairs else ""),
        ("pairs", "Missing pairs", missing_pairs(results, against, found.policy) if results.rows else ""),
        ("contract", "Contract", or_why(lambda: agreement(results))),
        ("episodes", "Episodes", episodes(results, links)),
        ("environment", "Environment", origin(results)),
    )
    shown = [(ident, label, inner) for ident, label, inner in sections if inner]
    contents = "".join(f'<li><a href="#{ident}">{safe(label)}</a></li>' for ident, label, _ in shown)
    return sealed(
        "study/study.html",
        style=resource("page.css") + resource("study.css", _HERE),
        script=resource("theme.js") + resource("study.js", _HERE),
        title=question.title,
        head=Markup(head(results, question, against)),
        contents=Markup(contents),
        sections=Markup("".join(section(*part) for part in shown)),
        name=results.name,
        version=__version__,
    )


def _baseline(results: Results, baseline: str | None) -> str:
    if baseline is not None and baseline not in results.arms:
        raise StudyError(f"there is no arm {baseline!r}; there are {', '.join(results.arms)}")
    return baseline or (results.baseline if results.arms else "")

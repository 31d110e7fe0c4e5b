"""`rlm-loop study report`: read what a study has found."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Option

from rlm_loop.cli.experiments import Folder, show_table
from rlm_loop.cli.setup import Markdown
from rlm_loop.cli.terminal import echo, note


def report(
    folder: Folder,
    baseline: Annotated[
        str | None, Option(help="The arm to compare with; default that of its analysis, else the first.")
    ] = None,
    out: Annotated[str | None, Option(help="Where the figure goes; default the folder itself.")] = None,
    markdown: Markdown = False,
    html: Annotated[
        str | None, Option(metavar="OUT.html", help="Write one page instead, and OUT_traces/ beside it.")
    ] = None,
    no_traces: Annotated[bool, Option("--no-traces", help="With --html: no pages of the traces.")] = False,
) -> None:
    """The tables of a study and its figure; or, with --html, a page with all that is known of it."""
    from rlm_loop.report import arm_table, resolve_against_tokens, save, suite_table, target_table
    from rlm_loop.study import load_study

    if html is not None:
        _write_page(folder, html, baseline, traces=not no_traces)
        return
    found = load_study(folder)
    for table in (arm_table(found, baseline), suite_table(found, baseline), target_table(found, baseline)):
        show_table(table, markdown=markdown)
        echo()
    for path in save(resolve_against_tokens(found), Path(out or folder) / "figure"):
        note(f"figure: {path}")


def _write_page(folder: str, html: str, baseline: str | None, *, traces: bool) -> None:
    from tqdm import tqdm

    from rlm_loop.report.study import trace_folder, write_study_page

    echo(
        write_study_page(
            folder,
            html,
            baseline=baseline,
            traces=traces,
            progress=lambda found: tqdm(found, desc="traces", unit="", disable=None, leave=False),
        )
    )
    if traces:
        note(f"traces: {trace_folder(html)}")

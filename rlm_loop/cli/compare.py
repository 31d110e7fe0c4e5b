"""`rlm-loop compare`: results of anybody's, paired by task and seed."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from rlm_loop.cli.setup import Markdown, Misuse, as_json, write_page
from rlm_loop.cli.study import show_table
from rlm_loop.cli.terminal import echo, note

if TYPE_CHECKING:
    from rlm_loop.study import Comparison


def compare(
    files: Annotated[
        list[str],
        Argument(
            metavar="[NAME=]PATH...",
            help="CSV or JSON Lines with task, arm and resolved; Inspect .eval; lm-evaluation-harness samples_*.jsonl; "
            "a Harbor job; a study's folder; or a folder of such logs.",
        ),
    ],
    baseline: Annotated[str | None, Option(help="The arm to compare with; default the first.")] = None,
    arm: Annotated[list[str] | None, Option("--arm", help="Only these arms; may be repeated.")] = None,
    score: Annotated[
        str | None, Option(metavar="NAME", help="Which score says that a task is resolved, where there are several.")
    ] = None,
    threshold: Annotated[float | None, Option(help="The score from which a task counts as resolved.")] = None,
    column: Annotated[
        list[str] | None, Option("--column", metavar="OURS=THEIRS", help="A column of a table, such as task=my_id.")
    ] = None,
    missing: Annotated[str, Option(help="Pairs without a score: bounds, drop or worst.")] = "bounds",
    cluster: Annotated[str | None, Option(help="The column that says which tasks belong together.")] = None,
    html: Annotated[str | None, Option(metavar="OUT.html", help="Write a page.")] = None,
    json_: Annotated[bool, Option("--json", help="Everything, as one line of JSON.")] = False,
    markdown: Markdown = False,
) -> None:
    """Two or more results, paired by task and seed: the difference with its interval, and what it would take to know.

    Nothing is asked of where they come from: `rlm-loop compare a.csv b.csv`, or one table with a column `arm`.
    """
    from rlm_loop.formats.results.loaded import load_sources
    from rlm_loop.formats.results.source import ReadOptions
    from rlm_loop.report.study import compare_page
    from rlm_loop.report.tables.comparison import effect_table, flip_table, sentences, suite_effects
    from rlm_loop.study.compare.comparison import compare as compare_results

    loaded = load_sources(*files, reading=ReadOptions(score, threshold, _columns(column or [])))
    results = loaded.results.only(*arm) if arm else loaded.results
    compared = compare_results(results, baseline, missing=missing, cluster=cluster)  # pyright: ignore[reportArgumentType]
    for line in loaded.notes:
        note(f"note: {line}")
    if html is not None:
        write_page(Path(html), compare_page(compared, loaded.notes))
        return
    if json_:
        echo(as_json(_everything(compared, loaded.notes)))
        return
    for line in sentences(compared):
        echo(line)
    for table in (effect_table(compared), suite_effects(compared), flip_table(compared)):
        if table is not None:
            echo()
            show_table(table, markdown=markdown)


_PARTS = ("contrasts", "suites", "interactions", "flips", "plans")


def _columns(pairs: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in pairs:
        ours, equals, theirs = pair.partition("=")
        if not (ours and equals and theirs):
            raise Misuse(f"--column takes OURS=THEIRS, such as task=my_id, not {pair!r}")
        found[ours] = theirs
    return found


def _everything(compared: Comparison, notes: object) -> dict[str, object]:
    return {
        "baseline": compared.baseline,
        "missing": compared.missing,
        "left_out": compared.left_out,
        "notes": notes,
        **{name: [asdict(one) for one in getattr(compared, name)] for name in _PARTS},
    }

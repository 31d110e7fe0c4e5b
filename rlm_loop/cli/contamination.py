"""`rlm-loop study contamination`: how much of a public suite's texts a model writes down word for word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from rlm_loop.cli.experiments import show_table
from rlm_loop.cli.setup import Markdown, as_json, setup_of, suite_named
from rlm_loop.cli.terminal import echo, note

if TYPE_CHECKING:
    from rlm_loop.report.tables.table import Table
    from rlm_loop.tasks.contamination import Contamination


def contamination(
    context: typer.Context,
    suite: Annotated[str, Argument(metavar="SUITE", help="A suite whose texts are public, such as humaneval.")],
    model: Annotated[str, Option(metavar="NAME", help="The model that is asked; two calls a task.")],
    limit: Annotated[int | None, Option(min=1, help="Tasks at most, from the first on.")] = None,
    json_: Annotated[bool, Option("--json", help="A line of JSON for each task.")] = False,
    markdown: Markdown = False,
) -> None:
    """What a model reproduces of the second half of a task's text, against the same text with other names.

    Progress is on standard error; Ctrl-C, or a model that fails, still shows what was found until then.
    """
    from tqdm import tqdm

    from rlm_loop.tasks.contamination import contamination as probe

    tasks = list(suite_named(suite))[:limit]
    asked = setup_of(context).models(model)
    found: list[Contamination] = []
    try:
        for one in probe(asked, tqdm(tasks, unit=" tasks")):
            found.append(one)
            if json_:
                echo(as_json(asdict(one)))
    finally:
        if found and not json_:
            show_table(table_of(found, suite, model), markdown=markdown)
    if not found:
        note(f"{suite}: no task's text is long enough to be halved")


def table_of(found: Sequence[Contamination], suite: str, model: str) -> Table:
    """A row a task, those first that were reproduced most; below it the difference from the control."""
    from rlm_loop.report.tables.table import Table

    ordered = sorted(found, key=lambda one: -(one.original.share or 0))
    rows = [
        [one.task, f"{one.original.tokens:,}", *(cell for of in (one.original, one.control) for cell in _cells(of))]
        for one in ordered
    ]
    columns = ["task", "tokens", "longest run", "share", "other names: longest run", "share"]
    return Table(f"What {model} writes of the rest of {suite}", columns, rows, _notes(found), 1)


def _cells(of: object) -> list[str]:
    from rlm_loop.tasks.contamination import Reproduced

    if not isinstance(of, Reproduced):
        return ["-", "-"]
    return [f"{of.longest:,}", "-" if of.share is None else f"{100 * of.share:.0f} %"]


def _notes(found: Sequence[Contamination]) -> list[str]:
    from rlm_loop.study.statistics import codes_of, mean_interval
    from rlm_loop.tasks.contamination import GRAM

    told = [
        f"Share: of all runs of {GRAM} tokens in the rest of the text those that the model wrote. Other names: the "
        "same text with what it defines renamed."
    ]
    pairs = [
        (one.original.share, one.control.share)
        for one in found
        if one.control is not None and one.original.share is not None and one.control.share is not None
    ]
    if len(pairs) > 1:
        apart = [original - control for original, control in pairs]
        mean, low, high = (100 * float(x) for x in mean_interval(apart, codes_of(range(len(apart)))))
        width = "no interval of so few" if low != low else f"95 % interval {low:+.1f} to {high:+.1f}"
        told.append(f"Original against other names, {len(pairs):,} tasks: {mean:+.1f} points of share ({width}).")
    told.append(
        "A share well above that of other names is a sign that the text itself was learnt; none is no proof that it "
        "was not."
    )
    return told

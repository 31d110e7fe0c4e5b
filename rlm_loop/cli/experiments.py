"""What the commands about studies share: finding an experiment, running it, showing tables."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from rlm_loop.cli.setup import INTERRUPTED, Misuse
from rlm_loop.cli.terminal import echo, note, results, room

if TYPE_CHECKING:
    from rlm_loop.report.tables.table import Table
    from rlm_loop.study import Results, Study

_BORDERS = 20  # characters that a drawn table takes besides its cells
Experiment = Annotated[
    str, Argument(metavar="FILE|NAME", help="A file that defines study(), its folder, or a name in experiments/.")
]
SplitRun = Annotated[str | None, Option("--split", help="As it was run.")]
ChosenRun = Annotated[
    list[str] | None, Option("--set", metavar="NAME=VALUE", help="As it was run, where it was given.")
]
Folder = Annotated[str, Argument(help="The folder of a study's results.")]


def chosen_options(pairs: list[str], split: str | None) -> dict[str, Any]:
    """`NAME=VALUE` pairs; a value that is JSON (a number, true, a list) is read as such, anything else is text."""
    if split not in (None, "dev", "test"):
        raise Misuse(f"there is no split {split!r}; there are dev and test")
    options: dict[str, Any] = {} if split is None else {"split": split}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise Misuse(f"--set takes NAME=VALUE, not {pair!r}")
        try:
            options[name] = json.loads(value)
        except ValueError:
            options[name] = value
    return options


def load(experiment: str, **options: Any) -> Study:
    """The study of a file, a folder with a `study.py`, or a name in `experiments/`.

    Raises `Misuse` for a value of `options` that its code refuses.
    """
    from rlm_loop.study import StudyError, load_study_file

    where = place_of(experiment)
    if not where.exists():
        there = sorted(p.parent.name for p in Path("experiments").glob("*/study.py"))
        known = f"; experiments/ has {', '.join(there)}" if there else "; `rlm-loop study init` writes one"
        raise StudyError(f"there is no experiment {experiment}{known}")
    try:
        return load_study_file(where, **options)
    except (TypeError, ValueError) as error:
        if not options:
            raise
        raise Misuse(f"{experiment}: {error} (given: {', '.join(f'{o}={v!r}' for o, v in options.items())})") from error


def place_of(experiment: str) -> Path:
    """The file or folder of an experiment, which may not be there."""
    named = Path("experiments") / experiment
    return named if not Path(experiment).exists() and named.exists() else Path(experiment)


def run_study(study: Study, folder: str, *, show: bool = True, **options: Any) -> int:
    """Run what is left of a study with progress on standard error, then show its table (unless `show` is off).

    `options` are those of `Study.run`.
    """
    from rlm_loop.study import StudyInterrupted, StudyWarning, Unfair

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", StudyWarning)
            warnings.showwarning = _showing(StudyWarning)
            found = study.run(folder, progress=True, **options)
    except StudyInterrupted as stopped:
        note(stopped.message)
        return INTERRUPTED
    except Unfair as unfair:
        note(unfair.diff)
        raise
    if show:
        show_results(found)
    return 0


def _showing(kind: type[Warning]) -> Callable[..., None]:
    """Warnings of a kind as a line each; all others as before."""
    usual = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], filename: str, lineno: int, *rest: Any) -> None:
        if issubclass(category, kind):
            note(f"note: {message}")
        else:
            usual(message, category, filename, lineno, *rest)

    return show


def show_results(found: Results) -> None:
    """The table of the arms, and where everything lies."""
    from rlm_loop.report import arm_table, resolve_against_tokens, save
    from rlm_loop.study import StudyError

    if not found.complete_pairs:
        if found.crashed:
            raise StudyError(f"no task was tried by every arm; the first crash: {found.crashed[0]['error']}")
        raise StudyError("no task was tried by every arm yet; run the same command again to go on")
    show_table(arm_table(found))
    plot = save(resolve_against_tokens(found), Path(found.folder) / "figure")[0]
    for label, where in (
        ("plot", plot),
        ("results", Path(found.folder) / "results.jsonl"),
        ("traces", Path(found.folder) / "traces"),
    ):
        note(f"{label + ':':<9}{where}")
    note(f"one run:  rlm-loop trace show {Path(found.folder) / found.rows[0]['trace']}")


def show_table(table: Table, *, markdown: bool = False) -> None:
    """A table: drawn where it fits the terminal, in plain characters elsewhere; a pipe gets whole lines."""
    if markdown:
        echo(table.to_markdown())
    elif sys.stdout.isatty() and len(max(table.to_text().splitlines(), key=len)) + _BORDERS < (room() or 0):
        results().print(table)
    else:
        echo(table.to_text(room()))

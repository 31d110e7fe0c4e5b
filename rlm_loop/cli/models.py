"""`rlm-loop models`: local models that are known by name."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Annotated

import typer
from typer import Argument, Option

from rlm_loop.cli.terminal import note, notes, results

app = typer.Typer(help="Local models: list them, fetch them.", no_args_is_help=True)

Names = Annotated[list[str], Argument(metavar="NAME...", help="Names from `rlm-loop models list`.")]


@app.command("list")
def list_() -> None:
    """The known models, whether they are here, and their licences."""
    from rich.table import Table

    from rlm_loop.models import weights
    from rlm_loop.models.catalog import CATALOG

    table = Table("name", "size", "state", "licence", "what it is", box=None, pad_edge=False)
    for known in CATALOG:
        state = "ready" if weights.is_here(known) else "absent"
        table.add_row(known.name, megabytes(known.size), state, known.licence, known.note)
    results().print(table)
    note(f"kept in {weights.cache_folder()}")


@app.command()
def pull(
    names: Names,
    verify: Annotated[bool, Option("--verify", help="Read a file that is here again and check it.")] = False,
) -> None:
    """Fetch models into the cache folder, once; an interrupted pull goes on where it stopped."""
    for name in names:
        fetch(name, verify=verify)


def fetch(name: str, *, verify: bool = False) -> None:
    """Pull one model, with its licence and a progress bar on standard error."""
    from rlm_loop.models import weights
    from rlm_loop.models.catalog import find

    known = find(name)
    if known is not None:
        about = f"{known.name}: {known.note}; {megabytes(known.size)}, licence {known.licence}"
        note(about)
    with progress_bar(name) as tell:
        file = weights.pull(name, progress=tell, verify=verify)
    note(f"{name} is ready: {file}")


@contextmanager
def progress_bar(name: str) -> Generator[Callable[[int, int, str], None]]:
    """A function to report progress to: a bar in a terminal, a line every tenth elsewhere."""
    console = notes()
    if not console.is_terminal:
        yield _lines(name)
        return
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console) as bar:
        task = bar.add_task(name, total=None)

        def tell(done: int, total: int, what: str) -> None:
            bar.update(task, completed=done, total=total, description=f"{name}: {what}")

        yield tell


def _lines(name: str) -> Callable[[int, int, str], None]:
    seen: set[int] = set()

    def tell(done: int, total: int, what: str) -> None:
        tenth = 10 * done // total if total else 0
        if tenth not in seen:
            seen.add(tenth)
            note(f"{name}: {megabytes(done)} of {megabytes(total)}, {what}")

    return tell


def megabytes(size: int) -> str:
    return f"{size / 1e6:,.0f} MB"

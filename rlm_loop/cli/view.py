"""`rlm-loop view`: a folder of runs, studies and sessions of the meter as pages, while they run."""

from __future__ import annotations

import contextlib
from typing import Annotated

from typer import Argument, Option

from rlm_loop.cli.setup import Misuse
from rlm_loop.cli.terminal import note

_PORT = 8766


def view(
    folder: Annotated[
        str, Argument(metavar="FOLDER", help="Of runs, studies or a meter, at any depth; or one trace file.")
    ] = ".",
    port: Annotated[
        int | None, Option(min=0, max=65535, help="Default 8766, or a free one where that is taken.")
    ] = None,
    opened: Annotated[bool, Option("--open", help="Open the page in the browser.")] = False,
) -> None:
    """Show a folder of runs as a table and a page for each, while they run.  Ctrl-C ends it.

    The pages are served on this machine alone and nothing is written.
    """
    from pathlib import Path
    from webbrowser import open as open_page

    from rlm_loop.cli.meter import until_interrupted
    from rlm_loop.report.view import viewing

    where = Path(folder)
    if not where.exists():
        raise Misuse(f"there is no folder {folder}; name one that a study, an agent or the meter writes to")
    if where.is_file() and not folder.endswith((".jsonl", ".jsonl.gz")):
        raise Misuse(f"{folder} is no trace; name the folder that it lies in ({where.parent})")
    with contextlib.ExitStack() as until_the_end:
        try:
            url = until_the_end.enter_context(viewing(where, port=_PORT if port is None else port))
        except OSError as error:
            if port is not None:
                reason = error.strerror or str(error)
                raise Misuse(f"cannot serve at port {port}: {reason}; choose another with --port") from error
            url = until_the_end.enter_context(viewing(where))
        note(f"{folder} is shown at {url} (Ctrl-C ends it)")
        if opened:
            open_page(url)
        until_interrupted()

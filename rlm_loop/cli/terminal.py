"""What the command line prints: to a terminal nothing that would steer it, to a file or a pipe the text as it is.

What models, servers and files of others say ends up here.  An escape sequence in it could set the clipboard (OSC 52),
the title, or rewrite the lines above; a bidirectional control shows code in another order than it runs in.
"""

from __future__ import annotations

import os
import shutil
import sys
from typing import TYPE_CHECKING, Any

from rlm_loop.report.notebook.formatting import harmless
from rlm_loop.report.tables.fitting import folded

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderResult


def echo(text: object = "", *, err: bool = False) -> None:
    """Print a line of the result, or (`err`) a note."""
    stream = sys.stderr if err else sys.stdout
    print(harmless(str(text)) if stream.isatty() else text, file=stream, flush=True)


def note(text: object) -> None:
    """Print a line that is not the result: to standard error, so that the result can be piped."""
    echo(fitting(text, err=True), err=True)


def fitting(text: object, *, err: bool = False) -> str:
    """A text in lines that fit the terminal; as it is where nothing says how wide that is."""
    width = room(err=err)
    return str(text) if width is None else folded(str(text), width)


def room(*, err: bool = False) -> int | None:
    """The characters of a line: what `COLUMNS` says, else the terminal; `None` for a pipe or a file."""
    said = os.environ.get("COLUMNS", "")
    if said.isdecimal() and int(said):
        return int(said)
    return shutil.get_terminal_size().columns if (sys.stderr if err else sys.stdout).isatty() else None


def notes() -> Console:
    """For panels, colours and progress that are not the result, see `note`."""
    return _console(stderr=True)


def results() -> Console:
    """For tables that are the result of a command."""
    return _console()


def _console(**options: Any) -> Console:
    from rich.console import Console, RenderHook
    from rich.segment import Segment

    class Filtered:
        """A renderable whose texts steer nothing; what Rich itself adds is kept."""

        def __init__(self, inner: ConsoleRenderable) -> None:
            self.inner = inner

        def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
            for segment in console.render(self.inner, options):
                yield segment if segment.control else Segment(harmless(segment.text), segment.style)

    class Hook(RenderHook):
        def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
            return list[Any](map(Filtered, renderables))

    console = Console(highlight=False, soft_wrap=False, **options)
    if console.is_terminal:
        console.push_render_hook(Hook())
    return console

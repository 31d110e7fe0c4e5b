"""The workspace of `rlm-loop run`: open it, check the allowed tools, and write its patch."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from rlm_loop.cli.setup import Misuse
from rlm_loop.cli.terminal import note

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from rlm_loop.tools import Tool
    from rlm_loop.workspace import Workspace


@contextlib.contextmanager
def opened(source: str | None, patch: str | None) -> Generator[Workspace | None]:
    """A workspace of the source, closed at the end."""
    if source is None:
        if patch is not None:
            raise Misuse("--patch is for what changes in a workspace; name it: --workspace FOLDER")
        yield None
        return
    from rlm_loop.workspace import Workspace, WorkspaceError

    try:
        space = Workspace(source)
    except WorkspaceError as error:
        raise Misuse(str(error)) from error
    with space:
        yield space


def allowed(names: list[str] | None, tools: Sequence[Tool], space: Workspace | None) -> tuple[str, ...] | None:
    """The names of the allowed tools.  Raises `Misuse` for an unknown tool."""
    if names is None:
        return None
    from rlm_loop.errors import nearest
    from rlm_loop.tools.function import as_tool

    wanted = tuple(name.strip() for each in names for name in each.split(",") if name.strip())
    known = [
        *(as_tool(t).name for t in (*tools, *(space.tools() if space is not None else ()))),
        "llm_query",
        "llm_query_batched",
    ]
    for name in wanted:
        if name not in known:
            hint = "" if space is not None else " (those for files come with --workspace)"
            raise Misuse(f"there is no tool {name!r}{nearest(name, known)}; tools are {', '.join(known)}{hint}")
    return wanted


def hand_over(diff: str, path: str | None, *, tell: bool) -> None:
    """Report the size of the patch, and write it to `path` if one is given."""
    if path is not None:
        Path(path).write_text(diff, encoding="utf-8", errors="surrogateescape")
    if tell:
        lines = diff.count("\n")
        kept = f"in {path}" if path is not None else "--patch FILE keeps it"
        said = f"the patch has {lines} lines ({kept}); your copy is unchanged" if diff else "nothing was changed"
        note(said)

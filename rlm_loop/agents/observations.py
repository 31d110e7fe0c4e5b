"""What came of an action: what the model is shown of it, and which files it changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from rlm_loop.actions import Failure, FailureKind, Observation
from rlm_loop.repl.base import CellResult
from rlm_loop.repl.text import RECORD_CAP, clip, clip_again
from rlm_loop.workspace import Workspace, WorkspaceError

PENDING = "final_answer was set, but the cell failed: set it again to confirm it."


def failed_action(kind: FailureKind, message: str) -> Observation:
    """An action that came to nothing; the model reads the message."""
    return Observation(message, Failure(kind, message), "error")


def cell_observation(cell: CellResult, cap: int) -> Observation:
    """What a cell printed, and below it what went wrong; of an answer that it set, see the environment."""
    below = [cell.message] if cell.error not in (None, "runtime") else []
    below += [PENDING] if cell.pending is not None else []
    more, _ = clip("\n".join(below), cap // 2)
    text, cut = clip_again(cell.output, cap - len(more) - (1 if more else 0), cell.characters)
    seen = Observation(
        "\n".join(filter(None, [text, more])),
        None,
        "repl_output",
        seconds=cell.seconds,
        truncated=cell.truncated or cut,
        displays=cell.displays,
        full=cell.full or (cell.output if cut else ""),
        effects=cell.effects,
    )
    return (
        seen if cell.error is None else replace(seen, failure=Failure(cell.error, cell.message), pending=cell.pending)
    )


def bounded(seen: Observation, cap: int) -> Observation:
    """The observation with no more characters than the cap, whatever it is made of."""
    text, cut = clip_again(seen.text, cap)
    return replace(seen, text=text, truncated=True, full=seen.full or clip(seen.text, RECORD_CAP)[0]) if cut else seen


_MOST = 1000  # names told of one look: a trace stays small also where a cell unpacks an archive


class Effects:
    """Calling it tells what changed in the workspace since the last call (at first: since `begin`).

    `added`, `changed` and `removed` are names, `hashes` git's hash of each one's contents before and after (empty: no
    such file), `tree` git's id of all files now.  Beyond 1000 names `left_out` counts the rest.  No change is an empty
    mapping; where git cannot look (the folder was removed), `unknown` says why.  `keep` is told the tree and the patch
    of every state, once each; `patch` is that of the latest.
    """

    def __init__(self, workspace: Workspace, keep: Callable[[str, str], None] | None = None) -> None:
        self._workspace, self._keep = workspace, keep
        self._seen, self._begun = "", False
        self._trees: set[str] = set()
        self.patch = ""

    def begin(self) -> None:
        """Look for the first time, where nobody has."""
        if not self._begun:
            self._begun = True
            self()

    def __call__(self) -> Mapping[str, Any]:
        before = self._seen
        if not self._begun:
            return {}
        try:
            now = self._seen = self._workspace.snapshot()
            if not before or now == before:
                return {}
            hashes = self._workspace.hashes_between(before, now)
        except (WorkspaceError, OSError) as error:
            return {"unknown": str(error)}
        if self._keep is not None:
            self.patch = self._workspace.diff(until=now)
            if now not in self._trees:
                self._trees.add(now)
                self._keep(now, self.patch)
        names = list(hashes)[:_MOST]
        kinds = {"added": (True, False), "changed": (False, False), "removed": (False, True)}
        found: dict[str, Any] = {
            kind: [n for n in names if (not hashes[n][0], not hashes[n][1]) == which] for kind, which in kinds.items()
        }
        found |= {"hashes": {n: list(hashes[n]) for n in names}, "tree": now}
        return found if len(names) == len(hashes) else {**found, "left_out": len(hashes) - len(names)}

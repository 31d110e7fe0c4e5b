"""Observations of an action: the model's view of its result, and the files that it changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rlm_loop.actions import Failure, FailureKind, Observation
from rlm_loop.agents.meter import Meter
from rlm_loop.repl.base import CellResult
from rlm_loop.repl.text import RECORD_CAP, clip, clip_again
from rlm_loop.workspace import Workspace, WorkspaceError

PENDING = "final_answer was set, but the cell failed: set it again to confirm it."


def failed_action(kind: FailureKind, message: str) -> Observation:
    """An action that came to nothing; the model reads the message."""
    return Observation(message, Failure(kind, message), "error")


def cell_observation(cell: CellResult, cap: int) -> Observation:
    """Join what a cell printed, and below it what went wrong; the environment takes an answer that it set."""
    below = [cell.message] if cell.error not in (None, "runtime") else []
    below += [PENDING] if cell.pending is not None else []
    more, _ = clip("\n".join(below), cap // 2)
    shorten = clip_again if cell.truncated else clip  # what looks like a mark may be the cell's own
    text, cut = shorten(cell.output, cap - len(more) - (1 if more else 0))
    return Observation(
        "\n".join(filter(None, [text, more])),
        None if cell.error is None else Failure(cell.error, cell.message),
        "repl_output",
        pending=None if cell.error is None else cell.pending,
        seconds=cell.seconds,
        truncated=cell.truncated or cut,
        displays=cell.displays,
        full=cell.full or (cell.output if cut else ""),
        effects=cell.effects,
    )


def bounded(seen: Observation, cap: int) -> Observation:
    """The observation with no more characters than the cap, whatever it is made of."""
    text, cut = clip_again(seen.text, cap)
    return replace(seen, text=text, truncated=True, full=seen.full or clip(seen.text, RECORD_CAP)[0]) if cut else seen


_MOST = 1000  # names told of one look: a trace stays small also where a cell unpacks an archive


class Effects:
    """Calling it tells what changed in the workspace since the last call.

    `added`, `changed` and `removed` are names, `hashes` git's hash of each one's contents before and after (empty: no
    such file), `tree` git's id of all files now.  Beyond 1000 names `left_out` counts the rest.  No change is an empty
    mapping; where git cannot look (the folder was removed), `unknown` says why.  The tree and the patch of every state
    are recorded once each; `patch` is that of the latest.
    """

    def __init__(self, workspace: Workspace, record: Meter) -> None:
        self._workspace, self._record = workspace, record
        self._seen = workspace.snapshot()  # the latest tree
        self._trees: set[str] = set()
        self.patch = ""

    def __call__(self) -> Mapping[str, Any]:
        try:
            before, self._seen = self._seen, self._workspace.snapshot()
            now = self._seen
            if now == before:
                return {}
            hashes = self._workspace.hashes_between(before, now)
        except (WorkspaceError, OSError) as error:
            return {"unknown": str(error)}
        self.patch = self._workspace.diff(until=now)
        if now not in self._trees:
            self._trees.add(now)
            self._record.trace.patch(now, self.patch, **self._record.where)
        found: dict[str, Any] = {"added": [], "changed": [], "removed": [], "hashes": {}, "tree": now}
        for name, (old, new) in list(hashes.items())[:_MOST]:
            found["added" if not old else "changed" if new else "removed"].append(name)
            found["hashes"][name] = [old, new]
        return found if len(hashes) <= _MOST else {**found, "left_out": len(hashes) - _MOST}

"""Which files changed: observed between two looks at a workspace, never declared by a tool."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rlm_loop.workspace import Workspace, WorkspaceError

_MOST = 1000  # names told of one look: a trace stays small also where a cell unpacks an archive


class Effects:
    """Calling it tells what changed in the workspace since the last call (at first: since it was made).

    `added`, `changed` and `removed` are names, `hashes` git's hash of each one's contents before and after (empty: no
    such file), `tree` git's id of all files now.  Beyond 1000 names `left_out` counts the rest.  No change is an empty
    mapping; where git cannot look (the folder was removed), `unknown` says why.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._seen = ""
        self()

    def __call__(self) -> Mapping[str, Any]:
        before = self._seen
        try:
            now = self._seen = self._workspace.snapshot()
            if not before or now == before:
                return {}
            hashes = self._workspace.hashes_between(before, now)
        except (WorkspaceError, OSError) as error:
            return {"unknown": str(error)}
        names = list(hashes)[:_MOST]
        kinds = {"added": (True, False), "changed": (False, False), "removed": (False, True)}
        found: dict[str, Any] = {
            kind: [n for n in names if (not hashes[n][0], not hashes[n][1]) == which] for kind, which in kinds.items()
        }
        found |= {"hashes": {n: list(hashes[n]) for n in names}, "tree": now}
        return found if len(names) == len(hashes) else {**found, "left_out": len(hashes) - len(names)}

"""A throw-away git checkout of files from anywhere, and the patch of what came of it."""

from __future__ import annotations

from rlm_loop.workspace.checkout import Workspace
from rlm_loop.workspace.git import WorkspaceError

__all__ = ["Workspace", "WorkspaceError"]

"""A throw-away git checkout of files from anywhere, and the patch of what came of it."""

from __future__ import annotations

from rlm_loop.workspace.checkout import Workspace
from rlm_loop.workspace.git import WorkspaceError
from rlm_loop.workspace.patches import Patch
from rlm_loop.workspace.patterns import DROPPINGS, TEST_FILES

__all__ = ["DROPPINGS", "TEST_FILES", "Patch", "Workspace", "WorkspaceError"]

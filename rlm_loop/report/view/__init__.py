"""A folder of runs, studies and sessions of the meter as pages: a table of all episodes, and a page for each.

`viewing` serves them on this machine while they run.  The pages of runs are those of `report.run`.
"""

from __future__ import annotations

from rlm_loop.report.view.index import RunIndex
from rlm_loop.report.view.server import Viewer, viewing

__all__ = ["RunIndex", "Viewer", "viewing"]

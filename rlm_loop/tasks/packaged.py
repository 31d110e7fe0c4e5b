"""The data that comes with the package: questions, bugs, tables."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any


def packaged(name: str) -> Any:
    """Return the value in a JSON file of `tasks/data`."""
    return json.loads((files("rlm_loop.tasks") / "data" / name).read_text("utf-8"))

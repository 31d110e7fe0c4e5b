"""The data that comes with the package: questions, bugs, tables."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def packaged(name: str) -> Any:
    """Return the value in a JSON file of `tasks/data`, plain or packed with xz; it is shared, so do not change it."""
    data = (files("rlm_loop.tasks") / "data" / name).read_bytes()
    if name.endswith(".xz"):
        import lzma  # which some builds of Python lack

        data = lzma.decompress(data)
    return json.loads(data)

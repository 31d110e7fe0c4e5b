"""What other frameworks say around a task, byte for byte: `TEXTS` by name, and the `SOURCES` that they are quoted from.

Both are read from `peer_texts.json`.  `{...}` in a text is what the framework itself fills in.
`tests/dialects/peer_texts.json` holds the same texts as quoted from the packages, with the SHA-256 of each file; a test
compares the two.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any


@dataclass(frozen=True)
class Source:
    """Where a text is from: `file` is the path in the package as it is installed."""

    package: str
    version: str
    file: str

    def __str__(self) -> str:
        return f"{self.package} {self.version}, {self.file}"


_DATA: Mapping[str, Any] = json.loads((files("rlm_loop.dialects") / "peer_texts.json").read_text("utf-8"))

SOURCES: Mapping[str, Source] = {name: Source(**where) for name, where in _DATA["sources"].items()}
TEXTS: Mapping[str, str] = _DATA["texts"]

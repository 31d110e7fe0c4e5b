"""Rows in a file of JSON lines."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from contenders import CONTENDERS


def rows_of(path: Path) -> list[dict[str, Any]]:
    """All rows; none where there is no file."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]


def keep(path: Path, row: Mapping[str, Any]) -> None:
    """Put a framework's row in the place of its earlier one, in the order of the contenders."""
    order = {one.name: number for number, one in enumerate(CONTENDERS)}
    rows = {one["peer"]: one for one in rows_of(path)} | {row["peer"]: dict(row)}
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(rows[name]) for name in sorted(rows, key=lambda name: order.get(name, len(order)))]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def append(path: Path, row: Mapping[str, Any]) -> None:
    """Add a row."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(dict(row)) + "\n")

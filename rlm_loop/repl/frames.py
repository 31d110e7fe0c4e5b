"""Frames as bytes: JSON objects with a type, one a line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

_LONGEST = 1 << 30  # characters of a frame; a worker that sends more is out of its mind
_encode = json.JSONEncoder(separators=(",", ":")).encode  # made once, not for every frame
_parse = json.JSONDecoder().raw_decode

OF_SUPERVISOR = ("died", "out")
"""What only a supervisor may say; from a REPL it is forged by a cell."""


def dumps(frame: Mapping[str, Any]) -> bytes:
    """A frame without the line break that ends it."""
    return _encode(frame).encode()


class FrameReader:
    """Frames out of one stream.  They are checked for form only, and junk between them is passed over."""

    def __init__(self) -> None:
        self._partial: list[bytes] = []

    def take(self, data: bytes) -> list[tuple[bytes, dict[str, Any]]]:
        """The lines that are whole now, and the frames in them."""
        *lines, rest = data.split(b"\n")
        found: list[tuple[bytes, dict[str, Any]]] = []
        if lines and self._partial:
            lines[0] = b"".join(self._partial) + lines[0]
            self._partial.clear()
        if rest:
            self._partial.append(rest)
            if len(self._partial) % 1024 == 0 and sum(map(len, self._partial)) > _LONGEST:
                self._partial.clear()
        for line in lines:
            if not line:
                continue
            try:
                text = line.decode()
                frame: Any
                frame, end = _parse(text, line[:1] == b" ")
            except (ValueError, RecursionError):
                continue  # junk that a cell wrote to our descriptor
            if end == len(text) and isinstance(frame, dict) and "t" in frame:
                found.append((line, cast("dict[str, Any]", frame)))
        return found

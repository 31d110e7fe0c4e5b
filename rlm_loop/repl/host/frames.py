"""Frames as bytes: JSON objects with a type, one a line."""

from __future__ import annotations

import json
from typing import Any, cast

from rlm_loop.repl.host.incoming import LONGEST, SHORT, OutOfBounds, check

_parse = json.JSONDecoder().raw_decode


class FrameReader:
    """Frames out of one stream.  They are checked for form only, and junk between them is passed over.

    `refused` says what came that is out of bounds (see `incoming`): its sender is not to be heard any longer.
    """

    def __init__(self) -> None:
        self._partial: list[bytes] = []
        self._held = 0
        self.refused = ""

    def take(self, data: bytes) -> list[dict[str, Any]]:
        """Return the frames of the lines that are complete now."""
        *lines, rest = data.split(b"\n")
        frames: list[dict[str, Any]] = []
        if lines and self._partial:
            lines[0] = b"".join(self._partial) + lines[0]
            self._partial.clear()
            self._held = 0
        if rest and self._held <= LONGEST:  # else only the end of the line is waited for
            self._partial.append(rest)
            self._held += len(rest)
            if self._held > LONGEST:
                self.refused = f"a message of more than {LONGEST:,} bytes"
        for line in lines:
            if not line:
                continue
            try:
                if len(line) > SHORT:
                    check(line)
                text = line.decode()
                frame: Any
                frame, end = _parse(text)
            except OutOfBounds as error:
                self.refused = str(error)
                continue
            except (ValueError, RecursionError):
                continue  # junk that a cell wrote to our descriptor
            if end == len(text) and isinstance(frame, dict) and isinstance(frame.get("t"), str):
                frame["size"] = len(line)
                frames.append(cast("dict[str, Any]", frame))
        return frames

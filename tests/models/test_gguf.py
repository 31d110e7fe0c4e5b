from __future__ import annotations

import struct
from pathlib import Path

import pytest

from rlm_loop.models.gguf import fault


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value)) + value.encode()


def gguf(*, version: int = 3, alignment: int | None = None, values: int = 64, data: int | None = None) -> bytes:
    """A GGUF file with one metadata pair of each shape and one F32 tensor of so many values."""
    pairs = [
        text("general.name") + struct.pack("<I", 8) + text("tiny"),
        text("n") + struct.pack("<IQ", 10, 7),
        text("list") + struct.pack("<IIQ", 9, 8, 2) + text("a") + text("b"),
        text("nested") + struct.pack("<IIQIQ", 9, 9, 1, 4, 1) + struct.pack("<I", 5),
    ]
    if alignment is not None:
        pairs.append(text("general.alignment") + struct.pack("<II", 4, alignment))
    head = b"GGUF" + struct.pack("<IQQ", version, 1, len(pairs)) + b"".join(pairs)
    head += text("weight") + struct.pack("<IQIQ", 1, values, 0, 0)
    head += bytes(-len(head) % (alignment or 32))
    return head + bytes(values * 4 if data is None else data)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (gguf(), None),
        (gguf(version=2), None),
        (gguf(alignment=256), None),
        (gguf(data=255), "cut off: "),
        (gguf(alignment=256, data=0), "cut off: "),
        (gguf()[:90], "header"),
        (gguf()[:10], "header"),
        (b"GGUF", "header"),
        (b"GGUF" + b"\xff" * 2000, "version"),
        (b"GGUF" + struct.pack("<IQQ", 3, 1, 1) + b"\xff" * 2000, "header"),
        (b"", "not a GGUF"),
        (b"PK\x03\x04", "not a GGUF"),
        (b"<html>404</html>", "not a GGUF"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, content: bytes, says: str | None) -> None:
    file = tmp_path / "model.gguf"
    file.write_bytes(content)
    found = fault(file)
    assert found is None if says is None else says in (found or "")

"""A quick look at a GGUF file: is it one, and is all of it there?

llama.cpp answers a damaged file with no more than "failed", so the header is read first.  The format:
https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import BinaryIO

_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
_STRING, _ARRAY = 8, 9
#: Values a block and bytes a block, by tensor type; types that are not here are only checked by their offset.
_BLOCKS = {
    0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34), 10: (256, 84),
    11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210), 20: (32, 18), 23: (256, 136), 30: (1, 2),
}  # fmt: skip


def fault(file: Path) -> str | None:
    """What is wrong with the file in a few words, or `None` if its header is sound and its tensors are all there."""
    size = file.stat().st_size
    try:
        with file.open("rb") as stream:
            if stream.read(4) != b"GGUF":
                return "it is not a GGUF file"
            version, tensors, pairs = struct.unpack("<IQQ", _read(stream, 20))
            if version not in (2, 3):
                return f"its GGUF version is {version}, known are 2 and 3"
            alignment = 32
            for _ in range(pairs):
                key = _string(stream, size)
                kind = _number(stream, "<I")
                if key == b"general.alignment" and kind == 4:
                    alignment = _number(stream, "<I") or 32
                else:
                    _skip(stream, kind, size)
            end = 0
            for _ in range(tensors):
                _string(stream, size)
                shape = [_number(stream, "<Q") for _ in range(_number(stream, "<I"))]
                kind, offset = _number(stream, "<I"), _number(stream, "<Q")
                values, width = _BLOCKS.get(kind, (1, 0))
                count = 1
                for length in shape:
                    count *= length
                end = max(end, offset + count // values * width)
            start = -(-stream.tell() // alignment) * alignment
    except (EOFError, struct.error, OverflowError):
        return "its header is cut off or damaged"
    if start + end > size:
        return f"it is cut off: {size:,} of {start + end:,} bytes are there"
    return None


def _read(stream: BinaryIO, count: int) -> bytes:
    data = stream.read(count)
    if len(data) != count:
        raise EOFError
    return data


def _number(stream: BinaryIO, form: str) -> int:
    return struct.unpack(form, _read(stream, struct.calcsize(form)))[0]


def _string(stream: BinaryIO, limit: int) -> bytes:
    length = _number(stream, "<Q")
    if length > limit:
        raise EOFError
    return _read(stream, length)


def _skip(stream: BinaryIO, kind: int, limit: int) -> None:
    if kind == _STRING:
        _string(stream, limit)
    elif kind == _ARRAY:
        inner, count = _number(stream, "<I"), _number(stream, "<Q")
        if count > limit:
            raise EOFError
        if inner in _SIZES:
            stream.seek(_SIZES[inner] * count, 1)
        else:
            for _ in range(count):
                _skip(stream, inner, limit)
    elif kind in _SIZES:
        stream.seek(_SIZES[kind], 1)
    else:
        raise EOFError

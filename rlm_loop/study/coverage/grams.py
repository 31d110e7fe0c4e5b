"""Rolling hashes of every window of a text, vectorised.

Polynomial hashes by doubling: the hash of 2m characters is h(first m) * B**m + h(last m), so a window of any length
takes about 2 log2(length) passes over the text.  64 bits: for 10 million against 1 million windows the chance that
two different ones collide anywhere is below one in a million.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Codes = npt.NDArray[np.uint32]
Hashes = npt.NDArray[np.uint64]

_BASE = 0x9E3779B97F4A7C15 | 1
_MIX = 0xBF58476D1CE4E5B9
_MASK = (1 << 64) - 1


def codes_of(text: str) -> Codes:
    """The code points of a text."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)


def windows(codes: Codes, size: int) -> Hashes:
    """The hash of every window of `size` code points; entry i belongs to the window that begins at i."""
    if len(codes) < size:
        return np.zeros(0, dtype=np.uint64)
    part = _mixed(codes)  # hashes of windows of `width`
    width, power = 1, _BASE  # power: B ** width
    whole, covered = None, 0
    left = size
    while True:
        if left & 1:
            whole, covered = (part, width) if whole is None else (_joined(whole, covered, part, power), covered + width)
        left >>= 1
        if not left:
            break
        part = _joined(part, width, part, power)
        width, power = 2 * width, power * power & _MASK
    assert whole is not None
    return whole[: len(codes) - size + 1]


def _joined(first: Hashes, length: int, second: Hashes, power: int) -> Hashes:
    """Hashes of windows made of one of `first` (`length` long) and the one of `second` that follows it."""
    count = len(second) - length
    with np.errstate(over="ignore"):
        return first[:count] * np.uint64(power) + second[length:]


def _mixed(codes: Codes) -> Hashes:
    """Code points spread over 64 bits, so that neighbouring letters have unlike hashes."""
    wide = codes.astype(np.uint64)
    with np.errstate(over="ignore"):
        wide += np.uint64(1)
        wide *= np.uint64(_BASE)
        wide ^= wide >> np.uint64(31)
        wide *= np.uint64(_MIX)
        wide ^= wide >> np.uint64(29)
    return wide

"""Names of 0.1 that still work: each says what it is called now."""

from __future__ import annotations

import warnings
from typing import TypeVar

T = TypeVar("T")


def old_name(then: str, now: str, value: T) -> T:
    """`value`, with a `DeprecationWarning` for whoever asked for it by its old name."""
    warnings.warn(f"{then} is {now}; the old name goes with 0.3", DeprecationWarning, stacklevel=3)
    return value

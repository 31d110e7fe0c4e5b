"""Settings as a short text: the fields that are not at their defaults."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any


def short_repr(value: Any) -> str:
    """Return the text of a dataclass, such as `LeanAgent(temperature=0.2)`; it is for its `__repr__`."""
    shown = list[str]()
    for field in fields(value):
        default = field.default if field.default_factory is MISSING else field.default_factory()
        now = getattr(value, field.name)
        if field.repr and (default is MISSING or type(now) is not type(default) or now != default):
            shown.append(f"{field.name}={now!r}")
    return f"{type(value).__name__}({', '.join(shown)})"

"""Drawings of values in a notebook, found without an import upward.

Values lie in rooms below the one that draws them, and imports go downward only.  So a value names what draws it, and
that is loaded when a front end asks.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


def drawing(name: str) -> Any:
    """The function or class of this full dotted name, such as one that makes HTML of a value."""
    module, _, attribute = name.rpartition(".")
    return getattr(import_module(module), attribute)

"""The modules of an experiment, imported as its commands import them, and gone afterwards."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

EXPERIMENTS = Path(__file__).parents[2] / "experiments"


@contextmanager
def modules(folder: Path, *names: str) -> Iterator[SimpleNamespace]:
    before = set(sys.modules)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        yield SimpleNamespace(**{name: importlib.import_module(name) for name in names})
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(folder)):
            del sys.modules[name]

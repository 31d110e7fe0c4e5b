"""Packages that only some tests need: looked for without being imported, imported by the first test that uses them."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest

#: For a pytest that a test starts: it loads none of our plugins, which take half of its time.
BARE = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


def needs(*packages: str, extra: str) -> pytest.MarkDecorator:
    """Skips where one of the packages is not installed."""
    missing = [p for p in packages if find_spec(p) is None]
    return pytest.mark.skipif(bool(missing), reason=f'needs {", ".join(missing)}: pip install -e ".[{extra}]"')


class Lazy:
    """A module that is imported when something of it is first asked for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("_", "pytest")):  # pytest looks at all that a module holds
            raise AttributeError(name)
        return getattr(import_module(self._name), name)

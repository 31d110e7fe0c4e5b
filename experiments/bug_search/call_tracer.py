"""A pytest plugin that notes which functions each test calls, so that a mutant is run with the tests that reach it.

It is loaded by name in the process of the tests and stands alone: standard library only.  `RLM_LOOP_CALLS` is the
file to write: JSON, test id (empty: while collecting) to pairs of file name and first line.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from types import CodeType, FrameType
from typing import Any

import pytest

_hook: Any = pytest.hookimpl


class Tracer:
    """Collects the code objects that are entered, under the id of the test that runs."""

    def __init__(self, root: str) -> None:
        self._root = root + os.sep
        self._calls: dict[str, set[CodeType]] = {"": set()}
        self._now = self._calls[""]

    def trace(self, frame: FrameType, _event: str, _argument: object) -> None:
        """For `sys.settrace`; nothing is returned, so that lines are not traced."""
        self._now.add(frame.f_code)

    def start(self, name: str) -> None:
        """What is called from now on belongs to this test."""
        self._now = self._calls.setdefault(name, set())

    def write(self, path: str) -> None:
        """Write the calls of functions that lie below the root."""
        told: dict[str, list[tuple[str, int]]] = {}
        for name, codes in self._calls.items():
            inside = [code for code in codes if code.co_filename.startswith(self._root)]
            told[name] = sorted({(code.co_filename[len(self._root) :], code.co_firstlineno) for code in inside})
        with open(path, "w", encoding="utf-8") as file:
            json.dump(told, file)


_tracer = Tracer(os.getcwd())


def pytest_configure() -> None:
    """Begin before anything of the package is imported."""
    threading.settrace(_tracer.trace)  # pyright: ignore[reportArgumentType]
    sys.settrace(_tracer.trace)  # pyright: ignore[reportArgumentType]


@_hook(hookwrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: Any) -> Any:
    """Set the test's id; tests that take the trace function away lose it for themselves only."""
    _tracer.start(item.nodeid)
    sys.settrace(_tracer.trace)  # pyright: ignore[reportArgumentType]
    yield
    _tracer.start("")


def pytest_sessionfinish() -> None:
    """Write what was seen."""
    sys.settrace(None)
    threading.settrace(None)  # pyright: ignore[reportArgumentType]
    _tracer.write(os.environ["RLM_LOOP_CALLS"])

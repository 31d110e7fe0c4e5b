"""Sessions for the tests, and at the end a look for what they may have left."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
from session_kinds import image as image
from suite.world import leaving_nothing

from rlm_loop.repl import PythonREPL


@pytest.fixture(scope="module")
def shared() -> Iterator[PythonREPL]:
    """One session for the tests of a module that do not mind each other's variables."""
    with PythonREPL(timeout=20) as repl:
        yield repl


@pytest.fixture
def repl() -> Iterator[PythonREPL]:
    with PythonREPL(timeout=20) as repl:
        yield repl


@pytest.fixture
def bare() -> Iterator[PythonREPL]:
    """One of which the processes can be seen and numbered from here."""
    with PythonREPL(launcher="plain") as repl:
        yield repl


@pytest.fixture(scope="session", autouse=True)
def nothing_is_left() -> Iterator[None]:
    """After all tests of sessions no process is left that works in a folder of theirs, or that this one started."""
    if not sys.platform.startswith("linux"):
        yield
        return
    with leaving_nothing("rs-"):  # short: sockets with long paths cannot be made
        yield

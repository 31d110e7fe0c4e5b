from __future__ import annotations

from collections.abc import Iterator

import pytest

from rlm_loop.repl import PythonREPL


@pytest.fixture(scope="module")
def shared() -> Iterator[PythonREPL]:
    """One session for the tests of a module that do not mind each other's variables."""
    with PythonREPL(timeout=20) as repl:
        yield repl


@pytest.fixture
def repl() -> Iterator[PythonREPL]:
    """A session of the test's own."""
    with PythonREPL(timeout=20) as repl:
        yield repl

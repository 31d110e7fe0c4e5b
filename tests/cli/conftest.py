"""A command line with a scripted model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rlm_loop.cli.main import main
from rlm_loop.models import ScriptedModel


@pytest.fixture
def line(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Runs a command line; gives exit code, standard output and standard error.

    The model has these replies, or is `model` itself, or the one that is `named` on the line.
    """

    def run(*argv: object, replies: Any = (), model: Any = None, named: bool = False) -> tuple[int, str, str]:
        asked = model or ScriptedModel(replies, name="local:scripted")
        capsys.readouterr()
        code = main([str(word) for word in argv], models=None if named else lambda name, **_: asked)
        return (code, *capsys.readouterr())

    return run

"""A chat-completions server on the loopback, and the small local model where it is here."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from upstream import Upstream, upstream

from rlm_loop.models import LocalModel, ModelNotFound
from rlm_loop.models.weights import path


@pytest.fixture
def chat_server() -> Iterator[Upstream]:
    """It says what it is given by `say`."""
    with upstream() as server:
        server.url += "/v1"
        yield server


@pytest.fixture(scope="session")
def small() -> LocalModel:
    return _local("smollm2-135m")


@pytest.fixture
def small_file(small: LocalModel) -> Path:
    """The weights of the small model."""
    return path("smollm2-135m")


@pytest.fixture(scope="session")
def coder() -> LocalModel:
    """The default model, whose template takes native tools, from the user's cache.

    It is ten times as large as the small one, so its tests are asked for: RLM_LOOP_TEST_LOCAL=1.
    """
    if os.environ.get("RLM_LOOP_TEST_LOCAL") != "1":
        pytest.skip("tests of the 1.5B model are asked for with RLM_LOOP_TEST_LOCAL=1")
    return _local("local")


def _local(name: str) -> LocalModel:
    pytest.importorskip("xllamacpp", reason='the local model is not installed: pip install -e ".[local]"')
    try:
        path(name)
    except ModelNotFound as error:
        pytest.skip(str(error))
    # One thread: two would wait for each other at every layer on a machine that is busy with something else.
    return LocalModel(name, context_size=2048, threads=1 if name == "smollm2-135m" else None)

"""The server that hosts are forked from, and at the end a look for what the cases may have left."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from suite.hosts import preload
from suite.world import leaving_nothing


@pytest.fixture(scope="session", autouse=True)
def nothing_is_left() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(Path(__file__).parent), str(Path(__file__).parents[2])]))
        preload("ours")
        with leaving_nothing("robustness-suite-"):
            yield

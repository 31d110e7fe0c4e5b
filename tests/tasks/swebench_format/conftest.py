"""One small repository with a past for all tests in this folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_instances import Made, made_repository


@pytest.fixture(scope="session")
def repos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of clones with `local__calc` in it."""
    folder = tmp_path_factory.mktemp("repos")
    made_repository(folder / "local__calc")
    return folder


@pytest.fixture(scope="session")
def calc(repos: Path) -> Made:
    made = Made.__new__(Made)
    made.path, made.clock = repos / "local__calc", 1_700_000_000
    return made

"""One small repository with a past for all tests in this folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_instances import made_repository, row, write_rows


@pytest.fixture(scope="session")
def calc(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_repository(tmp_path_factory.mktemp("repos") / "local__calc")


@pytest.fixture(scope="session")
def repos(calc: Path) -> Path:
    """A folder of clones with `local__calc` in it."""
    return calc.parent


@pytest.fixture(scope="session")
def one(calc: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The name of a suite of one instance."""
    return f"swebench:{write_rows(tmp_path_factory.mktemp('one') / 'a.jsonl', row(calc))}"

"""A made package in a cache folder of its own, its bugs searched for once."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from made_package import Made, package, sdist

from experiments.bug_search.build import build
from rlm_loop.tasks.package_bugs.sdists import pull


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("made")
    pinned = package(sdist(folder))
    told: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RLM_LOOP_CACHE", str(folder / "cache"))
        pull(pinned, fetch=lambda _package, to: Path(shutil.copy(folder / "lengths-1.0.tar.gz", to)))
        manifest = build([pinned], 2, folder / "state", tell=told.append)
    return Made(pinned, manifest, told, folder / "state")


@pytest.fixture
def made(built: Made, monkeypatch: pytest.MonkeyPatch) -> Made:
    monkeypatch.setenv("RLM_LOOP_CACHE", str(built.state.parent / "cache"))
    return built

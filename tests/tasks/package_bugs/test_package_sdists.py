"""Source distributions: fetched once, checked, and read without running anything of theirs."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from made_package import CODE, package, sdist

from rlm_loop.models.sources import FetchFailed
from rlm_loop.tasks.package_bugs.sdists import Package, PackageMissing, cached, pip_sdist, pull, source_files


class From:
    """Fetches from a folder, and counts."""

    def __init__(self, file: Path) -> None:
        self.file, self.count = file, 0

    def __call__(self, _package: Package, folder: Path) -> Path:
        self.count += 1
        if not self.file.exists():
            raise FetchFailed("no connection")
        return Path(shutil.copy(self.file, folder))


def test_a_package_is_fetched_once_and_again_when_damaged(tmp_path: Path) -> None:
    made = package(sdist(tmp_path))
    store, fetch = tmp_path / "store", From(tmp_path / "lengths-1.0.tar.gz")
    assert cached(made, store=store) is None
    file = pull(made, store=store, fetch=fetch)
    assert pull(made, store=store, fetch=fetch) == cached(made, store=store) == file
    assert fetch.count == 1
    file.write_bytes(b"torn")
    assert pull(made, store=store, fetch=fetch) == file
    assert fetch.count == 2
    assert [entry.name for entry in store.iterdir()] == ["lengths-1.0.tar.gz"]


def test_what_cannot_be_had_is_told_in_one_line(tmp_path: Path) -> None:
    made = package(sdist(tmp_path))
    with pytest.raises(PackageMissing, match=r"lengths==1\.0 is not on this machine \(no connection\); try again"):
        pull(made, store=tmp_path / "store", fetch=From(tmp_path / "nothing"))
    other = replace(made, sha256="0" * 64)
    with pytest.raises(PackageMissing, match="is not the file that was pinned"):
        pull(other, store=tmp_path / "store", fetch=From(tmp_path / "lengths-1.0.tar.gz"))
    (tmp_path / "file").touch()
    with pytest.raises(PackageMissing, match="set RLM_LOOP_CACHE"):
        pull(made, store=tmp_path / "file", fetch=From(tmp_path / "lengths-1.0.tar.gz"))


def test_pip_downloads_without_running_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package's setup.py ends with an error when it is run."""
    made = package(sdist(tmp_path))
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    assert pull(made, store=tmp_path / "store").read_bytes() == (tmp_path / "lengths-1.0.tar.gz").read_bytes()
    with pytest.raises(FetchFailed, match="pip could not download it: ERROR"):
        pip_sdist(replace(made, version="9"), tmp_path / "store")


def test_files_are_those_of_the_archive_without_its_top_folder_and_byte_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RLM_LOOP_CACHE", str(tmp_path / "cache"))
    made = package(sdist(tmp_path))
    pull(made, fetch=From(tmp_path / "lengths-1.0.tar.gz"))
    files = source_files(made)
    assert files["src/lengths/__init__.py"] == CODE.encode()
    tests = ["tests/test_lengths.py", "tests/test_speed.py"]
    assert sorted(files) == ["PKG-INFO", "setup.py", "src/lengths/__init__.py", *tests]
    files.clear()
    assert source_files(made)

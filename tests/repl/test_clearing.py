"""A folder that a cell or a command filled is removed, whatever it holds."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rlm_loop.repl.host.clearing import remove
from rlm_loop.repl.text import clip_again


def nest(folder: Path, levels: int) -> None:
    place = os.open(folder, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("d", dir_fd=place)
        inner = os.open("d", os.O_RDONLY, dir_fd=place)
        os.close(place)
        place = inner
    os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=place))
    os.close(place)


def test_folders_of_any_depth_are_removed(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    nest(tmp_path / "there", 1500)
    remove(tmp_path / "there")
    assert not (tmp_path / "there").exists()


def test_no_link_is_followed_and_closed_folders_are_opened(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "kept").touch()
    there = tmp_path / "there"
    (there / "closed" / "inner").mkdir(parents=True)
    (there / "closed" / "inner" / "file").touch()
    (there / "link").symlink_to(tmp_path / "mine")
    (there / ".removed-1-0").mkdir()
    os.mkfifo(there / "pipe")
    (there / "closed" / "inner").chmod(0)
    (there / "closed").chmod(0o500)
    remove(there)
    assert not there.exists()
    assert (tmp_path / "mine" / "kept").exists()


def test_what_is_not_there_or_no_folder_is_left(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path)
    for name in ("nothing", "file", "link"):
        remove(tmp_path / name)
    assert (tmp_path / "file").exists()


@pytest.mark.parametrize("number", ["9" * 5000, "٣", "12"])
def test_a_printed_look_alike_of_the_mark_is_text(number: str) -> None:
    text = f"{'a' * 60}\n... [{number} characters left out] ...\n{'b' * 60}"
    shown, cut = clip_again(text, 100)
    assert cut
    assert len(shown) <= 100

"""The words of identifiers, and file trees that keep to their size."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_loop.agents.localise import file_tree

FILES = ["setup.py", "pkg/a.py", "pkg/b.py", "pkg/sub/c.py", "docs/x.md", "docs/y.md", "docs/z.md"]


def test_a_small_tree_is_whole() -> None:
    assert file_tree(FILES) == ("docs/\n  x.md\n  y.md\n  z.md\npkg/\n  sub/\n    c.py\n  a.py\n  b.py\nsetup.py")


@pytest.mark.parametrize(
    ("most", "shown"),
    [
        (55, "docs/\n  x.md\n  y.md\n  z.md\npkg/ (3 files)\nsetup.py"),
        (41, "docs/ (3 files)\npkg/ (3 files)\nsetup.py"),
        (30, "docs/ (3 files)\n... 2 more"),
        (11, "... 3 more"),
        (3, ""),
    ],
)
def test_what_does_not_fit_is_counted(most: int, shown: str) -> None:
    assert file_tree(FILES, most) == shown


def test_a_folder_that_is_too_large_does_not_keep_others_closed() -> None:
    files = [*(f"data/{n}.csv" for n in range(50)), "pkg/a.py", "pkg/sub/b.py"]
    assert file_tree(files, 60) == "data/ (50 files)\npkg/\n  sub/\n    b.py\n  a.py"


NAMES = st.lists(
    st.lists(st.sampled_from(["a", "bb", "c.py", "d d"]), min_size=1, max_size=4).map("/".join), max_size=30
)


@given(NAMES, st.integers(0, 200))
def test_a_tree_never_exceeds_its_size_and_is_the_same_in_any_order(names: list[str], most: int) -> None:
    shown = file_tree(names, most)
    assert len(shown) <= most
    assert shown == file_tree(reversed(names), most)


@given(NAMES)
def test_with_room_every_file_is_there(names: list[str]) -> None:
    shown = file_tree(names, 100_000)
    assert "more" not in shown
    assert "file" not in shown
    assert len([line for line in shown.splitlines() if not line.endswith("/")]) == len(set(names))

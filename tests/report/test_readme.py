"""Results are put between the marks of their name, and nothing else is touched."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlm_loop.report import write_between


def test_text_is_put_between_its_marks(tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    frame = "a\n<!-- one: written by x.py -->\n{}<!-- end of one -->\nb\n"
    frame += "<!-- two: written by x.py -->\n2\n<!-- end of two -->\n"
    readme.write_text(frame.format("old\n"), "utf-8")
    for text in ("| new |", r"| \1 \g<2> |\n\n- and more"):  # as it is: no pattern's references
        write_between(readme, "one", text)
        assert readme.read_text("utf-8") == frame.format(f"\n{text}\n\n")


@pytest.mark.parametrize(
    "text",
    ["", "<!-- one: written by x -->\n", "<!-- end of one -->", "<!-- two: written by x -->\n<!-- end of two -->"],
)
def test_a_file_without_the_marks_is_left_alone(tmp_path: Path, text: str) -> None:
    readme = tmp_path / "README.md"
    readme.write_text(text, "utf-8")
    with pytest.raises(ValueError, match="no marks for 'one'"):
        write_between(readme, "one", "new")
    assert readme.read_text("utf-8") == text

"""Pages of a file, and what the tools say of themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlm_loop.tools import ToolError, ToolGateway
from rlm_loop.tools.code import CodeTools


def test_the_help_that_is_part_of_every_prompt(tmp_path: Path) -> None:
    """Word for word: a change of these lines is a change of every recorded prompt."""
    assert [t.signature for t in CodeTools(tmp_path).tools()] == [
        "search_code(query: str) -> str: Find lines that contain this text in the repository.",
        "read_file(path: str, start_line: int = 1, end_line: int = 0) -> str: "
        "Read numbered lines of a file; end_line 0 is its end.",
        "apply_edit(path: str, start_line: int, end_line: int, replacement: str) -> str: "
        "Replace lines start_line to end_line (inclusive) of a file.",
    ]


def test_further_tools_are_offered_on_request(tmp_path: Path) -> None:
    def run_tests(selector: str = "") -> str:
        """Run the tests."""
        return f"ran {selector}"

    (tmp_path / "a.py").write_text("")
    tools = CodeTools(tmp_path)
    tools.offer(run_tests)
    gate = ToolGateway(tools.tools())
    assert [t.name for t in gate.tools] == ["search_code", "read_file", "apply_edit", "run_tests"]
    assert gate.call("run_tests", {"selector": "x"}).text == "ran x"
    tools.offer(run_tests)
    with pytest.raises(ValueError, match="used more than once: run_tests"):
        ToolGateway(tools.tools())


@pytest.mark.parametrize("named", ["latin-1", "shift_jis", "punycode", "unicode_escape", "rot13"])
def test_a_coding_line_is_passed_over_and_bytes_survive(tmp_path: Path, named: str) -> None:
    data = f"# coding: {named}\n".encode() + b"x = '\xe9'\ny = 1\n"
    (tmp_path / "a.py").write_bytes(data)
    tools = CodeTools(tmp_path)
    with pytest.raises(ToolError, match=r"a\.py is latin-1, which has no"):
        tools.apply_edit("a.py", 3, 3, "y = '\U0001f600'")
    assert (tmp_path / "a.py").read_bytes() == data
    tools.apply_edit("a.py", 3, 3, "y = 2")
    assert (tmp_path / "a.py").read_bytes() == data.replace(b"1\n", b"2\n").replace(b"latin-2", b"latin-1")


def test_what_is_no_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotADirectoryError, match=r"root must be a folder, got '.*nowhere'"):
        CodeTools(f"{tmp_path}/nowhere")

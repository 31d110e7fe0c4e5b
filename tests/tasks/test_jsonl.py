"""A user's own tasks: what is read, and that every fault names its line and field."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_loop.tasks import Attempt, SuiteFileError, get_suite, read_suite

TASK = {"id": "a", "question": "How many?", "answer": 42}


def write(folder: Path, *lines: Any) -> Path:
    path = folder / "mine.jsonl"
    path.write_text("\n".join(x if isinstance(x, str) else json.dumps(x) for x in lines) + "\n", encoding="utf-8")
    return path


def test_all_fields(tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_text("naïve\ntext", encoding="utf-8")
    path = write(
        tmp_path,
        TASK,
        "",
        {"id": "b", "question": "q", "answer": 2.5, "match": "number", "tolerance": 0.1, "context": {"rows": [1]}},
        {"id": "c", "question": "q", "answer": "Oslo", "match": "contains", "context_path": "long.txt"},
        {"id": 4, "question": "q", "answer": ["x", "y"], "files": {"d/data.csv": "h\n1\n"}, "context": None},
        {"id": "e", "question": "q", "answer": "^a+$", "match": "regex"},
    )
    suite = read_suite(path)
    assert (suite.name, [t.id for t in suite]) == ("mine", ["a", "b", "c", "4", "e"])
    a, b, c, d, e = suite
    assert (a.question, b.context, c.context) == ("How many?", {"rows": [1]}, "naïve\ntext")
    assert d.files == {"d/data.csv": "h\n1\n"}
    assert "h\n1" in d.inline
    for task, right in zip(suite, ("42", 2.59, "It is Oslo.", "x, y", "aaa"), strict=True):
        assert task.score(Attempt(right)).resolved, task.id
    assert not e.score(Attempt("aab")).resolved
    assert get_suite(str(path)) == suite
    assert [t.id for t in get_suite(f"{path}/test")] == ["b", "4"]


def test_tasks_about_one_file_share_its_text(tmp_path: Path) -> None:
    (tmp_path / "large.txt").write_text("naïve line\n" * 100, "utf-8")
    line = {**TASK, "context_path": "large.txt"}
    first, second = read_suite(write(tmp_path, line, {**line, "id": "b"}))
    assert first.context is second.context


#: What is wrong in a line (of the fields of a task with another id, or the whole line), and what is said.
FAULTS: list[tuple[Any, str]] = [
    ('{"id": "b", "question": "q"}', "field 'answer': Field required"),
    ({"answer": None}, "field 'answer' must be given"),
    ({"anwser": 1, "hint": 2}, "field 'anwser': Extra .*; known are id, question, answer"),
    ({"id": "a"}, "id 'a' was used before"),
    ({"id": True}, "field 'id'"),
    ({"question": "  "}, "field 'question'"),
    ({"match": "fuzzy"}, "field 'match': Input should be 'exact', 'number'"),
    ({"answer": "(", "match": "regex"}, "not a regular expression"),
    ({"answer": {"x": 1}}, "cannot be compared"),
    ({"tolerance": "0.1"}, "field 'tolerance': Input should be a valid number"),
    ({"tolerance": -1}, "tolerance must be a number of at least 0"),
    ({"files": {"x": 1}}, "field 'files': Input should be a valid string"),
    *(({"files": {name: ""}}, f"field 'files': {name!r} is not a name inside") for name in ("../x", "/x", "")),
    ({"context": "x", "context_path": "y"}, "'context' and 'context_path' exclude each other"),
    ({"context_path": "nowhere.txt"}, "cannot read .*nowhere.txt"),
    ({"context_path": "."}, "cannot read"),
    ({"context_path": "bytes.bin"}, "bytes.bin is not UTF-8 text .byte 0"),
    ("{'id': 1}", "this is not JSON"),
    ("[1]", "this is a JSON list, not an object"),
    ("[" * 100_000, "this is not JSON"),
]


@pytest.mark.parametrize(("line", "says"), FAULTS, ids=[says for _, says in FAULTS])
def test_a_fault_names_line_and_field(tmp_path: Path, line: Any, says: str) -> None:
    (tmp_path / "bytes.bin").write_bytes(b"\xff\xfe\x00")
    path = write(tmp_path, TASK, "", line if isinstance(line, str) else {**TASK, "id": "b", **line})
    with pytest.raises(SuiteFileError, match=f"^{path}:3: .*{says}") as caught:
        read_suite(path)
    assert "\n" not in str(caught.value)


def test_a_file_without_tasks_or_of_bytes(tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_bytes(b'{"id": "\xe9"}')
    for path, says in (
        (write(tmp_path, "", "  "), "no task in it"),
        (tmp_path / "none.jsonl", r"cannot read .*none\.jsonl"),
        (tmp_path / "bad.jsonl", "not JSON .*utf-8"),
        (tmp_path, "cannot read"),
    ):
        with pytest.raises(SuiteFileError, match=says):
            read_suite(path)
    with pytest.raises(ValueError, match="takes no options, but got seed"):
        get_suite("x.jsonl", seed=1)


def test_a_byte_order_mark_and_windows_line_ends(tmp_path: Path) -> None:
    (tmp_path / "w.jsonl").write_bytes(b"\xef\xbb\xbf" + json.dumps(TASK).encode() + b"\r\n\r\n")
    assert len(read_suite(tmp_path / "w.jsonl")) == 1


values = st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists, max_leaves=4)


@given(st.dictionaries(st.sampled_from([*TASK, "context", "files", "match", "tolerance", "x"]), values))
def test_any_object_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, line: dict[str, Any]) -> None:
    path = tmp_path_factory.mktemp("any", numbered=True) / "any.jsonl"
    path.write_text(json.dumps(line))
    try:
        suite = read_suite(path)
    except SuiteFileError as error:
        said = str(error)
    else:
        said, _ = f"{path}:1: ", suite.tasks[0].score(Attempt(line.get("answer")))
    assert said.startswith(f"{path}:1: ")

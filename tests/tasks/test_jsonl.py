"""A user's own tasks: what is read, and that every fault names its line and field."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_loop.tasks import Attempt, Deferred, SuiteFileError, get_suite, read_suite

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
    assert a.question == "How many?"
    assert a.score(Attempt("42")).resolved
    assert b.context == {"rows": [1]}
    assert b.score(Attempt(2.59)).resolved
    assert c.context == "naïve\ntext"
    assert c.score(Attempt("It is Oslo.")).resolved
    assert d.files == {"d/data.csv": "h\n1\n"}
    assert "h\n1" in d.inline
    assert d.score(Attempt("x, y")).resolved
    assert e.score(Attempt("aaa")).resolved
    assert not e.score(Attempt("aab")).resolved
    assert get_suite(str(path)) == suite
    assert [t.id for t in get_suite(f"{path}/test")] == ["b", "4"]


def test_needles_and_a_large_file(tmp_path: Path) -> None:
    text = "naïve line\n" * 120_000
    (tmp_path / "large.txt").write_text(text, "utf-8")
    path = write(tmp_path, {**TASK, "context_path": "large.txt", "needles": [[0, 4], [10, 12]]})
    (task,) = read_suite(path)
    assert isinstance(task.context, Deferred)
    assert task.material() == text
    assert task.ranges() == ((0, 4), (10, 12))
    assert "large.txt, sha256 " in task.context.identify()
    (tmp_path / "large.txt").write_bytes(b"a" * (1 << 20) + b"\xff")
    with pytest.raises(SuiteFileError, match=r"mine.jsonl:1: field 'context_path'.* is not UTF-8"):
        read_suite(path)


FAULTS: list[tuple[Any, str]] = [
    ({**TASK, "id": "b", "context": "text", "needles": [[3, 2]]}, "field 'needles' is a list of .start, end."),
    ({**TASK, "id": "b", "context": "text", "needles": "3-4"}, "field 'needles' is a list of .start, end."),
    ({**TASK, "id": "b", "context": "text", "needles": [[0, True]]}, "field 'needles' is a list of .start, end."),
    ({"question": "q", "answer": 1}, "field 'id' is missing"),
    ({"id": "b", "answer": 1}, "field 'question' is missing"),
    ({"id": "b", "question": "q"}, "field 'answer' is missing"),
    ({"id": "b", "question": "q", "answer": None}, "field 'answer' is missing"),
    ({**TASK, "id": "b", "anwser": 1, "hint": 2}, "unknown fields 'anwser', 'hint'; known are id, question, answer"),
    (TASK, "id 'a' was used in line 1"),
    ({**TASK, "id": ""}, "field 'id' must be a text"),
    ({**TASK, "id": True}, "field 'id' must be a text"),
    ({**TASK, "id": "b", "question": 7}, "field 'question' must be a text"),
    ({**TASK, "id": "b", "question": "  "}, "field 'question' must be a text"),
    ({**TASK, "id": "b", "match": "fuzzy"}, "field 'match' is \"fuzzy\", but must be one of exact, number"),
    ({**TASK, "id": "b", "match": ["exact"]}, "field 'match'"),
    ({**TASK, "id": "b", "answer": "(", "match": "regex"}, "field 'answer': .* not a regular expression"),
    ({**TASK, "id": "b", "answer": "many", "match": "number"}, "field 'answer': .* cannot be compared as number"),
    ({**TASK, "id": "b", "answer": {"x": 1}}, "field 'answer': .* cannot be compared"),
    ({**TASK, "id": "b", "tolerance": "0.1"}, "field 'tolerance' must be a number"),
    ({**TASK, "id": "b", "tolerance": -1}, "field 'tolerance': tolerance must be a number of at least 0"),
    ({**TASK, "id": "b", "files": ["x"]}, "field 'files' must be an object"),
    ({**TASK, "id": "b", "files": {"x": 1}}, "field 'files': the content of 'x' must be text"),
    ({**TASK, "id": "b", "files": {"../x": ""}}, "field 'files': '../x' is not a name inside"),
    ({**TASK, "id": "b", "files": {"/x": ""}}, "field 'files': '/x' is not a name inside"),
    ({**TASK, "id": "b", "files": {"": ""}}, "field 'files': '' is not a name inside"),
    ({**TASK, "id": "b", "context": "x", "context_path": "y"}, "'context' and 'context_path' exclude each other"),
    ({**TASK, "id": "b", "context_path": "nowhere.txt"}, "field 'context_path': there is no file .*nowhere.txt"),
    ({**TASK, "id": "b", "context_path": "."}, "field 'context_path': cannot read"),
    ({**TASK, "id": "b", "context_path": "bytes.bin"}, "field 'context_path': .*bytes.bin is not UTF-8 text .byte 0"),
    ({**TASK, "id": "b", "context_path": 3}, "field 'context_path' must be a text"),
    ("{'id': 1}", "this is not JSON .column 2"),
    ("[1]", "this is a JSON list, not an object"),
    ("[" * 100_000, "nested too deeply"),
    ('{"id": "b", "id": "c"}', "field 'id' is given twice"),
]


@pytest.mark.parametrize(("line", "says"), FAULTS, ids=[says for _, says in FAULTS])
def test_a_fault_names_line_and_field(tmp_path: Path, line: Any, says: str) -> None:
    (tmp_path / "bytes.bin").write_bytes(b"\xff\xfe\x00")
    path = write(tmp_path, TASK, "", line)
    with pytest.raises(SuiteFileError, match=f"^{path}:3: .*{says}") as caught:
        read_suite(path)
    assert "\n" not in str(caught.value)


def test_a_file_without_tasks_or_of_bytes(tmp_path: Path) -> None:
    with pytest.raises(SuiteFileError, match="no task in it"):
        read_suite(write(tmp_path, "", "  "))
    with pytest.raises(SuiteFileError, match=r"there is no file .*none\.jsonl"):
        read_suite(tmp_path / "none.jsonl")
    (tmp_path / "bad.jsonl").write_bytes(b'{"id": "\xe9"}')
    with pytest.raises(SuiteFileError, match="not UTF-8"):
        read_suite(tmp_path / "bad.jsonl")
    with pytest.raises(SuiteFileError, match="cannot read"):
        read_suite(tmp_path)


def test_a_byte_order_mark_and_windows_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "w.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(TASK).encode() + b"\r\n\r\n")
    assert len(read_suite(path)) == 1


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

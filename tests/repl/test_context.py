"""What a model is told of a context, what a trace holds of it, and what an agent does with one on disk."""

from __future__ import annotations

import hashlib
import os
import re
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_loop import DirectAgent, ToolLoopAgent
from rlm_loop.models import ScriptedModel
from rlm_loop.repl import ContextError, ContextFile, PythonREPL, context_fingerprint, describe_context
from rlm_loop.repl.contexts.context import READ, ROOM, TOLD, inline_context
from rlm_loop.repl.contexts.on_disk import Fingerprint
from rlm_loop.traces.reader import read

LOG = "2024-01-02T10:00:00;failed;12.5\n"


class Odd:
    def __repr__(self) -> str:
        raise RuntimeError("no")


def frame() -> Any:
    return pytest.importorskip("pandas").DataFrame({"day": [1, 2], "a rather long name of a column": [3, 4]})


HEADER = "order_id,customer,city,product,category,quantity,unit_price,discount,shipped_at\n"
LINES = "first line\nsecond line\n" * 40
TOLD_OF: list[tuple[Any, str]] = [
    ("", "a str of 0 characters; it is empty"),
    ("a\nb\n" * 500, f"a str of 2,000 characters in 1,000 lines. {READ}; it starts with 'a\\nb\\n…"),
    (b"", "bytes of length 0; it is empty"),
    (b"\x89PNG", "bytes of length 4; it starts with b'\\x89PNG'"),
    ([], "a list of 0 items"),
    (["alpha", 2], "a list of 2 items; the first is 'alpha'"),
    ({}, "a dict of 0 entries"),
    ({"alpha": 1, 2: 3}, "a dict of 2 entries; keys: 'alpha', 2"),
    (12, "a int; it is 12"),
    (Odd(), "a Odd…"),
    # lines, keys and items are whole
    (LINES, f"a str of 920 characters in 80 lines. {READ}; it starts with {LINES[:23]!r}"),
    (f"{HEADER}1,Ada,Rome,chair\n" * 9, f"a str of 873 characters in 18 lines. {READ}; it starts with {HEADER!r}"),
    (f"{'very long ' * 90}\nb\n", f"a str of 903 characters in 2 lines. {READ}; it starts with 'very long very …"),
    ({f"key {i}": i for i in range(40)}, "a dict of 40 entries; keys: 'key 0', 'key 1', …, ..."),
]


@pytest.mark.parametrize(("context", "told"), TOLD_OF, ids=[repr(t)[:30] for _, t in TOLD_OF])
def test_what_is_told(context: Any, told: str) -> None:
    line = describe_context(context)
    begin, cut, end = told.partition("…")
    assert line.startswith(f"{TOLD} {begin}")
    assert line.endswith(end if cut else told)


def test_what_is_told_of_files_and_their_fingerprints(tmp_path: Path) -> None:
    (tmp_path / "text.log").write_text(LOG * 3, newline="")
    (tmp_path / "picture").write_bytes(b"\x89PNG\0" * 9)
    with (tmp_path / "huge.log").open("wb") as f:
        f.write(LOG.encode() * 4000)
        f.truncate(3_000_000_000)  # a hole: nothing on the disk
    text, picture, huge = (ContextFile(tmp_path / name) for name in ("text.log", "picture", "huge.log"))
    assert describe_context(text) == describe_context(LOG * 3)
    assert context_fingerprint(text) == context_fingerprint(LOG * 3)
    assert context_fingerprint(picture) == context_fingerprint(b"\x89PNG\0" * 9)
    assert " bytes of length 45; it starts with b'\\x89PNG" in describe_context(picture)
    assert " a str of 3,000,000,000 bytes in UTF-8; it starts with '2024-01" in describe_context(huge)


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None)) | st.binary(),
    lambda s: st.lists(s, max_size=3) | st.dictionaries(st.text() | st.integers(), s, max_size=9),
    max_leaves=6,
)


@given(plain)
def test_any_value_is_told_within_its_room_and_has_a_fingerprint(value: Any) -> None:
    told, found = describe_context(value), context_fingerprint(value)
    longer = isinstance(value, str) and len(value.splitlines()) > 1  # its first line may take more
    assert ("\n" in told, len(told) <= (2 * ROOM if longer else ROOM)) == (False, True)
    assert ((found is None) == (value is None), found) == (True, context_fingerprint(value))


def test_the_example_in_a_line_runs_as_the_first_cell() -> None:
    """A variable that the line made up was taken to exist: NameError in 14 of 40 runs of ReAct."""
    for context in ("a\nb\n" * 500, frame()):
        line = describe_context(context)
        example = re.split("such as |block of code with ", line)[1].partition(";")[0]
        with PythonREPL() as repl:
            repl.set("context", context, reserved=True)
            result = repl.run(example)
        assert result.error is None, line


WHOLE: list[Any] = ["a\r\n\ud800😀" * 500_000, b"\0\xff" * 900_000, [1, "é", None, [2]] * 100_000, ""]


@pytest.mark.parametrize("value", WHOLE, ids=[f"{type(v).__name__} of {len(v)}" for v in WHOLE])
def test_it_is_that_of_the_whole(value: Any) -> None:
    text = value if isinstance(value, str) else repr(value)
    raw = value if isinstance(value, bytes) else text.encode("utf-8", "surrogatepass")
    found = context_fingerprint(value)
    assert found == {"type": type(value).__name__, "bytes": len(raw), "sha256": hashlib.sha256(raw).hexdigest()}


def test_tables_with_other_contents_differ() -> None:
    table = frame()
    before = context_fingerprint(table)
    table.iloc[0, 0] = 5
    assert context_fingerprint(table) != before


def test_a_hash_that_fails_or_that_the_run_does_not_wait_for_is_said(tmp_path: Path) -> None:
    asked, released, events = threading.Event(), threading.Event(), list[dict[str, Any]]()

    class Slow:
        def __reduce__(self) -> Any:
            asked.set()
            assert released.wait(60)
            return str, ("made",)

    hashed = Fingerprint(Slow(), events.append)
    assert asked.wait(60)
    hashed.end(0)
    released.set()
    (tmp_path / "gone").write_text("a" * (2 << 20))
    gone = ContextFile(tmp_path / "gone")
    (tmp_path / "gone").unlink()
    hashed = Fingerprint(gone, events.append)
    hashed.end()
    assert [set(event) for event in events] == [{"type", "bytes", "error"}] * 2
    assert "No such file" in events[1]["error"]


def code(text: str) -> str:
    return f"```python\n{text}\n```"


@pytest.mark.parametrize("large", [False, True])
def test_an_agent_reads_a_file_and_its_trace_holds_hash_and_size(tmp_path: Path, large: bool) -> None:
    text = "intro\n" * (400_000 if large else 40) + "the secret is here\n"
    (tmp_path / "notes.txt").write_text(text, newline="")
    model = ScriptedModel([code("context = 'invented'"), code("final_answer = context.count('secret')")])
    trace = tmp_path / "t.jsonl"
    outcome = ToolLoopAgent(model=model).run("How many?", context=tmp_path / "notes.txt", trace=trace)
    assert outcome.answer == 1
    record = read(trace)
    assert "the secret" not in trace.read_text()
    (told,) = record.of("context") or [record.start["context"]]
    assert {k: told[k] for k in ("type", "bytes", "sha256")} == context_fingerprint(text)
    assert ("sha256" in record.start["context"]) is not large


def test_a_context_is_not_hashed_where_nothing_is_written() -> None:
    pickled: list[Any] = []
    data = type("Data", (), {"__reduce__": lambda self: pickled.append(self) or (str, ("made",))})
    DirectAgent(model=ScriptedModel(["7"])).run("Q?", context=data())
    assert pickled == []


@pytest.mark.parametrize("context", ["", [], {}, b""])
def test_an_empty_context_is_a_context(context: Any) -> None:
    model = ScriptedModel([code("final_answer = [type(context).__name__, len(context)]")])
    assert ToolLoopAgent(model=model).run("Q?", context=context).answer == [type(context).__name__, 0]
    assert TOLD in model.prompts[0].messages[-1].text


def test_a_path_that_cannot_be_used_is_said_before_the_run(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    os.mkfifo(tmp_path / "pipe")
    closed = tmp_path / "closed"
    closed.write_text("x")
    closed.chmod(0)
    wrong = {"missing": "No such file", "loop": "cannot be read", "pipe": "is no file", ".": "is no file"}
    if os.geteuid() != 0:
        wrong["closed"] = "Permission denied"
    for name, says in wrong.items():
        model = ScriptedModel([])
        with pytest.raises(ContextError, match=says) as raised:
            ToolLoopAgent(model=model).run("Q?", context=tmp_path / name)
        assert str(tmp_path / name) in (said := str(raised.value))
        assert ("\n" in said, model.prompts) == (False, [])


def test_a_strategy_without_a_repl_sees_head_and_tail(tmp_path: Path) -> None:
    text = "begin " + "ä1234567\n" * 40_000 + " end"
    (tmp_path / "long.txt").write_text(text, newline="")
    assert inline_context(ContextFile(tmp_path / "long.txt"), limit=9_000) == inline_context(text, limit=9_000)
    model = ScriptedModel(["7"])
    DirectAgent(model=model).run("How many?", context=tmp_path / "long.txt")
    assert " end" in model.prompts[0].messages[-1].text

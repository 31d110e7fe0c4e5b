"""Values go in exactly and come back equal; files are read where the cells run, behind every launcher."""

from __future__ import annotations

import datetime as dt
import json
import math
import sys
from collections import Counter, OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from session_kinds import KINDS, session

from rlm_loop.repl import ContextFile, EvaluationFailed, Hardened, PythonREPL, ReplError, Sandbox
from rlm_loop.repl.host.frames import IN_FRAME, check, decode, set_frame
from rlm_loop.repl.worker import NotExact, encode, load

# -- values

leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary(max_size=20)
    | st.dates()
    | st.datetimes(timezones=st.none() | st.just(dt.UTC))
)
hashable = st.recursive(leaves, lambda s: st.tuples(s, s) | st.frozensets(s, max_size=3), max_leaves=5)
values = st.recursive(
    hashable | st.sets(hashable, max_size=3),
    lambda s: (
        st.lists(s, max_size=3)
        | st.tuples(s)
        | st.dictionaries(hashable, s, max_size=3)
        | st.dictionaries(st.text(max_size=2), s)
    ),
    max_leaves=8,
)


@settings(max_examples=60)
@given(values)
def test_any_value_comes_back_equal_and_of_its_type(value: Any) -> None:
    line = json.dumps(encode(value)).encode()
    check(line)
    back = decode(json.loads(line))
    assert back == value
    assert type(back) is type(value)
    assert repr(back) == repr(value) or isinstance(value, (set, frozenset, dict, list, tuple))


def test_deep_nesting_is_refused() -> None:
    deep: list[Any] = []
    for _ in range(10_000):
        deep = [deep]
    with pytest.raises(NotExact):
        encode(deep)


EXACT: list[Any] = [
    "x" * (IN_FRAME + 1),
    "é\r\n\0\udfff😀" * 200_000,
    b"\r\n\x00\xff" * 300_000,
    "\r\n\0 small \ud800",
    [1, (2, {3})],
    Counter("aab"),
    OrderedDict(b=1, a=2),
    ["y" * IN_FRAME, {"k": b"z"}],
    Path("/tmp/x"),
    10**5000,
]


@pytest.mark.parametrize("value", EXACT, ids=[f"{i} {type(v).__name__}" for i, v in enumerate(EXACT)])
def test_set_copies_exactly(shared: PythonREPL, value: Any) -> None:
    shared.set("given", value)
    if isinstance(value, str):
        assert shared.get("given.encode('utf-8', 'surrogatepass')") == value.encode("utf-8", "surrogatepass")
    else:
        assert shared.get("type(given).__name__") == type(value).__name__
        assert shared.get("given") == (repr(value) if isinstance(value, Path) else value)


LARGE: dict[str, Any] = {
    "text": "é\r\n\0\ud800" * IN_FRAME,
    "bytes": b"\r\n\0\xff" * IN_FRAME,
    "numbers": [0] * IN_FRAME,
    "leaves": ["a" * 200, b"b", 1, 2.5, None, True] * 5_000,
    "pairs": dict.fromkeys(range(30000), "text" * 9),
    "records": [{"a": ["text" * 99]} for _ in range(3_000)],
    "nested": {"k": ["x" * 99] * 12_000},
}


@pytest.mark.parametrize("name", LARGE)
def test_what_is_large_goes_through_a_file_not_the_pipe(tmp_path: Path, name: str) -> None:
    frame = set_frame("context", LARGE[name], tmp_path / "value")
    assert len(json.dumps(frame)) < 500
    assert (tmp_path / "value").stat().st_size > 20_000
    assert load(frame) == LARGE[name]
    assert list(load(frame)) == list(LARGE[name])


def test_a_data_frame_goes_in(repl: PythonREPL) -> None:
    pd = pytest.importorskip("pandas")
    repl.set("df", pd.DataFrame({"a": [1, 2]}))
    assert repl.get("int(df['a'].sum())") == 3


def test_what_cannot_go_in_is_a_type_error(repl: PythonREPL) -> None:
    for value in (lambda: 1, _Local()):
        repl.run("1")
        with pytest.raises(TypeError, match="'thing'"):
            repl.set("thing", value)
    assert repl.run("1").output == "1"


class _Local:
    def __reduce__(self) -> Any:
        return (_only_here, ())


def _only_here() -> None: ...


_only_here.__module__ = "module_of_this_test_only"


@pytest.mark.parametrize("name", ["final_answer", "1x", "class", "a b", "__x__"])
def test_names_that_cannot_be_set(shared: PythonREPL, name: str) -> None:
    with pytest.raises(ValueError, match="not usable"):
        shared.set(name, 1)


def test_get_returns_values_or_reprs_and_raises_for_failures(shared: PythonREPL) -> None:
    shared.run("got = {'a': (1, 2)}")
    assert shared.get("got") == {"a": (1, 2)}
    assert shared.get("print") == "<built-in function print>"
    assert math.isnan(shared.get("float('nan')"))
    for code, reason in {
        "1/0": "division by zero",
        "nope": "NameError",
        "x = 1": "SyntaxError",
        "exit()": "SystemExit",
    }.items():
        with pytest.raises(EvaluationFailed, match=reason):
            shared.get(code)


def test_get_that_kills_the_repl(repl: PythonREPL) -> None:
    repl.run("kept = 1")
    with pytest.raises(EvaluationFailed, match="died"):
        repl.get("__import__('os')._exit(1)")
    assert repl.run("2").output == "2"


@settings(max_examples=30)
@given(st.text(max_size=50))
def test_any_text_goes_through_the_process_and_back(shared: PythonREPL, text: str) -> None:
    shared.set("text", text)
    assert shared.get("text") == text


# -- files

TEXT = "a\r\nb\rc\u2028ä😀\n" * 3


@pytest.fixture(params=[*KINDS, "hardened", "sandbox"])
def any_session(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    launcher: Any = {"hardened": Hardened(), "sandbox": Sandbox()}.get(request.param)
    if launcher is not None and (problem := launcher.problem(sys.executable)):
        pytest.skip(problem)
    options = {} if launcher is None else {"launcher": launcher}
    kind = "subprocess" if options else request.param
    with session(kind, tmp_path / "ipython", timeout=30, **options) as repl:
        yield repl


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "notes.txt"
    path.write_bytes(TEXT.encode())
    return path


def test_a_file_is_an_ordinary_str_and_is_restored(any_session: Any, file: Path) -> None:
    any_session.set("context", ContextFile(file), reserved=True)
    assert any_session.run("x = 1").error is None
    assert any_session.run("print(type(context).__name__, len(context))").output == f"str {len(TEXT)}\n"
    assert any_session.run("context = 'invented'").error is None
    assert any_session.get("context") == TEXT
    assert any_session.get("context[:3].encode()") == b"a\r\n"


def test_a_file_that_went_or_was_cut_is_said_and_the_session_goes_on(file: Path) -> None:
    with PythonREPL(launcher="plain") as repl:
        repl.set("context", ContextFile(file))
        file.unlink()
        with pytest.raises(ReplError, match=r"cannot set 'context'.*FileNotFoundError: .*notes\.txt"):
            repl.run("1")
        file.write_bytes(b"short")
        with pytest.raises(ReplError, match="was cut to 5 bytes"):
            repl.run("1")
        file.write_bytes(b"back again, and longer than it was before, by far: " * 9)
        assert repl.get("len(context)") == len(TEXT.encode())  # as large as it was when the run began


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (b"", ""),
        (b"\xef\xbb\xbfx", "\ufeffx"),
        (b"caf\xe9", b"caf\xe9"),
        (b"a\0b", b"a\0b"),
        (b"a line with one \0 in it", "a line with one \0 in it"),
        (b"x" * 65_536 + b"\0\xe9", "x" * 65_536 + "\0\udce9"),
        (b"x" + "ü".encode() * 40_000, "x" + "ü" * 40_000),
    ],
)
def test_what_a_file_becomes(tmp_path: Path, raw: bytes, value: Any) -> None:
    path = tmp_path / "f"
    path.write_bytes(raw)
    with PythonREPL() as repl:
        repl.set("context", ContextFile(path))
        assert repl.get("context.encode('utf-8', 'surrogateescape')" if isinstance(value, str) else "context") == raw
        assert repl.get("type(context).__name__") == type(value).__name__


def test_the_users_file_is_never_touched(file: Path) -> None:
    with PythonREPL() as repl:
        repl.set("kept", ContextFile(file), reserved=True)
        for value in (ContextFile(file), ContextFile(file), "x" * (IN_FRAME + 1), 1):
            repl.set("context", value)
            assert repl.run("context").error is None
        repl.run("import os; os._exit(1)")
        assert repl.get("kept") == TEXT
    assert file.read_bytes() == TEXT.encode()


def test_the_frame_of_a_file_holds_its_place_and_nothing_of_it(file: Path) -> None:
    frame = set_frame("context", ContextFile(file), file.parent / "unused")
    assert frame["source"] == str(file)
    assert "path" not in frame
    assert not (file.parent / "unused").exists()
    assert "\\u2028" not in json.dumps(frame)

"""Values go in exactly and come back equal; files are read where the cells run (isolated ones: test_isolated.py)."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections import Counter, OrderedDict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from session_kinds import KINDS, session

from rlm_loop.repl import ContextFile, EvaluationFailed, PythonREPL, ReplError
from rlm_loop.repl.host.frames import IN_FRAME, decode, within_bounds
from rlm_loop.repl.worker import encode

# -- values

single = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(max_size=20)
leaves = single | st.dates() | st.datetimes(timezones=st.none() | st.just(dt.UTC))
hashable = st.recursive(leaves, lambda s: st.tuples(s, s) | st.frozensets(s, max_size=3), max_leaves=5)


def nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    tables = st.dictionaries(hashable, inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner)
    return st.lists(inner, max_size=3) | st.tuples(inner) | tables


values = st.recursive(hashable | st.sets(hashable, max_size=3), nested, max_leaves=8)


@settings(max_examples=60)
@given(values)
def test_any_value_comes_back_equal_and_of_its_type(value: Any) -> None:
    line = json.dumps(encode(value)).encode()
    assert within_bounds(line)
    back = decode(json.loads(line))
    assert back == value
    assert type(back) is type(value)
    assert repr(back) == repr(value) or isinstance(value, (set, frozenset, dict, list, tuple))


EXACT: list[Any] = [
    "é\r\n\0\udfff😀" * 200_000,
    b"\r\n\x00\xff" * 300_000,
    "\r\n\0 small \ud800",
    Counter("aab"),
    OrderedDict(b=1, a=2),
    ["y" * IN_FRAME, {"k": b"z"}],
    Path("/tmp/x"),
    10**5000,
]


@pytest.mark.parametrize("value", EXACT, ids=[f"{i} {type(v).__name__}" for i, v in enumerate(EXACT)])
def test_set_copies_exactly(shared: PythonREPL, value: Any) -> None:
    shared.set("given", value)
    assert shared.get("type(given).__name__") == type(value).__name__
    if isinstance(value, str):
        assert shared.get("given.encode('utf-8', 'surrogatepass')") == value.encode("utf-8", "surrogatepass")
    else:
        assert shared.get("given") == (repr(value) if isinstance(value, Path) else value)


class _Local:
    def __reduce__(self) -> Any:
        return (_only_here, ())


def _only_here() -> None: ...


_only_here.__module__ = "module_of_this_test_only"


def test_what_cannot_go_in_is_a_type_error(repl: PythonREPL) -> None:
    for value in (lambda: 1, _Local()):
        repl.run("1")
        with pytest.raises(TypeError, match="'thing'"):
            repl.set("thing", value)
    assert repl.run("1").output == "1"


@pytest.mark.parametrize("name", ["final_answer", "1x", "class", "a b", "__x__"])
def test_names_that_cannot_be_set(shared: PythonREPL, name: str) -> None:
    with pytest.raises(ValueError, match="not usable"):
        shared.set(name, 1)


FAILURES = {"1/0": "division by zero", "nope": "NameError", "x = 1": "SyntaxError", "exit()": "SystemExit"}


@pytest.mark.parametrize("code", [*FAILURES, "__import__('os')._exit(1)"])
def test_get_raises_for_failures(shared: PythonREPL, code: str) -> None:
    with pytest.raises(EvaluationFailed, match=FAILURES.get(code, "died")):
        shared.get(code)
    assert shared.get("2") == 2


def test_get_returns_values_or_reprs(shared: PythonREPL) -> None:
    shared.run("got = {'a': (1, 2)}")
    assert (shared.get("got"), shared.get("print")) == ({"a": (1, 2)}, "<built-in function print>")
    assert math.isnan(shared.get("float('nan')"))


# -- files

TEXT = "a\r\nb\rc\u2028ä😀\n" * 3


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "notes.txt"
    path.write_bytes(TEXT.encode())
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_is_an_ordinary_str_and_is_restored(kind: str, tmp_path: Path, file: Path) -> None:
    with session(kind, tmp_path / "ipython", timeout=30) as repl:
        repl.set("context", ContextFile(file), reserved=True)
        assert repl.run("x = 1").error is None
        assert repl.run("print(type(context).__name__, len(context))").output == f"str {len(TEXT)}\n"
        assert repl.run("context = 'invented'").error is None
        assert repl.get("(context, context[:3].encode())") == (TEXT, b"a\r\n")


def test_a_file_that_went_is_said_and_the_session_goes_on(bare: PythonREPL, file: Path) -> None:
    bare.set("context", ContextFile(file))
    file.unlink()
    with pytest.raises(ReplError, match=r"cannot set 'context'.*FileNotFoundError: .*notes\.txt"):
        bare.run("1")
    file.write_bytes(b"back again, and longer than it was before, by far: " * 9)
    assert bare.get("len(context)") == len(TEXT.encode())  # as large as it was when the run began


BECOMES = {
    b"": "str",
    b"\xef\xbb\xbfx": "str",
    b"caf\xe9": "bytes",
    b"a\0b": "bytes",
    b"a line with one \0 in it": "str",
    b"x" * 65_536 + b"\0\xe9": "str",
    b"x" + "ü".encode() * 40_000: "str",
}


@pytest.mark.parametrize("raw", BECOMES, ids=[str(raw)[:30] for raw in BECOMES])
def test_what_a_file_becomes(repl: PythonREPL, tmp_path: Path, raw: bytes) -> None:
    path = tmp_path / "f"
    path.write_bytes(raw)
    repl.set("context", ContextFile(path))
    kind = BECOMES[raw]
    assert repl.get("type(context).__name__") == kind
    assert repl.get("context.encode('utf-8', 'surrogateescape')" if kind == "str" else "context") == raw


def test_the_users_file_is_never_touched(repl: PythonREPL, file: Path) -> None:
    repl.set("kept", ContextFile(file), reserved=True)
    for value in (ContextFile(file), ContextFile(file), "x" * (IN_FRAME + 1), 1):
        repl.set("context", value)
        assert repl.run("context").error is None
    repl.run("import os; os._exit(1)")
    assert repl.get("kept") == TEXT
    repl.close()
    assert file.read_bytes() == TEXT.encode()

"""Values go in exactly and come back equal."""

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

from rlm_loop.repl import EvaluationFailed, PythonREPL
from rlm_loop.repl.host.frames import IN_FRAME, set_frame
from rlm_loop.repl.worker import NotExact, decode, encode, load

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


@pytest.mark.slow
@settings(max_examples=60)
@given(values)
def test_any_value_comes_back_equal_and_of_its_type(value: Any) -> None:
    back = decode(json.loads(json.dumps(encode(value))))
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


@pytest.mark.parametrize("value", ["é\r\n\0\ud800" * IN_FRAME, b"\r\n\0\xff" * IN_FRAME, [0] * IN_FRAME])
def test_what_is_large_goes_through_a_file_not_the_pipe(tmp_path: Path, value: Any) -> None:
    frame = set_frame("context", value, tmp_path / "value")
    assert len(json.dumps({**frame, "modules": {}})) < 1000
    assert (tmp_path / "value").stat().st_size >= IN_FRAME
    assert load(frame) == value


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
def test_any_text_goes_through_the_process_and_back(shared_text: PythonREPL, text: str) -> None:
    shared_text.set("text", text)
    assert shared_text.get("text") == text


@pytest.fixture(scope="module")
def shared_text() -> Any:
    with PythonREPL() as repl:
        yield repl

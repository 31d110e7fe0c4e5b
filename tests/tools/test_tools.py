"""Tools and the gateway: semantics 30, 31, 35 and 44."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import io
import json
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_loop.accounting import BudgetSpent, Cancelled
from rlm_loop.tools import Hooks, Tool, ToolError, ToolGateway, ToolResult, as_tool, tool


@tool
def read_lines(path: str, start: int = 1, mode: Literal["a", "b"] = "a", copy: list[int] | None = None) -> str:
    """Read a range
    of lines.

    What follows is for people.
    """
    return f"{path}|{start}|{mode}|{copy}"


@tool
def ratio(value: float, pair: tuple[int, ...] = (), title: str = "") -> Any:
    """Give the arguments back."""
    return {"value": value, "pair": pair, "title": title}


@tool
def fail(how: str = "value") -> str:
    """Fail in some way."""
    if how == "own":
        raise ToolError("denied", "line 3 is not yours")
    if how == "mute":
        raise Mute
    raise ValueError("no\nway")


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


def test_a_tool_describes_itself() -> None:
    assert read_lines.name == "read_lines"
    assert read_lines.description == "Read a range of lines."
    assert read_lines.signature == (
        "read_lines(path: str, start: int = 1, mode: Literal['a', 'b'] = 'a', copy: list[int] | None = None)"
        " -> str: Read a range of lines."
    )
    properties = {
        "value": {"type": "number"},
        "pair": {"type": "array", "items": {"type": "integer"}, "default": []},
        "title": {"type": "string", "default": ""},
    }
    parameters = {"type": "object", "additionalProperties": False, "required": ["value"], "properties": properties}
    function = {"name": "ratio", "description": "Give the arguments back.", "parameters": parameters}
    assert ratio.schema == {"type": "function", "function": function}
    assert read_lines("x", start=4) == "x|4|a|None"


def test_annotated_parameters_carry_their_description() -> None:
    from pydantic import Field

    def f(n: int) -> int:
        """Count."""
        return n

    f.__annotations__["n"] = Annotated[int, Field(description="how many", ge=0, examples=[[1]])]
    made = tool(f)
    assert made.parameters["properties"]["n"]["description"] == "how many"
    assert made.signature == "f(n: int) -> int: Count."
    assert ToolGateway([made]).call("f", '{"n": -1}').error == "invalid_arguments"


def named(name: str, function: Any, **options: Any) -> Tool:
    """Make a tool of a function that has no docstring."""
    return tool(function, name=name, description="Do it.", **options)


def documented(function: Any, name: str = "add", text: str | None = "Add.") -> Any:
    function.__name__, function.__doc__ = name, text
    return function


def unknown_type(x: Nowhere) -> int:  # type: ignore[name-defined]  # noqa: F821
    """Add."""
    return 1


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (documented(lambda x: x, text=None), "docstring"),
        (documented(lambda *numbers: 0), r"\*numbers"),
        (documented(lambda **options: 0), r"\*\*options"),
        (documented(lambda x, /: x), "positional-only"),
        (documented(lambda x: x, name="two words"), "cannot name a tool"),
        (unknown_type, "Nowhere"),
        (3, "documented function"),
    ],
)
def test_what_cannot_be_a_tool_is_refused_when_made(bad: Any, says: str) -> None:
    with pytest.raises((TypeError, NameError), match=says) as caught:
        as_tool(bad)
    assert "\n" not in str(caught.value)


def test_methods_partials_and_simple_objects_become_tools() -> None:
    class Box:
        def add(self, n: int) -> int:
            """Add to the box."""
            return n + 1

    class Shout:
        name = "shout"
        description = "Make it loud."

        def run(self, input_data: str) -> str:
            return input_data.upper()

    part = functools.partial(read_lines.function, mode="b")
    gate = ToolGateway([Box().add, Shout(), part, Tool("again", "Again.", lambda x: x)])
    assert [t.name for t in gate.tools] == ["add", "shout", "read_lines", "again"]
    assert gate.call("add", '{"n": 1}').data == 2
    assert gate.call("shout", '{"input_data": "a"}').text == "A"
    assert gate.call("read_lines", {"path": "p"}).text == "p|1|b|None"
    assert as_tool(read_lines) is read_lines


@pytest.mark.parametrize(
    ("name", "arguments", "kind", "says"),
    [
        ("read_line", "{}", "unknown_tool", "no tool 'read_line'; did you mean 'read_lines'? tools: read_lines, ratio"),
        ("zzz", "{}", "unknown_tool", "no tool 'zzz'; tools: read_lines, ratio, fail"),
        ("read_lines", "", "invalid_arguments", "missing 'path'"),
        ("read_lines", "{path: 1}", "invalid_arguments", "for a quote and"),
        ("read_lines", '{"path": "a"', "invalid_arguments", "not JSON"),
        ("read_lines", "[" * 100_000, "invalid_arguments", "not JSON"),
        ("read_lines", '{"path": "a", "start": ' + "9" * 5000 + "}", "invalid_arguments", "not JSON"),
        ("read_lines", '["a"]', "invalid_arguments", "must be a JSON object"),
        ("read_lines", '{"path": "a", "line": 2}', "invalid_arguments", "unexpected 'line'"),
        ("read_lines", '{"path": 7}', "invalid_arguments", "'path': Input should be a valid string, not 7"),
        ("read_lines", '{"path": "a", "start": "1"}', "invalid_arguments", "valid integer, not '1'"),
        ("read_lines", '{"path": "a", "start": true}', "invalid_arguments", "valid integer, not True"),
        ("read_lines", '{"path": "a", "mode": "c"}', "invalid_arguments", "'a' or 'b'"),
        ("ratio", '{"value": 1, "pair": [1, "2"]}', "invalid_arguments", "'pair.1'"),
        ("fail", "", "runtime", "ValueError: no\nway"),
        ("fail", '{"how": "own"}', "denied", "line 3 is not yours"),
        ("fail", '{"how": "mute"}', "runtime", "Mute"),
    ],
)
def test_failures_are_data(name: str, arguments: str, kind: str, says: str) -> None:
    result = ToolGateway([read_lines, ratio, fail]).call(name, arguments)
    assert (result.ok, result.error, result.data) == (False, kind, None)
    assert says in result.message
    assert result.text == result.message
    if kind != "runtime":
        assert "\n" not in result.message


@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [
        ("read_lines", '{"path": "a"}', "a|1|a|None"),
        ("read_lines", '{"path": "a\nb"}', "a\nb|1|a|None"),  # a real line break inside a JSON string
        ("read_lines", {"path": "a", "copy": [1]}, "a|1|a|[1]"),
        ("ratio", '{"value": 3}', '{"value": 3.0, "pair": [], "title": ""}'),
        ("ratio", '{"value": NaN, "pair": [1, 2]}', '{"value": NaN, "pair": [1, 2], "title": ""}'),
    ],
)
def test_good_calls(name: str, arguments: Any, text: str) -> None:
    result = ToolGateway([read_lines, ratio]).call(name, arguments)
    assert (result.ok, result.error, result.text) == (True, None, text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        ("ä", "ä"),
        (True, "true"),
        ([1, None], "[1, null]"),
        ({"é": 1}, '{"é": 1}'),
        (float("inf"), "Infinity"),
        (b"x", "b'x'"),
        ({1, 2}, "{1, 2}"),
        ("a\ud800b", "a?b"),
    ],
)
def test_text_of_a_value(value: Any, text: str) -> None:
    result = ToolGateway([named("give", lambda: value)]).call("give")
    assert (result.text, result.data) == (text, value)


def test_a_timeout_is_enforced_from_outside() -> None:
    release, done = threading.Event(), threading.Event()
    hang = named("hang", lambda: (release.wait(), done.set(), "late"))
    result = ToolGateway([hang], timeout=0.05).call("hang")
    assert (result.ok, result.error, "0.05 s" in result.message) == (False, "timeout", True)
    assert not done.is_set()  # it was not waited for
    release.set()
    assert done.wait(10)
    assert result.data is None  # a late result is credited to nobody


def test_a_tool_may_have_a_limit_of_its_own() -> None:
    assert ToolGateway([named("slow", lambda: "ok", timeout=30)], timeout=0).call("slow").ok


class Told:
    """A hook that counts what starts and what ends."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.printed: list[str] = []

    def on_tool_start(self, tool: str) -> None:
        self.seen.append(f"start {tool}")

    def on_tool_end(self, tool: str, result: ToolResult) -> None:
        self.seen.append(f"end {tool} {result.error}")
        self.printed.append(result.printed)


SIGNALS = [SystemExit(3), KeyboardInterrupt(), GeneratorExit(), BudgetSpent("calls", "no more"), Cancelled("ended")]


@pytest.mark.parametrize("raised", SIGNALS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("timeout", [None, 30.0])
def test_what_a_tool_raises_ends_the_call_and_only_the_runs_own_signals_more(
    raised: BaseException, timeout: float | None
) -> None:
    def leave() -> None:
        raise raised

    told = Told()
    gate = ToolGateway([named("leave", leave)], timeout=timeout, hooks=Hooks([told]))
    if isinstance(raised, (BudgetSpent, Cancelled)):
        with pytest.raises(type(raised)):
            gate.call("leave")
    else:
        result = gate.call("leave")
        assert (result.error, type(raised).__name__ in result.message) == ("runtime", True)
    assert [s.split()[0] for s in told.seen] == ["start", "end"]


def test_async_tools_are_awaited_also_in_a_notebook() -> None:
    async def where() -> int:
        await asyncio.sleep(0)
        return 1

    async def from_a_notebook() -> Any:
        return gate.call("where").data

    gate = ToolGateway([named("where", where)])
    assert (gate.call("where").data, asyncio.run(from_a_notebook())) == (1, 1)


@tool
def lookup(value: Any) -> list[int]:
    """Look it up."""
    return value


@tool
async def rename(value: Any) -> str:
    """Rename it."""
    return value


def _seven() -> int:
    """Give seven."""
    return 7


stated = tool(name="stated")(_seven)


def _elsewhere(value: Any) -> Nowhere:  # type: ignore[name-defined]  # noqa: F821
    """Say what it returns in a type of elsewhere."""
    return value


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("lookup", [1, 2], None),
        ("lookup", [np.int64(1)], None),  # of another class, and equal
        ("lookup", None, "lookup must return list[int], got None"),
        ("lookup", [1, "2"], "lookup must return list[int], got [1, '2'] (1: "),
        ("lookup", (1, 2), "lookup must return list[int], got (1, 2)"),
        ("lookup", "x" * 10_000, "lookup must return list[int], got 'xxx"),
        ("rename", "a", None),
        ("rename", 7, "rename must return str, got 7"),
        ("_elsewhere", 7, None),  # pydantic knows no such type
    ],
)
def test_a_result_that_breaks_the_declared_type_is_an_error_of_the_tool(
    name: str, value: Any, says: str | None
) -> None:
    gate = ToolGateway([lookup, rename, _elsewhere])
    result = gate.call(name, {"value": value})
    assert result.error == (None if says is None else "runtime")
    assert (says or "") in result.message
    assert len(result.message) < 200
    if says is not None:
        assert result.data is None
        with pytest.raises(ToolError):
            gate.call_function(name, (value,))


def test_a_tool_that_was_called_can_go_to_another_process() -> None:
    assert ToolGateway([stated]).call("stated").data == 7
    assert pickle.loads(pickle.dumps(stated))() == 7


def test_what_a_tool_prints_is_kept_with_its_call_and_still_shown(capsys: pytest.CaptureFixture[str]) -> None:
    both, go = threading.Barrier(2, timeout=30), threading.Event()

    @tool
    def count(name: str) -> str:
        """Count."""
        print(f"{name} began")
        both.wait()
        print(f"{name} ended")
        if name == "b":
            raise ValueError(name)
        return name

    async def later() -> None:
        print("later")

    told = Told()
    hang = named("hang", lambda: (print("hanging"), go.wait(30)), timeout=0.05)
    gate = ToolGateway([count, hang, named("later", later)], hooks=Hooks([told]))
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda name: gate.call("count", {"name": name}), "ab"))
    print("not of a tool")
    assert sorted(told.printed) == ["a began\na ended\n", "b began\nb ended\n"]
    assert gate.call("hang").printed == "hanging\n"
    assert gate.call("later").printed == "later\n"
    go.set()
    assert sorted(capsys.readouterr().out.splitlines()) == sorted(
        ["a began", "b began", "a ended", "b ended", "not of a tool", "hanging", "later"]
    )


def test_what_a_tool_prints_is_kept_where_the_stream_was_replaced_while_another_runs() -> None:
    go, began = threading.Event(), threading.Event()
    hang = named("hang", lambda: (began.set(), go.wait(30)))
    gate = ToolGateway([hang, named("shout", lambda: print("now"))])
    thread = threading.Thread(target=gate.call, args=("hang",))
    thread.start()
    began.wait(30)
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        assert gate.call("shout").printed == "now\n"
    go.set()
    thread.join(30)
    assert shown.getvalue() == "now\n"
    assert gate.call("shout").printed == "now\n"


def test_calls_from_cells_use_the_same_gate() -> None:
    gate = ToolGateway([read_lines])
    assert gate.call_function("read_lines", ("p", 2), {"mode": "b"}) == "p|2|b|None"
    for name, args, kwargs, says in (
        ("read_lines", (), {}, "invalid_arguments: missing a required argument: 'path'; usage: read_lines(path"),
        ("read_lines", ("p", "x"), {}, "invalid_arguments: 'start'"),
        ("read_lines", ("p",), {"path": "q"}, "invalid_arguments: multiple values"),
        ("nope", (), {}, "unknown_tool: no tool 'nope'"),
    ):
        with pytest.raises(ToolError) as caught:
            gate.call_function(name, args, kwargs)
        assert str(caught.value).startswith(says)


@given(st.text())
def test_any_argument_text_gives_a_result(arguments: str) -> None:
    assert ToolGateway([ratio], timeout=None).call("ratio", arguments).error == "invalid_arguments"


@given(st.floats(allow_nan=False), st.lists(st.integers()), st.text(st.characters(codec="utf-8")))
def test_valid_arguments_arrive_unchanged(value: float, pair: list[int], title: str) -> None:
    arguments = {"value": value, "pair": pair, "title": title}
    result = ToolGateway([ratio], timeout=None).call("ratio", json.dumps(arguments))
    assert result.data == arguments | {"pair": tuple(pair)}

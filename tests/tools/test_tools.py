"""Tools and the gateway: semantics 30, 31, 33, 35 and 44."""

from __future__ import annotations

import asyncio
import functools
import json
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Annotated, Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from rlm_loop.accounting import BudgetSpent, Cancelled
from rlm_loop.actions import Failure
from rlm_loop.tools import Hooks, Tool, ToolError, ToolGateway, as_tool, tool
from tests.agents.replies import named


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


@tool
def tally(n: Annotated[int, Field(description="how many", ge=0, examples=[[1]])]) -> int:
    """Count."""
    return n


def test_a_tool_describes_itself() -> None:
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
    assert tally.signature == "tally(n: int) -> int: Count."
    assert tally.parameters["properties"]["n"]["description"] == "how many"


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
        ("zzz", "{}", "unknown_tool", "no tool 'zzz'; tools: read_lines, ratio, fail, tally"),
        ("read_lines", "", "invalid_arguments", "missing 'path'"),
        ("read_lines", "{path: 1}", "invalid_arguments", "for a quote and"),
        ("read_lines", "[" * 100_000, "invalid_arguments", "not JSON"),
        ("read_lines", '{"path": "a", "start": ' + "9" * 5000 + "}", "invalid_arguments", "not JSON"),
        ("read_lines", '["a"]', "invalid_arguments", "must be a JSON object"),
        ("read_lines", '{"path": "a", "line": 2}', "invalid_arguments", "unexpected 'line'"),
        ("read_lines", '{"path": 7}', "invalid_arguments", "'path': Input should be a valid string, not 7"),
        ("read_lines", '{"path": "a", "start": "1"}', "invalid_arguments", "valid integer, not '1'"),
        ("read_lines", '{"path": "a", "start": true}', "invalid_arguments", "valid integer, not True"),
        ("read_lines", '{"path": "a", "mode": "c"}', "invalid_arguments", "'a' or 'b'"),
        ("ratio", '{"value": 1, "pair": [1, "2"]}', "invalid_arguments", "'pair.1'"),
        ("tally", '{"n": -1}', "invalid_arguments", "'n': "),
        ("fail", "", "runtime", "ValueError: no\nway"),
        ("fail", '{"how": "own"}', "denied", "line 3 is not yours"),
        ("fail", '{"how": "mute"}', "runtime", "Mute"),
    ],
)
def test_failures_are_data(name: str, arguments: str, kind: str, says: str) -> None:
    result = ToolGateway([read_lines, ratio, fail, tally]).call(name, arguments)
    assert (result.ok, result.error, result.data, result.failure) == (False, kind, None, Failure(kind, result.text))
    assert says in result.text
    assert kind == "runtime" or "\n" not in result.text


@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [
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
        ([True, None], "[true, null]"),
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


SIGNALS = [SystemExit(3), KeyboardInterrupt(), GeneratorExit(), BudgetSpent("calls", "no more"), Cancelled("ended")]


@pytest.mark.parametrize("raised", SIGNALS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("timeout", [None, 30.0])
def test_what_a_tool_raises_ends_the_call_and_a_signal_of_the_run_more(raised: Any, timeout: float | None) -> None:
    def leave() -> None:
        raise raised

    told: list[str] = []
    hook = SimpleNamespace(on_tool_start=lambda tool: told.append("start"), on_tool_end=lambda tool: told.append("end"))
    gate = ToolGateway([named("leave", leave)], timeout=timeout, hooks=Hooks([hook]))
    if isinstance(raised, (BudgetSpent, Cancelled)):
        with pytest.raises(type(raised)):
            gate.call("leave")
    else:
        result = gate.call("leave")
        assert (result.error, type(raised).__name__ in result.text) == ("runtime", True)
    assert told == ["start", "end"]


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
def test_a_result_of_another_type_than_declared_is_an_error_of_the_tool(name: str, value: Any, says: Any) -> None:
    result = ToolGateway([lookup, rename, _elsewhere]).call(name, {"value": value})
    assert (result.error, result.data) == ((None, value) if says is None else ("runtime", None))
    assert (says or "") in result.text
    assert len(result.text) < 200


def test_a_tool_that_was_called_can_go_to_another_process() -> None:
    made = as_tool(_elsewhere)
    assert ToolGateway([made]).call("_elsewhere", {"value": 7}).data == 7
    assert pickle.loads(pickle.dumps(made))(7) == 7


def test_what_a_tool_prints_is_kept_with_its_call_and_still_shown(capsys: pytest.CaptureFixture[str]) -> None:
    both, go = threading.Barrier(2, timeout=30), threading.Event()

    def count(name: str) -> None:
        print(name)
        both.wait()
        print(f"{name} ended")
        if name == "b":
            raise ValueError(name)

    async def later() -> None:
        print("later")

    hang = named("hang", lambda: (print("hanging"), go.wait(30)), timeout=0.05)
    gate = ToolGateway([named("count", count), hang, named("later", later)])
    with ThreadPoolExecutor() as pool:
        counted = list(pool.map(lambda name: gate.call("count", {"name": name}).printed, "ab"))
    print("not of a tool")
    kept = [*counted, gate.call("hang").printed, gate.call("later").printed]
    go.set()
    assert kept == ["a\na ended\n", "b\nb ended\n", "hanging\n", "later\n"]
    assert sorted(capsys.readouterr().out.splitlines()) == sorted([*"".join(kept).splitlines(), "not of a tool"])


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


# -- idempotency keys and dry runs: semantics 33


class Counter:
    """A tool that has an effect, so that doing it twice shows."""

    def __init__(self) -> None:
        self.done: list[int] = []
        self.go = threading.Event()

    def add(self, n: int) -> str:
        """Add it."""
        if n == 5:
            self.go.wait(30)
        self.done.append(n)
        if n < 0:
            raise ValueError(f"{n} is negative")
        if n == 666:
            raise BudgetSpent("seconds", "the time is up")
        return f"{n}, {len(self.done)} in all"

    def would_add(self, n: int) -> str:
        return f"would add {n}"

    def gate(self, **options: Any) -> ToolGateway:
        return ToolGateway([tool(self.add, dry_run=self.would_add)], **options)


@pytest.mark.parametrize("way", ["call", "cell"])
def test_a_retried_call_gets_the_recorded_result(way: str) -> None:
    counter = Counter()
    gate = counter.gate()

    def call(n: int, key: str) -> str:
        if way == "call":
            return gate.call("add", f'{{"n": {n}, "idempotency_key": "{key}"}}').text
        try:
            return gate.call_function("add", (n,), {"idempotency_key": key})
        except ToolError as error:
            return error.message

    assert [call(1, "a"), call(2, "b"), call(1, "a")] == ["1, 1 in all", "2, 2 in all", "1, 1 in all"]
    assert call(3, "a") == "3, 3 in all"  # another call
    assert [call(-1, "c"), call(-1, "c")] == ["ValueError: -1 is negative"] * 2  # a failure is a result, too
    assert counter.done == [1, 2, 3, -1]


def test_a_repeated_result_says_so_and_calls_that_never_ran_are_not_kept() -> None:
    gate = Counter().gate(allow=["add"])
    assert gate.call("add", {"n": "1", "idempotency_key": "k"}).error == "invalid_arguments"
    first, again = (gate.call("add", {"n": 1, "idempotency_key": "k"}) for _ in range(2))
    assert (first.repeated, again.repeated, again.ok, again.text) == (False, True, True, first.text)
    assert gate.call("add", {"n": 1}).text == "1, 2 in all"  # without a key each call is a new one


def test_the_retry_of_a_call_that_ran_out_of_time_waits_for_it() -> None:
    counter = Counter()
    gate = counter.gate(timeout=0.2)
    for _ in range(2):
        assert gate.call("add", {"n": 5, "idempotency_key": "k"}).error == "timeout"
    counter.go.set()
    while (result := gate.call("add", {"n": 5, "idempotency_key": "k"})).error == "timeout":
        pass
    assert (result.text, result.repeated, counter.done) == ("5, 1 in all", True, [5])


@pytest.mark.parametrize("timeout", [None, 30])
def test_two_callers_at_once_are_one_call(timeout: float | None) -> None:
    counter = Counter()
    gate = counter.gate(timeout=timeout)
    with ThreadPoolExecutor(4) as pool:
        made = [pool.submit(gate.call, "add", {"n": 5, "idempotency_key": "k"}) for _ in range(4)]
        counter.go.set()
    assert [call.result().text for call in made] == ["5, 1 in all"] * 4


def test_a_call_that_was_stopped_is_made_again() -> None:
    counter = Counter()
    gate = counter.gate()
    for _ in range(2):
        with pytest.raises(BudgetSpent):
            gate.call("add", {"n": 666, "idempotency_key": "k"})
    assert counter.done == [666, 666]


def test_a_dry_run_does_nothing_and_is_not_recorded() -> None:
    counter = Counter()
    gate = counter.gate()
    for arguments in ({"n": 1, "dry_run": True}, {"n": 1, "dry_run": True, "idempotency_key": "k"}):
        assert gate.call("add", arguments).text == "would add 1"
    assert gate.call_function("add", (1,), {"dry_run": True}) == "would add 1"
    assert counter.done == []
    assert gate.call("add", {"n": 1, "idempotency_key": "k"}).text == "1, 1 in all"
    assert gate.call("add", {"n": 1, "dry_run": False}).text == "1, 2 in all"


@tool(mutates=True)
def wipe() -> str:
    """Wipe all."""
    raise AssertionError("it ran")


@tool(mutates=True)
def own_names(dry_run: str = "", idempotency_key: int = 0) -> str:
    """Have these names itself."""
    return f"{dry_run}{idempotency_key}"


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("wipe", {"dry_run": "yes"}, "wipe has no dry run, and was not run"),
        ("add", {"n": 1, "dry_run": True}, "unexpected 'dry_run'. add takes (n)"),  # it changes nothing
        ("add", {"n": 1, "idempotency_key": "k"}, "unexpected 'idempotency_key'. add takes (n)"),
    ],
)
def test_what_is_asked_for_wrongly(name: str, arguments: dict[str, Any], says: str) -> None:
    result = ToolGateway([wipe, Counter().add]).call(name, arguments)
    assert (result.error, result.text) == ("invalid_arguments", says)


def test_a_tools_own_parameters_come_first_and_no_schema_grows() -> None:
    assert ToolGateway([own_names]).call("own_names", {"dry_run": "x", "idempotency_key": 3}).text == "x3"
    (add,) = Counter().gate().tools
    assert add.signature == "add(n: int) -> str: Add it."
    assert add.parameters == as_tool(Counter().add).parameters


def test_results_are_bounded_in_the_hosts_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    text = tool(name="text", description="Give a text.")(lambda n: "x" * n)
    monkeypatch.setattr("rlm_loop.tools.gateway._MAX_TEXT", 1000)
    assert ToolGateway([text]).call("text", {"n": 1001}).text == "text gave 1,001 characters: ask for less"


def test_the_callers_arguments_are_left_as_they_are() -> None:
    arguments, kwargs = {"n": 1, "dry_run": True}, {"n": 1, "idempotency_key": "k"}
    gate = Counter().gate()
    gate.call("add", arguments)
    gate.call_function("add", (), kwargs)
    assert (arguments, kwargs) == ({"n": 1, "dry_run": True}, {"n": 1, "idempotency_key": "k"})

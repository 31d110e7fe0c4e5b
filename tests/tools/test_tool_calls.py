"""Idempotency keys and dry runs at the gate: semantics 33."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from rlm_loop.accounting import BudgetSpent
from rlm_loop.tools import ToolError, ToolGateway, as_tool, tool


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


@pytest.mark.parametrize("way", ["caller", "model", "cell"])
def test_a_retried_call_gets_the_recorded_result(way: str) -> None:
    counter = Counter()
    gate = counter.gate()

    def call(n: int, key: str) -> str:
        if way == "caller":
            return gate.call("add", {"n": n, "idempotency_key": key}).text
        if way == "model":
            return gate.call("add", f'{{"n": {n}, "idempotency_key": "{key}"}}').text
        try:
            return gate.call_function("add", (n,), {"idempotency_key": key})
        except ToolError as error:
            return error.message

    assert [call(1, "a"), call(2, "b"), call(1, "a")] == ["1, 1 in all", "2, 2 in all", "1, 1 in all"]
    assert call(2, "a") == "idempotency_key 'a' was used for another call of add: take a new one"
    assert [call(-1, "c"), call(-1, "c")] == ["ValueError: -1 is negative"] * 2  # a failure is a result, too
    assert counter.done == [1, 2, -1]


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
def named(dry_run: str = "", idempotency_key: int = 0) -> str:
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
    assert (result.error, result.message) == ("invalid_arguments", says)


def test_a_tools_own_parameters_come_first_and_no_schema_grows() -> None:
    assert ToolGateway([named]).call("named", {"dry_run": "x", "idempotency_key": 3}).text == "x3"
    (add,) = Counter().gate().tools
    assert add.signature == "add(n: int) -> str: Add it."
    assert add.parameters == as_tool(Counter().add).parameters


def test_results_are_bounded_in_the_hosts_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    text = tool(name="text", description="Give a text.")(lambda n: "x" * n)
    monkeypatch.setattr("rlm_loop.tools.gateway._MAX_TEXT", 1000)
    assert ToolGateway([text]).call("text", {"n": 1001}).message == "text gave 1,001 characters: ask for less"


def test_the_callers_arguments_are_left_as_they_are() -> None:
    arguments, kwargs = {"n": 1, "dry_run": True}, {"n": 1, "idempotency_key": "k"}
    gate = Counter().gate()
    gate.call("add", arguments)
    gate.call_function("add", (), kwargs)
    assert (arguments, kwargs) == ({"n": 1, "dry_run": True}, {"n": 1, "idempotency_key": "k"})

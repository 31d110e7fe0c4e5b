"""Budgets, what is held and spent of them, and the prices of models by their names."""

from __future__ import annotations

import math
import sys
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import fields

import pytest

from rlm_loop.accounting import Account, Budget, BudgetSpent, Cancelled, Price, Scope, known_price
from rlm_loop.messages import Usage

FIELDS = [field.name for field in fields(Budget)]


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("value", [-1, -0.5, math.nan, "12", True, [1]])
def test_what_is_no_limit_is_refused_when_made(field: str, value: object) -> None:
    with pytest.raises(ValueError if type(value) in (int, float) else TypeError, match=rf"Budget\.{field} "):
        Budget(**{field: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("field", FIELDS)
def test_infinity_and_none_are_no_limit(field: str) -> None:
    budget = Budget(**{field: math.inf})
    assert budget == Budget(**{field: None})
    account = Account(budget, price=(0.1, 0.1))
    assert account.reserve(10**9, 7).max_tokens == 7
    account.settle(held := account.reserve(10**9, None), Usage(10**9, 10**9, 0))
    assert (held.max_tokens, account.exceeded(), account.over()) == (None, None, False)


def test_a_failed_call_gives_its_reservation_back_and_unknown_usage_is_settled_by_it() -> None:
    account = Account(Budget(tokens=100))
    account.settle(account.reserve(50, 50), None)
    account.settle(account.reserve(50, 50), Usage(None, None))
    assert (account.spent.input_tokens, account.spent.output_tokens) == (50, 50)


def test_working_seconds_exclude_waiting_and_waits_at_the_same_time_count_once() -> None:
    clock = Clock()
    account = Account(Budget(working_seconds=5), clock=clock)
    helds = [account.reserve(1, 1) for _ in range(32)]
    clock.now += 9
    for held in helds:
        account.settle(held, Usage(1, 1), waited=6)
    assert (account.seconds, account.working_seconds, account.seconds_left()) == (9, 3, 2)
    assert account.exceeded() is None
    clock.now += 2
    assert account.exceeded() == ("seconds", "the limit of 5 working seconds is reached")


def test_cost_is_reserved_too() -> None:
    account = Account(Budget(cost=1.0), price=(0.01, 0.1))
    held = account.reserve(10, 100)
    assert held.max_tokens == 9  # (1.00 - 0.10) / 0.10
    account.settle(held, Usage(10, 9, 0))
    with pytest.raises(BudgetSpent, match="dollars"):
        account.reserve(1, 1)


@pytest.mark.parametrize("budget", [Budget(output_tokens=500), Budget(calls=40), Budget(tokens=600)])
def test_threads_cannot_race_past_a_limit(budget: Budget) -> None:
    account = Account(budget)
    barrier = threading.Barrier(8)

    def spend() -> None:
        barrier.wait()
        for _ in range(20):
            try:
                held = account.reserve(3, 20)
            except BudgetSpent:
                return
            account.settle(held, Usage(3, held.max_tokens, 0))

    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(spend) for _ in range(8)]:
            done.result()
    spent = account.spent
    assert 0 < (spent.output_tokens or 0) <= (budget.output_tokens or 8 * 20 * 20)
    assert 0 < spent.calls <= (budget.calls or 8 * 20)
    assert (spent.total_tokens or 0) <= (budget.tokens or 8 * 20 * 23)


def test_a_part_of_an_account_has_limits_of_its_own_and_spends_the_whole() -> None:
    whole = Account(Budget(tokens=100, calls=5))
    part = whole.scope(Budget(tokens=30))
    assert part.reserve(10, None).max_tokens == 20
    other = whole.scope(Budget(tokens=90))
    held = other.reserve(5, None)
    assert held.max_tokens == 65  # 100 - 30 - 5: what is left of the whole
    other.settle(held, Usage(5, 65))
    assert (whole.spent.total_tokens, part.spent.total_tokens) == (70, 0)


def test_the_clock_of_a_part_starts_with_it_and_the_nearest_limit_counts() -> None:
    clock = Clock()
    whole = Account(Budget(seconds=10), clock=clock)
    clock.now += 8
    assert [whole.scope(Budget(seconds=seconds)).seconds_left() for seconds in (5, 1)] == [2, 1]
    clock.now += 2
    assert whole.scope(Budget()).exceeded() == ("seconds", "the limit of 10 seconds is reached")


def test_what_others_hold_is_waited_for() -> None:
    account = Account(Budget(output_tokens=100))
    held = account.reserve(1, 90)
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(account.reserve, 1, 50, scope=Scope())
        assert wait([waiting], 0.05).not_done  # 10 are free, and 50 are wanted
        account.settle(held, Usage(1, 20))
        assert waiting.result(20).max_tokens == 50


def test_waiting_for_what_others_hold_ends_with_the_scope() -> None:
    account, scope = Account(Budget(calls=1)), Scope()
    account.reserve(1, 1)
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(account.reserve, 1, 1, scope=scope)
        scope.end("stopped")
        assert isinstance(waiting.exception(20), Cancelled)


def test_prices_are_those_of_genai_prices(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("genai_prices", reason='pip install -e ".[litellm]"')
    find = known_price.__wrapped__  # what is found is kept
    assert find("anthropic/claude-haiku-4-5") == Price(input=1, output=5, cached=0.1, cache_write=1.25)
    assert find("gemini/gemini-2.5-pro") == Price(input=1.25, output=10, cached=0.125)  # of short prompts
    assert find("nobody/nothing-like-this") is find("local:mine.gguf") is None
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    assert find("anthropic/claude-haiku-4-5") is None

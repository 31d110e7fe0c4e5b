"""A sequence that is worked out when it is first read."""

from __future__ import annotations

import copy
import pickle

import pytest

from rlm_loop.accounting import Ledger, Part
from rlm_loop.accounting.later import Later
from rlm_loop.messages import Usage


def test_it_is_made_once_and_only_when_it_is_read() -> None:
    made: list[int] = []
    later = Later(lambda: made.append(1) or range(3))
    assert not made
    assert (len(later), later[1], later[1:], list(later)) == (3, 1, (1, 2), [0, 1, 2])
    assert (repr(later), made) == ("(0, 1, 2)", [1])


def test_it_is_equal_to_a_sequence_of_the_same_items() -> None:
    later = Later(lambda: range(3))
    assert later == (0, 1, 2) == later
    assert later == Later(lambda: [0, 1, 2])
    assert later != (0, 1)
    assert later != 3
    assert hash(later) == hash((0, 1, 2))
    assert pickle.loads(pickle.dumps(later)) == copy.deepcopy(later) == (0, 1, 2)


def test_what_cannot_be_made_is_said_each_time() -> None:
    later = Later[int](lambda: [1 // 0])
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            len(later)


def test_the_account_of_a_call_is_of_what_was_charged() -> None:
    parts, again = [Part("task", 0, 0, 10), Part("template", 0, 1, 2)], [1]
    ledger = Ledger()
    call = ledger.charge(parts, Usage(12, 1), turn=1, again=again)
    parts.clear()
    again.clear()
    assert [(row.cause, row.tokens, row.resent) for row in call.rows] == [("task", 10, 0), ("template", 2, 2)]

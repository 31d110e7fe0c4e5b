"""Overhead in the window and on the bill: the two are told apart, and every token is in one of them."""

from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_loop import Budget, LeanAgent
from rlm_loop.dialects import Nudge, ThoughtPrompt
from rlm_loop.messages import Reply, ToolCall
from rlm_loop.models import ScriptedModel
from rlm_loop.report import growths, injected, overhead, overhead_by_turn, overhead_table
from rlm_loop.study import StudyError


def frame(turns: int = 4, once: int = 90, each: int = 40, markers: int = 5, arm: str = "react") -> pd.DataFrame:
    """A session whose strategy says `once` tokens at first and `each` before every reply."""
    rows = []
    for turn in range(1, turns + 1):
        before = turn - 1
        rows += [
            (arm, turn, "task", 30, 30 * (turn > 1)),
            (arm, turn, "scaffold:once", once, once * (turn > 1)),
            (arm, turn, "scaffold:each", each * turn, each * before),
            (arm, turn, "template", markers * turn, markers * before),
            (arm, turn, "tool_result", 100 * before, 100 * max(0, before - 1)),
        ]
    return pd.DataFrame(rows, columns=["arm", "turn", "cause", "tokens", "resent"])


def lean(turns: int = 4) -> pd.DataFrame:
    return frame(turns, once=0, each=0, arm="lean")


def test_the_claim_counts_the_window_and_not_the_bill() -> None:
    """About 90 once and 40 a turn: 1,090 tokens after 25 turns, which every turn before has paid for as well."""
    (growth,) = growths(frame(25))
    assert growth.window(injected)[-1] == 90 + 25 * 40 == 1_090
    assert growth.billed(injected)[-1] == 25 * 90 + 40 * sum(range(1, 26)) == 15_250
    assert growth.billed(injected, cached_price=0.1)[-1] == pytest.approx(1_090 + 0.1 * (15_250 - 1_090))
    assert growth.window(overhead)[-1] == 1_090 + 25 * 5


@given(st.integers(1, 30), st.integers(0, 900), st.integers(0, 900), st.integers(0, 9))
def test_causes_sum_to_all(turns: int, once: int, each: int, markers: int) -> None:
    made = frame(turns, once, each, markers)
    (growth,) = growths(made)
    assert growth.billed(lambda _: True)[-1] == made["tokens"].sum()
    parts = [growth.billed(overhead)[-1], growth.billed(lambda cause: not overhead(cause))[-1]]
    assert sum(parts) == made["tokens"].sum()
    assert growth.billed(cached_price=0.0)[-1] == (made["tokens"] - made["resent"])[made["cause"].map(overhead)].sum()
    assert growth.billed(cached_price=0.5)[-1] <= growth.billed()[-1]


def test_a_ledger_is_such_a_frame() -> None:
    """The frame of one run; its injected text is what the ledger itself calls scaffold."""
    replies = [Reply("", (ToolCall(str(n), "look", f'{{"number": {n}}}'),)) for n in range(3)]
    model = ScriptedModel([*replies, Reply("", (ToolCall("9", "final_answer", '{"answer": 1}'),))])
    said = (ThoughtPrompt("Think."), Nudge("Done?"))
    agent = LeanAgent(model=model, presentation="native", budget=Budget(steps=9), injectors=said, tools=(look,))
    outcome = agent.run("How many?")
    (growth,) = growths(outcome.ledger.frame())
    assert growth.turns == 4
    assert growth.billed(injected)[-1] == outcome.ledger.scaffold_tokens > 0
    assert growth.billed(lambda _: True)[-1] == outcome.usage.input_tokens
    assert growth.window(lambda _: True)[-1] == outcome.ledger.calls[-1].usage.input_tokens


def look(number: int) -> str:
    """Look at one."""
    return "nothing"


def test_a_second_call_of_a_turn_is_billed_but_not_present_twice() -> None:
    columns = ["call", "turn", "depth", "cause", "tokens", "resent"]
    rows = [
        (1, 1, 0, "system", 10, 0),
        (2, 1, 0, "system", 12, 10),
        (3, 2, 0, "system", 12, 12),
        (4, 2, 1, "system", 99, 0),
    ]
    (growth,) = growths(pd.DataFrame(rows, columns=columns))
    assert growth.window() == [12, 12]
    assert growth.billed() == [22, 34]  # the sub-agent's prompt is not this loop's


def test_the_tables() -> None:
    both = pd.concat([lean(25), frame(25)])
    table = overhead_table(both)
    assert [row[:2] for row in table.rows] == [
        [a, w] for a in ("lean", "react") for w in ("injected text", "all overhead")
    ]
    assert dict(zip(table.columns, table.rows[2], strict=True)) == {
        "loop": "react",
        "tokens of": "injected text",
        "turn 1": "130",
        "a turn": "40",
        "last turn": "1,090",
        "of window": "3.4%",
        "billed": "15,250",
        "cached": "2,506",
        "of bill": "32%",
    }


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (pd.DataFrame({"turn": [1], "cause": ["task"]}), "tokens"),
        (frame().iloc[:0], "no rows"),
    ],
)
def test_frames_that_say_nothing(given: pd.DataFrame, says: str) -> None:
    with pytest.raises(StudyError, match=says):
        overhead_table(given)


def test_arms_that_are_not_there() -> None:
    with pytest.raises(StudyError, match="lean"):
        overhead_by_turn(frame(), arms=("lean",))


def test_one_run_of_one_turn_can_be_drawn() -> None:
    made = overhead_by_turn(lean(1).drop(columns="arm"))
    assert len(made.axes) == 2

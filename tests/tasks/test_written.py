"""The code that a model wrote, whatever the loop, and the definition that a task asks for."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_loop.actions import Action, Answer, CallTool, Failure, FinalAnswer, Malformed, Observation, RunCode
from rlm_loop.messages import Reply
from rlm_loop.outcome import Turn
from rlm_loop.tasks.attempt import Written, definition_of, left_in_repl, written_in

TWO, THREE = "def f(x):\n    return 2 * x", "def f(x):\n    return 3 * x"
RAN = Observation(cause="repl_output")
UNREAD, DENIED, SKIPPED, REFUSED, RAISED = (
    Observation(failure=Failure(kind, "why"), cause="error")
    for kind in ("malformed", "denied", "skipped", "rejected", "runtime")
)


def turn(reply: str, *done: tuple[Action, Observation]) -> Turn:
    return Turn(1, Reply(reply), tuple(a for a, _ in done), tuple(o for _, o in done))


def value(turns: list[Turn]) -> int | None:
    source, names = definition_of("f", written_in(turns)), {}
    if source is None:
        return None
    exec(source, names)
    return names["f"](1)


def ran(code: str, saw: Observation = RAN) -> Turn:
    return turn("", (CallTool("python", json.dumps({"code": code})), saw))


def gives(answer: str, action: Action | None = None) -> tuple[Action, Observation]:
    return action or CallTool("final_answer"), Observation(answer=FinalAnswer(answer))


FENCED = f"```python\n{TWO}\n```"
REPLIES: dict[str, tuple[list[Turn], int | None]] = {
    "a cell": ([turn(FENCED, (RunCode(TWO), RAN))], 2),
    "a call": ([ran(TWO)], 2),
    "the reply is the answer": ([turn(TWO, gives(TWO, Answer(TWO)))], 2),
    "a final answer": ([turn("", gives(f"```\n{TWO}\n```"))], 2),
    "a reply that was not read": ([turn(FENCED, (Malformed("no call"), UNREAD))], None),
    "a call that was not made": ([ran(TWO, DENIED)], None),
    "a cell that was skipped": ([turn("", (RunCode(TWO), SKIPPED))], None),
    "another tool's argument": ([turn("", (CallTool("note", json.dumps({"code": TWO})), RAN))], None),
    "a cell whose answer is refused": ([turn("", (RunCode(f"{TWO}\nfinal_answer = 1"), REFUSED))], 2),
    "the REPL comes before what was only written": ([ran(TWO), turn("", gives(THREE))], 2),
    "the last of the REPL": ([ran(TWO), ran(THREE)], 3),
    "a cell that raised behind it": ([ran(f"{TWO}\nassert f(1) == 3", RAISED)], 2),
    "what other cells defined": ([turn("", (RunCode("K = 2"), RAN)), ran("def f(x):\n    return K * x")], 2),
    "a try of it is left out": ([ran(f"{TWO}\nresult = f(None)", RAISED)], 2),
    "no definition": ([ran("print(1)")], None),
    "no Python": ([turn("def f(x: I cannot")], None),
}


@pytest.mark.parametrize(("turns", "found"), REPLIES.values(), ids=REPLIES)
def test_one_definition_counts_in_every_loop(turns: list[Turn], found: int | None) -> None:
    assert value(turns) == found


def test_who_defined_it_in_the_repl_is_known() -> None:
    assert left_in_repl("f", (Written(TWO, ran=True),))
    assert not left_in_repl("f", (Written(TWO), Written("g = 1", ran=True)))


@given(st.lists(st.text(max_size=60), max_size=4), st.booleans())
def test_nothing_that_a_model_writes_breaks_the_reading(texts: list[str], ran: bool) -> None:
    pieces = written_in(turn(text, (CallTool("python", text), RAN), (Malformed("?"), RAISED)) for text in texts)
    definition_of("f", (*pieces, *(Written(text, ran) for text in texts)))

"""The code that a model wrote, whatever the loop, and the definition that a task asks for."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_loop.actions import Action, Answer, CallTool, Failure, FinalAnswer, Malformed, Observation, RunCode
from rlm_loop.messages import Reply
from rlm_loop.outcome import Turn
from rlm_loop.tasks.written import Written, definition_of, left_in_repl, written_in

TWO, THREE = "def f(x):\n    return 2 * x", "def f(x):\n    return 3 * x"
RAN = Observation(cause="repl_output")
UNREAD, DENIED, SKIPPED = (
    Observation(failure=Failure(kind, "not run"), cause="error") for kind in ("malformed", "denied", "skipped")
)
REFUSED = Observation(failure=Failure("rejected", "no number"), cause="error")
RAISED = Observation(failure=Failure("runtime", "NameError"), cause="repl_output")


def turn(reply: str, *done: tuple[Action, Observation]) -> Turn:
    return Turn(1, Reply(reply), tuple(a for a, _ in done), tuple(o for _, o in done))


def call(code: str) -> CallTool:
    return CallTool("python", json.dumps({"code": code}))


def value(turns: list[Turn]) -> int | None:
    """What `f(1)` of the definition that counts is."""
    source, names = definition_of("f", written_in(turns)), {}
    if source is None:
        return None
    exec(source, names)
    return names["f"](1)


@pytest.mark.parametrize(
    ("turns", "found"),
    [
        pytest.param([turn(f"```python\n{TWO}\n```", (RunCode(TWO), RAN))], 2, id="a cell"),
        pytest.param([turn("", (call(TWO), RAN))], 2, id="a call"),
        pytest.param([turn(TWO, (Answer(TWO), Observation(answer=FinalAnswer(TWO))))], 2, id="the reply is the answer"),
        pytest.param(
            [turn("", (CallTool("final_answer", "{}"), Observation(answer=FinalAnswer(f"```\n{TWO}\n```"))))],
            2,
            id="a final answer",
        ),
        pytest.param(
            [turn(f"```python\n{TWO}\n```", (Malformed("no call"), UNREAD))], None, id="a reply that was not read"
        ),
        pytest.param([turn("", (call(TWO), DENIED))], None, id="a call that was not made"),
        pytest.param([turn("", (RunCode(TWO), SKIPPED))], None, id="a cell that was skipped"),
        pytest.param([turn("", (CallTool("note", f'{{"code": {TWO!r}}}'), RAN))], None, id="another tool's argument"),
        pytest.param(
            [turn("", (RunCode(f"{TWO}\nfinal_answer = 1"), REFUSED))], 2, id="a cell whose answer is refused"
        ),
        pytest.param(
            [turn("", (call(TWO), RAN)), turn("", (CallTool("final_answer"), Observation(answer=FinalAnswer(THREE))))],
            2,
            id="the REPL comes before what was only written",
        ),
        pytest.param([turn("", (call(TWO), RAN)), turn("", (call(THREE), RAN))], 3, id="the last of the REPL"),
        pytest.param([turn("", (call(f"{TWO}\nassert f(1) == 3"), RAISED))], 2, id="a cell that raised behind it"),
        pytest.param(
            [turn("", (RunCode("K = 2"), RAN)), turn("", (RunCode("def f(x):\n    return K * x"), RAN))],
            2,
            id="what other cells defined",
        ),
        pytest.param([turn("", (call(f"{TWO}\nresult = f(None)"), RAISED))], 2, id="a try of it is left out"),
        pytest.param([turn("", (call("print(1)"), RAN))], None, id="no definition"),
        pytest.param([turn("def f(x: I cannot")], None, id="no Python"),
    ],
)
def test_one_definition_counts_in_every_loop(turns: list[Turn], found: int | None) -> None:
    assert value(turns) == found


def test_who_defined_it_in_the_repl_is_known() -> None:
    assert left_in_repl("f", (Written(TWO, ran=True),))
    assert not left_in_repl("f", (Written(TWO), Written("g = 1", ran=True)))


@given(st.lists(st.text(max_size=60), max_size=4), st.booleans())
def test_nothing_that_a_model_writes_breaks_the_reading(texts: list[str], ran: bool) -> None:
    pieces = written_in(turn(text, (CallTool("python", text), RAN), (Malformed("?"), RAISED)) for text in texts)
    definition_of("f", (*pieces, *(Written(text, ran) for text in texts)))

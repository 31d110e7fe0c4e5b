"""What a run comes to where it does not come to an answer: what is shown, what is never taken for an answer, and why it
ended; and answers that Python will not write out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rlm_loop import Budget, DirectAgent, LeanAgent, ReActAgent, ToolLoopAgent
from rlm_loop.agents import Rules
from rlm_loop.models import ScriptedModel
from rlm_loop.outcome import Outcome
from rlm_loop.replay import replay
from rlm_loop.tasks import Score, Task
from rlm_loop.tools import tool
from rlm_loop.traces import RunRecord, Trace, read
from tests.agents.replies import call, code, react, written

ONE, TWO, ANSWER = code("print(1)"), code("print(2)"), code("final_answer = 42")
EVERY = [ToolLoopAgent, LeanAgent, ReActAgent, DirectAgent]


def runs(agent: type[Any], *replies: Any, **settings: Any) -> Outcome:
    return agent(model=ScriptedModel(replies), **{"repl": "plain", **settings}).run("How much is it?")


@pytest.mark.parametrize(
    ("agent", "replies", "answer"),
    [
        (ToolLoopAgent, [ONE, TWO], None),
        (ToolLoopAgent, [f"Let me look.\n{ONE}", f"And again.\n{TWO}"], None),
        (ToolLoopAgent, [code("final_answer = 42\n1 / 0"), TWO], 42),
        (ToolLoopAgent, ["```bash\nls\n```", "```bash\nls -l\n```"], None),
        (LeanAgent, [written("python", code="1"), '{"name": "python", "argum'], None),
        (ReActAgent, [react("python", code="1")] * 2, None),
        (ReActAgent, ["Thought: it is 42, I think."] * 2, "Thought: it is 42, I think."),
        (ReActAgent, ["<think>no, 41</think>\nIt is 42."] * 2, "It is 42."),
        (ReActAgent, ["<think>It is 41.</think>"] * 2, None),
    ],
)
def test_at_a_limit_code_is_never_the_answer(agent: type[Any], replies: list[str], answer: Any) -> None:
    outcome = runs(agent, *replies, budget=Budget(steps=2))
    assert (outcome.stop, outcome.answer, outcome.last_reply) == ("steps", answer, replies[-1])


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        ("```", "Only ```python blocks are run, and there is none."),
        ("~~~\n", "Only ```python blocks are run, and there is none."),
        ("```json\n```", "Only ```python blocks are run, and there is none."),
        ("```python\n```", "The code block is empty."),
        ("```bash\nls\n```", "Only ```python blocks are run, not ```bash."),
        ("I look first:\n```sh\ncat a.txt\n```", "Only ```python blocks are run, not ```sh."),
        ("```shell\nls\n```\nIt is 42.", "Only ```python blocks are run, not ```shell."),
    ],
)
def test_a_reply_without_a_python_block_that_tries_one_is_no_answer(reply: str, told: str) -> None:
    outcome = runs(ToolLoopAgent, reply, ANSWER)
    assert (outcome.stop, outcome.answer) == ("answered", 42)
    assert [o.text for o in outcome.turns[0].observations] == [told]


def test_refused_answers_are_called_so() -> None:
    outcome = runs(ToolLoopAgent, "It is a lot.", "It is more.", "It is most.", answer_type=int)
    assert outcome.stop == "malformed"
    assert outcome.reason.startswith("3 refused answers in a row; the last: The answer does not fit")
    outcome = runs(ToolLoopAgent, "It is a lot.", "", "```python\n```", answer_type=int)
    assert outcome.reason.startswith("3 refused answers or unreadable replies in a row")


@pytest.mark.parametrize(
    ("budget", "polls", "temperature", "steps", "stop"),
    [
        (Budget(), False, 0.0, 2, "repeated"),
        (Budget(repeated=4), False, 0.0, 4, "repeated"),
        (Budget(repeated=None), False, 0.0, 6, "answered"),
        (Budget(), True, 0.0, 6, "answered"),
        (Budget(), False, 0.7, 6, "answered"),
        (Budget(), False, None, 6, "answered"),  # the provider's own, which is above 0
    ],
)
@pytest.mark.parametrize(
    ("agent", "look"), [(ToolLoopAgent, code("print(state())")), (LeanAgent, written("state"))], ids=["code", "calls"]
)
def test_what_ends_a_run_as_repeated(
    agent: type[Any], look: str, budget: Budget, polls: bool, temperature: float | None, steps: int, stop: str
) -> None:
    @tool(polls=polls)
    def state() -> str:
        """The state of the build."""
        return "building"

    model, trace = ScriptedModel([*[look] * 5, "It is built."]), Trace()
    model.temperature = temperature
    outcome = agent(model=model, tools=(state,), budget=budget, repl="plain").run("Wait for it.", trace=trace)
    assert (outcome.stop, outcome.steps) == (stop, steps)
    again = replay(RunRecord(tuple(trace.events)))  # has neither the tool nor the model
    assert again.same, str(again)


@tool
def look(n: int) -> str:
    """Look."""
    return str(10 // n)


SEEN, MISSED = call("look", n=1), [call("look", n="one"), call("look", n=0)]


@pytest.mark.parametrize(
    ("agent", "replies", "stop"),
    [
        (LeanAgent, [*MISSED, call("loook")], "tool_failures"),
        (LeanAgent, [*MISSED, SEEN, *MISSED, "Done."], "answered"),
        (ToolLoopAgent, [*(code(f"{n} / 0") for n in range(4)), "Done."], "answered"),
        (ToolLoopAgent, [code("1 / 0")] * 2, "repeated"),  # though the cell in the traceback has another number
        (ToolLoopAgent, [code("object()")] * 2, "repeated"),  # whatever its address
    ],
    ids=["failed calls", "one came off", "cells that raise", "the same error", "the same object"],
)
def test_what_ends_a_run_softly_and_what_does_not(agent: type[Any], replies: list[Any], stop: str) -> None:
    outcome = runs(agent, *replies, tools=[look], budget=Budget(tool_failures=3))
    assert (outcome.stop, outcome.steps) == (stop, len(replies))


def test_a_retried_call_with_a_key_is_no_repetition() -> None:
    @tool(mutates=True)
    def book(seat: int) -> str:
        """Book a seat."""
        return f"booked {seat}"

    outcome = runs(LeanAgent, *[written("book", seat=4, idempotency_key="k")] * 3, "Done.", tools=[book])
    assert (outcome.stop, outcome.steps) == ("answered", 4)


@pytest.mark.parametrize("value", [0, 1, 2.5])
def test_repeated_counts_from_two(value: float) -> None:
    with pytest.raises(ValueError, match=r"Budget\.repeated must be"):
        Budget(repeated=value)


@pytest.mark.parametrize("agent", EVERY)
@pytest.mark.parametrize(
    "reply", ["BLOCKED: the file is gone", "I looked everywhere.\n\n**BLOCKED:** the file is gone"]
)
def test_a_model_says_that_it_is_blocked(agent: type[Any], reply: str) -> None:
    outcome = runs(agent, reply, rules=Rules(may_block=True))
    assert (outcome.stop, outcome.reason, outcome.answer) == ("blocked", "the file is gone", None)


@pytest.mark.parametrize("agent", [ToolLoopAgent, LeanAgent, DirectAgent])
def test_a_line_of_that_form_is_an_answer_where_no_agent_may_block(agent: type[Any]) -> None:
    outcome = runs(agent, "open 8\nBLOCKED: deploy")
    assert (outcome.stop, outcome.answer) == ("answered", "open 8\nBLOCKED: deploy")


PROSE = ["It is 42.", "```json\n[1, 2]\n```", "42\n```"]
OTHER_BLOCKS = ["BLOCKED:", "It says\nBLOCKED: x\nin line 2.", "The door is BLOCKED: 3 times."]


@pytest.mark.parametrize("agent", [ToolLoopAgent, DirectAgent])
@pytest.mark.parametrize("reply", PROSE + OTHER_BLOCKS)
def test_prose_data_and_other_talk_of_blocks_are_answers(agent: type[Any], reply: str) -> None:
    assert runs(agent, reply, rules=Rules(may_block=True)).answered


@pytest.mark.parametrize("agent", EVERY)
def test_the_line_is_told_of_only_where_asked_for(agent: type[Any]) -> None:
    task = Task("t", "How much?", lambda attempt: Score(False, 0.0, ""))
    plain, told = (
        agent(model=ScriptedModel([]), rules=Rules(may_block=on)).first_request(task).prompt for on in (False, True)
    )
    assert "BLOCKED" not in str(plain)
    assert [s.cause for m in told.messages for s in m.spans if "BLOCKED" in s.text] == ["scaffold:may_block"]


def test_may_block_is_refused_where_a_reply_can_be_a_call_only() -> None:
    with pytest.raises(ValueError, match="leave may_block off"):
        LeanAgent(model=ScriptedModel([]), presentation="constrained", rules=Rules(may_block=True))


@pytest.mark.parametrize(
    ("answer", "value"),
    [
        ("10**5000", 10**5000),
        ("[-10**5000, {'a': (10**5000,)}]", [-(10**5000), {"a": (10**5000,)}]),
        ("{10**5000: 1}", {10**5000: 1}),
        (r"'\ud800'", "\ud800"),
    ],
    ids=["number", "within lists", "key", "surrogate"],
)
def test_an_answer_that_python_will_not_write_out_is_kept(tmp_path: Path, answer: str, value: Any) -> None:
    agent = ToolLoopAgent(ScriptedModel([code(f"final_answer({answer})")]), repl="plain")
    outcome = agent.run("What is it?", trace=tmp_path / "t.jsonl")
    assert (outcome.stop, outcome.answer) == ("answered", value)
    assert all([repr(outcome), str(outcome), outcome._repr_html_()])
    assert read(tmp_path / "t.jsonl").end["stop"] == "answered"

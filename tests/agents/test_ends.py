"""What a run comes to where it does not come to an answer: what is shown, what is never taken for an answer, and why it
ended."""

from __future__ import annotations

from typing import Any

import pytest

from rlm_loop import Budget, DirectAgent, LeanAgent, ReActAgent, ToolLoopAgent
from rlm_loop.agents import Rules
from rlm_loop.models import ScriptedModel
from rlm_loop.outcome import Outcome
from rlm_loop.replay import replay
from rlm_loop.tasks import Score, Task
from rlm_loop.tools import tool
from rlm_loop.traces import RunRecord, Trace

CODE = "```python\nprint({})\n```"


def runs(agent: type[Any], *replies: str, **settings: Any) -> Outcome:
    return agent(model=ScriptedModel(list(replies)), **{"repl": "plain", **settings}).run("How much is it?")


@pytest.mark.parametrize(
    ("agent", "replies", "answer"),
    [
        (ToolLoopAgent, [CODE.format(1), CODE.format(2)], None),
        (ToolLoopAgent, ["Let me look.\n" + CODE.format(1), "And again.\n" + CODE.format(2)], None),
        (ToolLoopAgent, ["```python\nfinal_answer = 42\n1 / 0\n```", CODE.format(2)], 42),
        (ToolLoopAgent, ["```bash\nls\n```", "```bash\nls -l\n```"], None),
        (LeanAgent, ['{"name": "python", "arguments": {"code": "1"}}', '{"name": "python", "argum'], None),
        (ReActAgent, ["Thought: I look.\nAction: python\nAction Input: 1"] * 2, None),
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
    outcome = runs(ToolLoopAgent, reply, "```python\nfinal_answer = 42\n```")
    assert (outcome.stop, outcome.answer) == ("answered", 42)
    assert [o.text for o in outcome.turns[0].observations] == [told]


@pytest.mark.parametrize("reply", ["It is 42.", "```json\n[1, 2]\n```", "42\n```"])
def test_prose_and_data_are_answers_still(reply: str) -> None:
    assert runs(ToolLoopAgent, reply, rules=Rules(may_block=True)).answered
    assert runs(DirectAgent, reply).answered


def test_refused_answers_are_called_so() -> None:
    outcome = runs(ToolLoopAgent, "It is a lot.", "It is more.", "It is most.", answer_type=int)
    assert outcome.stop == "malformed"
    assert outcome.reason.startswith("3 refused answers in a row; the last: The answer does not fit")
    outcome = runs(ToolLoopAgent, "It is a lot.", "", "```python\n```", answer_type=int)
    assert outcome.reason.startswith("3 refused answers or unreadable replies in a row")


LOOK = CODE.format("state()")


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
@pytest.mark.parametrize("agent", [ToolLoopAgent, LeanAgent])
def test_what_ends_a_run_as_repeated(
    agent: type[Any], budget: Budget, polls: bool, temperature: float | None, steps: int, stop: str
) -> None:
    @tool(polls=polls)
    def state() -> str:
        """The state of the build."""
        return "building"

    last = "It is built." if agent is LeanAgent else "```python\nfinal_answer = 1\n```"
    model = ScriptedModel([*['{"name": "state", "arguments": {}}' if agent is LeanAgent else LOOK] * 5, last])
    model.temperature = temperature  # type: ignore[attr-defined]
    trace = Trace()
    outcome = agent(model=model, tools=(state,), budget=budget, repl="plain").run("Wait for it.", trace=trace)
    assert (outcome.stop, outcome.steps) == (stop, steps)
    again = replay(RunRecord(tuple(trace.events)))  # has neither the tool nor the model
    assert again.same, str(again)


def test_a_retried_call_with_a_key_is_no_repetition() -> None:
    @tool(mutates=True)
    def book(seat: int) -> str:
        """Book a seat."""
        return f"booked {seat}"

    call = '{"name": "book", "arguments": {"seat": 4, "idempotency_key": "k"}}'
    outcome = runs(LeanAgent, call, call, call, "Done.", tools=[book])
    assert (outcome.stop, outcome.steps) == ("answered", 4)


@pytest.mark.parametrize("value", [0, 1, 2.5])
def test_repeated_counts_from_two(value: float) -> None:
    with pytest.raises(ValueError, match=r"Budget\.repeated must be"):
        Budget(repeated=value)  # type: ignore[arg-type]


@pytest.mark.parametrize("agent", [ToolLoopAgent, LeanAgent, ReActAgent, DirectAgent])
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


@pytest.mark.parametrize("reply", ["BLOCKED:", "It says\nBLOCKED: x\nin line 2.", "The door is BLOCKED: 3 times."])
def test_other_talk_of_blocks_is_an_answer(reply: str) -> None:
    assert runs(ToolLoopAgent, reply, rules=Rules(may_block=True)).answered


@pytest.mark.parametrize("agent", [ToolLoopAgent, LeanAgent, ReActAgent, DirectAgent])
def test_the_line_is_told_of_only_where_asked_for(agent: type[Any]) -> None:
    task = Task("t", "How much?", lambda attempt: Score(False, 0.0, ""))
    plain, told = (
        agent(model=ScriptedModel([]), rules=Rules(may_block=on)).first_request(task).prompt for on in (False, True)
    )
    assert "BLOCKED" not in str(plain)
    assert [s.cause for m in told.messages for s in m.spans if "BLOCKED" in s.text] == ["scaffold:may_block"]


def test_hooks_and_turns_say_how_many_steps_remain() -> None:
    told: list[Any] = []

    class Hook:
        def on_step_start(self, turn_index: int, steps_remaining: int | None) -> None:
            told.append((turn_index, steps_remaining))

        def on_step_end(self, steps_remaining: int | None) -> None:
            told.append(steps_remaining)

    trace = Trace()
    agent = ToolLoopAgent(
        model=ScriptedModel([CODE.format(1), "one"]), repl="plain", hooks=(Hook(),), budget=Budget(steps=3)
    )
    agent.run("?", trace=trace)
    assert told == [(1, 3), 2, (2, 2), 1]
    assert [e["steps_remaining"] for e in trace.events if e["event"] == "turn"] == [2, 1]


def test_may_block_is_refused_where_a_reply_can_be_a_call_only():
    with pytest.raises(ValueError, match="leave may_block off"):
        LeanAgent(model=ScriptedModel([]), presentation="constrained", rules=Rules(may_block=True))

"""Agents end to end: what a run comes to where it does not come to an answer, what is never taken for one, and why it
ended; answers that Python will not write out; limits, errors, traces, hooks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rlm_loop import Budget, DirectAgent, LeanAgent, ReActAgent, ToolLoopAgent
from rlm_loop.accounting import UnknownPrice
from rlm_loop.agents import Rules
from rlm_loop.models import ModelError, Reply, ScriptedModel
from rlm_loop.outcome import Outcome
from rlm_loop.replay import replay
from rlm_loop.tasks import Score, Task
from rlm_loop.tools import tool
from rlm_loop.traces import RunRecord, Trace, read
from tests.agents.replies import LOCAL, call, calls, code, named, react, written

ONE, TWO, ANSWER = code("print(1)"), code("print(2)"), code("final_answer = 42")
EVERY = [ToolLoopAgent, LeanAgent, ReActAgent, DirectAgent]


def runs(agent: type[Any], *replies: Any, **settings: Any) -> Outcome:
    return agent(model=ScriptedModel(replies), **{"repl": "plain", **settings}).run("How much is it?")


@pytest.mark.parametrize(
    ("agent", "replies", "answer"),
    [
        (ToolLoopAgent, [f"Let me look.\n{ONE}", f"And again.\n{TWO}"], None),
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
        ("```python\n```", "The code block is empty."),
        ("I look first:\n```sh\ncat a.txt\n```\nIt is 42.", "Only ```python blocks are run, not ```sh."),
    ],
)
def test_a_reply_without_a_python_block_that_tries_one_is_no_answer(reply: str, told: str) -> None:
    outcome = runs(ToolLoopAgent, reply, ANSWER)
    assert (outcome.answer, [o.text for o in outcome.turns[0].observations]) == (42, [told])


def test_refused_answers_end_a_run() -> None:
    outcome = runs(ToolLoopAgent, "It is a lot.", "It is more.", "It is most.", answer_type=int)
    assert outcome.stop == "malformed"
    assert outcome.reason.startswith(
        "3 unreadable replies or refused answers in a row; the last: The answer does not fit"
    )


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
    state = named("state", lambda: "building", polls=polls)
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


BOOK = named("book", lambda seat: f"booked {seat}", mutates=True)
BOOKED = written("book", seat=4, idempotency_key="k")
SEEN, MISSED = call("look", n=1), [call("look", n="one"), call("look", n=0)]


@pytest.mark.parametrize(
    ("agent", "replies", "stop"),
    [
        (LeanAgent, [*MISSED, call("loook")], "tool_failures"),
        (LeanAgent, [*MISSED, SEEN, *MISSED, "Done."], "answered"),
        (LeanAgent, [BOOKED, BOOKED, BOOKED, "Done."], "answered"),
        (ToolLoopAgent, [*(code(f"{n} / 0") for n in range(4)), "Done."], "answered"),
        (ToolLoopAgent, [code("1 / 0")] * 2, "repeated"),  # though the cell in the traceback has another number
        (ToolLoopAgent, [code("object()")] * 2, "repeated"),  # whatever its address
    ],
    ids=["failed calls", "one came off", "retried by key", "cells that raise", "the same error", "the same object"],
)
def test_what_ends_a_run_softly_and_what_does_not(agent: type[Any], replies: list[Any], stop: str) -> None:
    outcome = runs(agent, *replies, tools=[look, BOOK], budget=Budget(tool_failures=3))
    assert (outcome.stop, outcome.steps) == (stop, len(replies))


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


@pytest.mark.parametrize(
    ("answer", "value"),
    [
        ("10**5000", 10**5000),
        ("[{10**5000: (-10**5000,)}]", [{10**5000: (-(10**5000),)}]),
        (r"'\ud800'", "\ud800"),
    ],
    ids=["number", "within others", "surrogate"],
)
def test_an_answer_that_python_will_not_write_out_is_kept(tmp_path: Path, answer: str, value: Any) -> None:
    agent = ToolLoopAgent(ScriptedModel([code(f"final_answer({answer})")]), repl="plain")
    outcome = agent.run("What is it?", trace=tmp_path / "t.jsonl")
    assert (outcome.stop, outcome.answer) == ("answered", value)
    assert all([repr(outcome), str(outcome), outcome._repr_html_()])
    assert read(tmp_path / "t.jsonl").end["stop"] == "answered"


@pytest.mark.parametrize(
    ("budget", "stop", "calls"),
    [
        (Budget(steps=2), "steps", 2),
        (Budget(steps=0), "steps", 0),
        (Budget(calls=2), "calls", 2),
        (Budget(calls=0), "calls", 0),
        (Budget(tokens=0), "tokens", 0),
        (Budget(seconds=0), "seconds", 0),
        (Budget(cost=0), "cost", 0),
        (Budget(output_tokens=12), "tokens", 2),
    ],
)
def test_every_limit_ends_the_run_and_is_named(budget: Budget, stop: str, calls: int) -> None:
    model = ScriptedModel([code(f"print({n})") for n in range(9)], price=(0.1, 0.1))
    outcome = ToolLoopAgent(model=model, budget=budget).run("Count.")
    assert (outcome.stop, outcome.usage.calls, outcome.answered, outcome.reason != "") == (stop, calls, False, True)


def test_a_cost_limit_needs_a_price() -> None:
    model = ScriptedModel(["x"])
    with pytest.raises(UnknownPrice):
        DirectAgent(model=model, budget=Budget(cost=1.0)).run("?")
    assert model.prompts == []


def test_a_failing_model_leaves_everything_on_the_exception(tmp_path: Path) -> None:
    model, path = ScriptedModel([code("final_answer = 5\n1/0"), ModelError("start it again")]), tmp_path / "t.jsonl"
    with pytest.raises(ModelError, match="start it again") as caught:
        ToolLoopAgent(model=model).run("?", trace=path)
    error: Any = caught.value
    assert (error.partial_answer, error.trace, error.usage.calls) == (5, str(path), error.outcome.usage.calls)
    assert error.outcome.stop == read(path).end["stop"] == "failed"


class Heard:
    """Writes down every event of a run; raises after each step."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("on_") or name == "on_text":
            raise AttributeError(name)

        def hear(**values: Any) -> None:
            more = [values[key] for key in ("node", "tool", "turn_index", "steps_remaining") if key in values]
            ended = [values["result"].ok] if "result" in values else [values["ok"]] if "ok" in values else []
            self.events.append(" ".join(str(part) for part in (name.removeprefix("on_"), *more, *ended)))
            if name == "on_step_end":
                raise RuntimeError("boom")

        return hear


def test_hooks_hear_of_steps_and_tools_and_one_that_raises_is_harmless(caplog: pytest.LogCaptureFixture) -> None:
    heard, trace = Heard(), Trace()
    double = named("double", lambda n: 2 * n)
    replies = [code("x = double(4)\nfinal_answer = llm_query('?', context='c')"), code("final_answer = double(1)")]
    agent = ToolLoopAgent(ScriptedModel(replies), Budget(steps=3), tools=[double], max_depth=2, hooks=(heard,))
    assert agent.run("?", context="c", trace=trace).answer == "2"
    assert heard.events == [
        "run_start",
        "step_start 0 1 3",
        "tool_start 0 double",
        "tool_end 0 double True",
        "tool_start 0 llm_query",
        "subcall_start 0.1",
        "step_start 0.1 1 3",
        "tool_start 0.1 double",
        "tool_end 0.1 double True",
        "step_end 0.1 2",
        "subcall_end 0.1 True",
        "tool_end 0 llm_query True",
        "step_end 0 2",
        "run_end",
    ]
    assert "a hook raised in on_step_end" in caplog.text
    assert [e["steps_remaining"] for e in trace.events if e["event"] == "turn"] == [2, 2]


def test_a_hook_hears_of_calls_that_fail() -> None:
    heard = Heard()
    LeanAgent(model=ScriptedModel([call("nothing"), "done"]), hooks=(heard,)).run("?")
    assert [event for event in heard.events if event.startswith("tool")] == ["tool_end 0 nothing False"]


def test_the_context_is_told_in_a_line_and_never_written_down(tmp_path: Path) -> None:
    model, path = ScriptedModel([code("final_answer = context.count('needle')")]), tmp_path / "t.jsonl"
    outcome = ToolLoopAgent(model=model).run("How many needles?", context="needle " * 30_000, trace=path)
    assert (outcome.answer, outcome.answer_form) == (30_000, "object")
    told = model.prompts[0].messages[-1].text
    assert ("210,000 characters" in told, len(told) < 400) == (True, True)
    assert path.stat().st_size < 20_000
    assert read(path).start["context"]["bytes"] == 210_000


def test_a_lean_loop_can_do_without_its_answer_tool() -> None:
    model = ScriptedModel([call("final_answer", answer=1), "42"])
    outcome = LeanAgent(model=model, answer_tool=False, presentation="native").run("What is 6 times 7?")
    assert (outcome.answer, outcome.answer_form, outcome.stop, outcome.steps) == ("42", "text", "answered", 2)
    assert "final_answer" not in str(model.prompts[0].tools)
    assert outcome.turns[0].observations[0].failure is not None  # it called what is not there
    listed = LeanAgent(model=(said := ScriptedModel(["42"], name=LOCAL)), answer_tool=False)
    assert listed.run("?").answer == "42"
    assert "final_answer" not in said.prompts[0].messages[0].text


@pytest.mark.parametrize(
    "reply",
    [code("print(1)", "print(2)"), calls(("python", {"code": "print(1)"}), ("final_answer", {"answer": 5}))],
    ids=["cells", "calls"],
)
def test_one_action_a_reply_skips_the_others(reply: str | Reply) -> None:
    agent, last = (ToolLoopAgent, code("final_answer = 3")) if isinstance(reply, str) else (LeanAgent, "3")
    outcome = agent(model=ScriptedModel([reply, last]), rules=Rules(one_action=True)).run("?")
    first, second = outcome.turns[0].observations
    assert (first.text.strip(), first.ok) == ("1", True)
    assert (second.failure and second.failure.kind, outcome.steps) == ("skipped", 2)

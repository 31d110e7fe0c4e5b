"""Sessions, conversations within one, times, and the traces that are written of them."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from wires import TOOL, ask, assistant, post, system, user  # pyright: ignore

from rlm_loop import Budget, LeanAgent, ToolLoopAgent
from rlm_loop.accounting import tree_of
from rlm_loop.agents import outcome_of
from rlm_loop.messages import Prompt, Reply, ToolCall, Usage
from rlm_loop.meter import metered_endpoint, read_meter
from rlm_loop.models import OpenAICompatibleModel, RecordedModel, ScriptedModel
from rlm_loop.replay import ledger_of
from rlm_loop.traces import TraceError, read

SECRET = "sk-very-secret-key-1234567890"


def metered(replies: Sequence[Any], *requests: Sequence[dict[str, Any]]) -> Any:
    """An endpoint that was asked these conversations in turn."""
    with metered_endpoint(ScriptedModel(replies)) as url:
        for said in requests:
            assert ask(url, *said).status_code == 200
    return url


def nodes(url: Any) -> list[tuple[str, int]]:
    return [(call.node, call.turn) for call in url.meter.calls]


@pytest.mark.parametrize(
    ("headers", "query", "name"),
    [
        ({}, "", "default"),
        ({"Authorization": f"Bearer {SECRET}"}, "", "key-c9b3000a74"),
        ({"x_api_key": SECRET}, "", "key-c9b3000a74"),
        ({"x_goog_api_key": SECRET}, "", "key-c9b3000a74"),
        ({}, f"?key={SECRET}", "key-c9b3000a74"),
    ],
)
def test_sessions_by_key(headers: dict[str, str], query: str, name: str) -> None:
    with metered_endpoint(ScriptedModel(["ok"])) as url:
        post(url, {"messages": [user("Q")]}, f"/chat/completions{query}", **headers)
    assert list(url.meter.sessions) == [name]


def test_sessions_by_path() -> None:
    with metered_endpoint(ScriptedModel(["a", "b", "c"])) as url:
        for address in (url.session("one"), url.session("two"), url.session("two").removesuffix("/v1")):
            assert ask(address, user("Q")).status_code == 200
        assert post(url.root, {"messages": [user("Q")]}, "/s/a%2Fb/v1/chat/completions").status_code == 400
    assert {name: len(s.calls) for name, s in url.meter.sessions.items()} == {"one": 1, "two": 2}


COLUMNS = ["session", "node", "call", "turn", "cause", "detail", "origin_turn", "tokens", "resent", "cached", "written"]


def test_a_growing_conversation() -> None:
    with metered_endpoint(ScriptedModel(["one", "two", "three"])) as url:
        said = [system("Rules."), user("The task of the day.")]
        for i in range(3):
            reply = ask(url, *said).json()["choices"][0]["message"]
            said += [reply, user(f"Result {i}: something new")]
    assert nodes(url) == [("0", 1), ("0", 2), ("0", 3)]
    frame = url.meter.frame()
    assert list(frame.columns) == COLUMNS
    last = frame[(frame.call == 3) & (frame.cause != "template")].set_index(["cause", "origin_turn"])
    assert dict(last.tokens) == {
        ("system", 0): 2,
        ("task", 0): 5,
        ("assistant", 1): 1,
        ("user", 1): 6,
        ("assistant", 2): 1,
        ("user", 2): 6,
    }
    assert dict(last.resent) == {**dict(last.tokens), ("assistant", 2): 0, ("user", 2): 0}
    assert list(frame.groupby("call").tokens.sum()) == [call.input_tokens for call in url.meter.calls]


def test_sub_calls_other_tasks_and_a_task_begun_again_are_conversations_of_their_own() -> None:
    main, sub = [system("Rules."), user("Main task, long enough")], user("Sub-call: summarise this")
    went = [*main, assistant("0"), user("went well")]
    other = [system("Rules."), user("Quite another task")]
    more = [sub, assistant("1"), user("shorter")], [*went, assistant("2"), user("and on")]
    url = metered("012345", main, [sub], went, other, *more)
    assert nodes(url) == [("0", 1), ("0.1", 1), ("0", 2), ("0.2", 1), ("0.1", 2), ("0", 3)]
    again = metered("abc", [sub], [sub, assistant("a"), user("on")], [sub])
    assert nodes(again) == [("0", 1), ("0", 2), ("0.1", 1)]


def test_the_longest_beginning_wins() -> None:
    same = [user("same start"), assistant("a")]
    left, right = [*same, user("left")], [*same, user("right")]
    url = metered("abcd", same[:1], left, right, [*left, assistant("b"), user("on")])
    assert nodes(url) == [("0", n) for n in (1, 2, 3, 4)]  # one conversation that was taken back in between
    frame = url.meter.frame()
    assert list(frame[(frame.call == 4) & (frame.cause == "user")].resent) == [1, 0]


def test_a_history_written_anew_into_one_message_goes_on() -> None:
    brief = "Inputs: a table of sales.\n{}Respond with the next piece of code."
    first, second = "Reasoning: I look at the table first.\nprint(table)", "Reasoning: now the sum.\nprint(sum(table))"
    histories = ("", f"{first}\nOutput: 1 2 3\n", f"{first}\nOutput: 1 2 3\n{second}\nOutput: 6\n")
    said = [*map(brief.format, histories), "Inputs: other things.\nRespond with the next piece of code."]
    url = metered([first, second, "done", "x"], *([system("Fields."), user(text)] for text in said))
    assert nodes(url) == [("0", 1), ("0", 2), ("0", 3), ("0.1", 1)]
    frame = url.meter.frame()
    causes = frame[frame.call == 3].groupby("cause").tokens.sum()
    assert causes["scaffold:echo"] > causes["user"] > 0
    assert causes["task"] == frame[(frame.call == 1) & (frame.cause == "task")].tokens.sum()


def test_requests_side_by_side_are_conversations_of_their_own() -> None:
    both = threading.Barrier(2, timeout=30)

    def wait(_: Prompt) -> str:
        both.wait()
        return "ok"

    model = ScriptedModel([wait, wait])
    model.slots = 2  # pyright: ignore
    with metered_endpoint(model) as url, ThreadPoolExecutor(2) as pool:
        assert list(pool.map(lambda _: ask(url, user("the same")).status_code, range(2))) == [200, 200]
    assert sorted(nodes(url)) == [("0", 1), ("0.1", 1)]
    assert sorted(call.harness_seconds is None for call in url.meter.calls) == [True, True]


def test_times_add_up() -> None:
    class Slow(ScriptedModel):
        def complete(self, prompt: Prompt, *, max_tokens: int | None = None) -> Reply:
            return replace(super().complete(prompt, max_tokens=max_tokens), seconds=0.25)

    with metered_endpoint(Slow(["a", "b"])) as url:
        ask(url, user("Q"))
        ask(url, user("Q"), assistant("a"), user("on"))
    times = url.meter.times()
    assert (list(times.call), list(times.model_seconds)) == ([1, 2], [0.25, 0.25])
    assert times.harness_seconds.isna().tolist() == [True, False]
    assert (times.harness_seconds[1:] >= 0).all()
    assert (times.meter_seconds >= 0).all()


def test_another_models_tokenizer_may_count() -> None:
    reply = Reply("Hello.", (ToolCall("c", "add", '{"a": 1}'),), usage=Usage(1000, 1000))
    with metered_endpoint(ScriptedModel([reply]), counter=ScriptedModel([])) as url:
        usage = ask(url, system("Be kind."), user("Hi")).json()["usage"]
    assert usage == {"prompt_tokens": 14, "completion_tokens": 2 + 10, "total_tokens": 26}
    assert url.meter.sessions["default"].ledger.by_cause() == {"template": 11, "system": 2, "task": 1}
    assert url.meter.sessions["default"].ledger.calls[0].exact


def session(url: Any) -> None:
    said: list[Any] = [system("Rules."), user("Add the numbers.")]
    reply = ask(url, *said, tools=[TOOL]).json()["choices"][0]["message"]
    ask(url, user("Sub-call"))
    said += [reply, {"role": "tool", "tool_call_id": "c1", "content": "3"}]
    ask(url, *said, tools=[TOOL], temperature=1.5)
    ask(url, user(7))


SCRIPT = [Reply("", (ToolCall("c1", "add", '{"a": 1}'),)), "sub-answer", "It is 3."]


@pytest.fixture
def recorded(tmp_path: Path) -> tuple[Any, Path]:
    with metered_endpoint(ScriptedModel(SCRIPT, name="local:m"), out=tmp_path) as url:
        session(url)
    return url, tmp_path / "default.jsonl"


def test_a_session_is_a_trace(recorded: tuple[Any, Path]) -> None:
    url, file = recorded
    record = read(file)
    outcome = outcome_of(record)
    said = (outcome.question, outcome.answer, outcome.stop, outcome.agent)
    assert said == ("Add the numbers.", "It is 3.", "answered", "metered")
    assert [(a.name, o.text) for t in outcome.turns[:1] for a, o in zip(t.actions, t.observations)] == [("add", "3")]
    assert ledger_of(record).calls == url.meter.sessions["default"].ledger.calls
    tree = tree_of(record)
    assert [(n.node, n.kind, n.steps, n.ok) for n in tree.nodes] == [("0", "agent", 2, True), ("0.1", "agent", 1, True)]
    assert (tree.nodes[1].title, tree.nodes[1].turn) == ("Sub-call", 1)


def test_figures_come_back_from_the_trace_and_it_can_be_served_again(recorded: tuple[Any, Path]) -> None:
    url, file = recorded
    for path in (file, file.parent):
        figures = read_meter(path)
        assert figures.frame().equals(url.meter.frame())
        assert figures.times().equals(url.meter.times())
        assert figures.trees() == url.meter.figures.trees()
    assert [c.not_applied for c in figures.calls] == [{}, {}, {"temperature": 1.5}, {}]
    with metered_endpoint(RecordedModel.from_trace(file)) as again:
        session(again)
    assert [call.status for call in again.meter.calls] == [200, 200, 200, 400]


def test_requests_refused_before_the_first_good_one_are_in_the_trace(tmp_path: Path) -> None:
    with metered_endpoint(ScriptedModel(["ok"]), out=tmp_path) as url:
        post(url, b"{")
        ask(url, user("Q"))
        post(url.session("bad"), b"{")
    assert [call.status for call in read_meter(tmp_path / "default.jsonl").calls] == [400, 200]
    assert [call.status for call in read_meter(tmp_path / "bad.jsonl").calls] == [400]
    assert outcome_of(read(tmp_path / "bad.jsonl")).stop == "failed"


def test_a_trace_cut_in_the_middle_keeps_what_was_whole(recorded: tuple[Any, Path]) -> None:
    url, file = recorded
    lines = file.read_text().splitlines(keepends=True)
    second = [i for i, line in enumerate(lines) if json.loads(line)["event"] == "metered"][1]
    file.write_text("".join(lines[: second + 1]) + lines[second + 1][:20])
    assert read_meter(file).calls == [replace(call, arrived=0.0) for call in url.meter.calls[:2]]
    assert "no end" in outcome_of(read(file)).reason


def test_a_folder_without_traces_and_a_place_that_holds_none(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="holds no traces"):
        read_meter(tmp_path)
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(TraceError, match="choose another folder"), metered_endpoint(ScriptedModel([]), out=file):
        pass


CODE = '{"code": "print(6*7)"}'
CALLS = ToolCall("c1", "python", CODE), ToolCall("c2", "final_answer", '{"answer": 42}')
CASES: list[tuple[Any, list[Any]]] = [
    (ToolLoopAgent, ["```python\nprint(6 * 7)\n```", "```python\nfinal_answer = 42\n```"]),
    (LeanAgent, [Reply("", (call,), "tool_calls") for call in CALLS]),
]


@pytest.mark.parametrize(("kind", "script"), CASES)
def test_the_meter_agrees_with_the_ledger_of_our_own_agents(kind: Any, script: list[Any]) -> None:
    with metered_endpoint(ScriptedModel(script)) as url:
        model = OpenAICompatibleModel("local:any", url, temperature=None, seed=None)
        outcome = kind(model=model, budget=Budget(steps=5)).run("What is 6 * 7?")
    assert (outcome.stop, outcome.steps) == ("answered", 2)
    ledger, used = url.meter.sessions["default"].ledger, outcome.usage
    for count in ("input_tokens", "output_tokens", "cache_read_tokens"):
        assert getattr(ledger.usage, count) == getattr(used, count)
    assert sum(ledger.by_cause().values()) == sum(outcome.ledger.by_cause().values()) == used.input_tokens
    assert nodes(url) == [("0", 1), ("0", 2)]

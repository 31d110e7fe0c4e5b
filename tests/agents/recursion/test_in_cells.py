"""Recursion as a model meets it: agents of every dialect, cells in a process of their own."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from rlm_loop import Budget, LeanAgent, ReActAgent, ToolLoopAgent
from rlm_loop.agents import SubCalls, outcome_of
from rlm_loop.messages import Prompt
from rlm_loop.models import ModelError, ScriptedModel
from rlm_loop.traces import read


def code(text: str) -> str:
    return f"```python\n{text}\n```"


def run(cell: str, *replies: Any, **settings: Any) -> Any:
    return ToolLoopAgent(model=ScriptedModel([code(cell), *replies]), **settings).run("?", context="c")


def test_answers_of_a_batch_are_strings_and_may_be_the_answer() -> None:
    outcome = run(
        "rs = llm_query_batched(['a', 'b'])\nfinal_answer = [', '.join(rs), rs]",
        "A",
        "B",
        subcalls=SubCalls(concurrency=1),
    )
    assert outcome.answer == ["A, B", ["A", "B"]]


@pytest.mark.parametrize(
    ("cell", "settings", "shown"),
    [
        (
            "try:\n    llm_query('x')\nexcept SubCallError as e:\n    final_answer = f'{type(e).__name__}: {e}'",
            {},
            "no",
        ),
        ("try:\n    str(llm_query_batched(['x'])[0])\nexcept SubCallError as e:\n    final_answer = str(e)", {}, "no"),
        ("try:\n    llm_query('x')\nexcept NameError as e:\n    final_answer = str(e)", {"max_depth": 0}, "llm_query"),
    ],
)
@pytest.mark.parametrize("repl", ["subprocess", "restricted"])
def test_cells_can_catch_what_a_sub_call_raises(cell: str, settings: dict[str, Any], shown: str, repl: str) -> None:
    if repl == "restricted":
        pytest.importorskip("RestrictedPython")
    outcome = run(cell, ModelError("no route"), repl=repl, **settings)
    assert shown in outcome.answer


def test_the_error_is_named_for_the_model() -> None:
    outcome = run("llm_query('x')", ModelError("no route"), code("final_answer = 1"))
    assert outcome.turns[0].observations[0].text.splitlines()[-1] == "SubCallError: no route"


def test_threads_and_comprehensions_of_a_cell_ask_at_the_same_time() -> None:
    barrier = threading.Barrier(4, timeout=30)

    def answer(prompt: Prompt) -> str:
        barrier.wait()
        return prompt.messages[-1].text.upper()

    cell = """
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(4) as pool:
    got = list(pool.map(llm_query, ['a', 'b', 'c', 'd']))
final_answer = got
"""
    assert run(cell, *[answer] * 4).answer == ["A", "B", "C", "D"]
    assert run("final_answer = [llm_query(p) for p in 'ab']", "A", "B").answer == ["A", "B"]


def test_a_sub_agent_has_a_repl_and_a_context_of_its_own() -> None:
    outcome = run(
        "x = 1\nfinal_answer = llm_query('How long?', context=[1, 2, 3])",
        code("final_answer = [len(context), 'x' in globals()]"),
        max_depth=2,
    )
    assert outcome.answer == "[3, False]"


def test_a_sub_agent_gets_a_table_as_csv() -> None:
    pytest.importorskip("pandas")
    outcome = run(
        "import pandas as pd\nrows = pd.DataFrame({'n': range(5)})\n"
        "final_answer = llm_query('Sum?', context=rows.iloc[3:])",
        code("final_answer = sum(int(row.split(',')[1]) for row in context.splitlines()[1:])"),
        max_depth=2,
    )
    assert outcome.answer == "7"


def test_the_roots_checks_are_not_for_sub_agents() -> None:
    outcome = run("final_answer = len(llm_query('word?'))", code("final_answer = 'word'"), max_depth=2, answer_type=int)
    assert outcome.answer == 4


def test_a_cell_that_failed_may_ask_again_and_pays_again() -> None:
    cell = "a = llm_query('x')\n"
    replies = [code(cell + "1 / 0"), "A", code(cell + "final_answer = a"), "A"]
    outcome = ToolLoopAgent(model=ScriptedModel(replies)).run("?", context="c")
    assert (outcome.answer, outcome.usage.calls) == ("A", 4)


NATIVE = '{{"name": "{name}", "arguments": {arguments}}}'
LEAN = (
    NATIVE.format(name="llm_query_batched", arguments=json.dumps({"prompts": ["a", "b"]})),
    NATIVE.format(name="final_answer", arguments=json.dumps({"answer": "done"})),
)
REACT = (
    'Thought: ask.\nAction: llm_query_batched\nAction Input: {"prompts": ["a", "b"]}',
    'Thought: done.\nAction: finish\nAction Input: {"answer": "done"}',
)


@pytest.mark.parametrize(("agent", "replies"), [(LeanAgent, LEAN), (ReActAgent, REACT)])
def test_every_dialect_has_the_same_tools(agent: Any, replies: tuple[str, str]) -> None:
    model = ScriptedModel([replies[0], "A", ModelError("no route"), replies[1]], name="local:scripted")
    outcome = agent(model=model, subcalls=SubCalls(depth=1, concurrency=1)).run("?", context="c")
    assert outcome.answer == "done"
    assert outcome.turns[0].observations[0].text == "['A', <failed: no route>]"
    assert [c.depth for c in outcome.ledger.calls] == [0, 1, 0]


@pytest.mark.parametrize("agent", [ToolLoopAgent, LeanAgent, ReActAgent])
def test_every_dialect_is_told_of_them_in_the_same_words(agent: Any) -> None:
    model = ScriptedModel([ModelError("x")], name="local:scripted")
    with pytest.raises(ModelError):
        agent(model=model, max_depth=1).run("?", context="c")
    text = "".join(m.text for m in model.prompts[0].messages)
    assert "Ask a fresh model, which sees only the prompt and the context." in text
    assert "llm_query_batched" in text


@pytest.mark.parametrize(("agent", "told"), [(ToolLoopAgent, True), (LeanAgent, False), (ReActAgent, False)])
def test_only_the_code_loop_offers_sub_calls_unasked(agent: Any, told: bool) -> None:
    model = ScriptedModel([ModelError("x")], name="local:scripted")
    with pytest.raises(ModelError):
        agent(model=model).run("?", context="c")
    assert ("llm_query" in "".join(m.text for m in model.prompts[0].messages)) is told


def test_the_trace_holds_the_tree(tmp_path: Path) -> None:
    inner = code("final_answer = llm_query('deep') + '!'")
    model = ScriptedModel([code("final_answer = llm_query_batched(['p', 'q'])"), inner, "x", inner, "y"])
    file = tmp_path / "t.jsonl"
    outcome = ToolLoopAgent(model=model, subcalls=SubCalls(depth=2, concurrency=1)).run("?", trace=file)
    assert sorted(outcome.answer) == ["x!", "y!"]
    record = read(file)
    starts = {e["node"]: e for e in record.of("subcall_start")}
    assert {n: (e["parent"], e["kind"], e["depth"], e["turn"], e["batch"]) for n, e in starts.items()} == {
        "0.1": ("0", "agent", 1, 1, "0.b1"),
        "0.2": ("0", "agent", 1, 1, "0.b1"),
        "0.1.1": ("0.1", "completion", 2, 1, None),
        "0.2.1": ("0.2", "completion", 2, 1, None),
    }
    assert [record.texts[starts[n]["prompt_sha256"]] for n in ("0.1", "0.2", "0.1.1")] == ["p", "q", "deep"]
    ends = {e["node"]: e for e in record.of("subcall_end")}
    assert {n: (e["ok"], e["usage"]["calls"], e["stop"]) for n, e in ends.items()} == {
        "0.1": (True, 2, "answered"),
        "0.2": (True, 2, "answered"),
        "0.1.1": (True, 1, None),
        "0.2.1": (True, 1, None),
    }
    assert sorted((e["node"], e["turn"]) for e in record.of("turn")) == [("0", 1), ("0.1", 1), ("0.2", 1)]
    for event in ("request", "reply", "turn", "run_end"):
        assert all("node" in e for e in record.of(event))
    assert record.end is not None
    assert record.end["node"] == "0"
    again = outcome_of(record)
    assert again.ledger.rows == outcome.ledger.rows
    assert [c.node for c in again.ledger.calls] == [c.node for c in outcome.ledger.calls]
    assert again.usage == outcome.usage


def test_sub_calls_between_turns_do_not_make_the_trace_grow_faster(tmp_path: Path) -> None:
    cells = [code(f"print(llm_query('x{i}'))") for i in range(6)]
    replies = [r for c in cells for r in (c, "A")]
    ToolLoopAgent(model=ScriptedModel([*replies, code("final_answer = 1")])).run("?", trace=tmp_path / "t.jsonl")
    root = [e for e in read(tmp_path / "t.jsonl").of("request") if e["node"] == "0"]
    assert all(e["base"] for e in root[1:])
    assert max(len(e["added"]) for e in root[1:]) == 2


def test_a_spent_budget_ends_the_cell_that_waits_for_threads() -> None:
    greedy = """
from concurrent.futures import ThreadPoolExecutor
def ask(i):
    while True:
        try:
            llm_query(str(i))
        except Exception:
            pass
with ThreadPoolExecutor(8) as pool:
    list(pool.map(ask, range(8)))
"""
    outcome = run(greedy, *["ok"] * 100, budget=Budget(calls=20))
    assert (outcome.stop, outcome.usage.calls) == ("calls", 20)


def test_answers_survive_a_restart_and_are_not_paid_for_again() -> None:
    replies = [
        code("rs = llm_query_batched(['a', 'b'])"),
        "A",
        ModelError("no route"),
        code("import os; os._exit(3)"),
        code("final_answer = [[r.ok, r.error] for r in rs]"),
    ]
    outcome = ToolLoopAgent(model=ScriptedModel(replies), subcalls=SubCalls(concurrency=1)).run("?", context="c")
    assert outcome.answer == [[True, None], [False, "no route"]]
    assert outcome.usage.calls == 4

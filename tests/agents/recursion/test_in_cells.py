"""Recursion as a model meets it: agents of every dialect, cells in a process of their own."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from rlm_loop import Budget, LeanAgent, ReActAgent, ToolLoopAgent
from rlm_loop.agents import SubCalls, outcome_of
from rlm_loop.messages import Prompt
from rlm_loop.models import ModelError, ScriptedModel
from rlm_loop.tasks import Score, Task
from rlm_loop.traces import read
from tests.agents.replies import LOCAL, code, react, written

IN_TURN = SubCalls(concurrency=1)


def run(cell: str, *replies: Any, trace: Path | None = None, **settings: Any) -> Any:
    model = ScriptedModel([code(cell), *replies])
    return ToolLoopAgent(model=model, **settings).run("?", context="c", trace=trace)


def test_answers_of_a_batch_are_strings_and_may_be_the_answer() -> None:
    cell = "rs = llm_query_batched(['a', 'b'])\nfinal_answer = [', '.join(rs), rs]"
    assert run(cell, "A", "B", subcalls=IN_TURN).answer == ["A, B", ["A", "B"]]


@pytest.mark.parametrize(
    ("asks", "error", "settings", "shown"),
    [
        ("llm_query('x')", "SubCallError", {}, "no route"),
        ("str(llm_query_batched(['x'])[0])", "SubCallError", {}, "no route"),
        ("llm_query('x')", "NameError", {"max_depth": 0}, "llm_query"),
    ],
)
@pytest.mark.parametrize("repl", ["subprocess", "restricted"])
def test_cells_can_catch_what_a_sub_call_raises(
    asks: str, error: str, settings: dict[str, Any], shown: str, repl: str
) -> None:
    if repl == "restricted":
        pytest.importorskip("RestrictedPython")
    cell = f"try:\n    {asks}\nexcept {error} as e:\n    final_answer = str(e)"
    assert shown in run(cell, ModelError("no route"), repl=repl, **settings).answer


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


def test_a_sub_agent_has_a_repl_and_a_context_of_its_own_and_not_the_roots_checks() -> None:
    cell = "x = 1\nfinal_answer = [llm_query('How long?', context=[1, 2, 3])]"
    inner = code("final_answer = [len(context), 'x' in globals()]")
    assert run(cell, inner, max_depth=2, answer_type=list[str]).answer == ["[3, False]"]


def test_a_sub_agent_gets_a_table_as_csv() -> None:
    pytest.importorskip("pandas")
    cell = "import pandas as pd\nrows = pd.DataFrame({'n': range(5)})\n"
    cell += "final_answer = llm_query('Sum?', context=rows.iloc[3:])"
    inner = code("final_answer = sum(int(row.split(',')[1]) for row in context.splitlines()[1:])")
    assert run(cell, inner, max_depth=2).answer == "7"


def test_a_cell_that_failed_may_ask_again_and_pays_again() -> None:
    ask = "a = llm_query('x')\n"
    outcome = run(f"{ask}1 / 0", "A", code(f"{ask}final_answer = a"), "A")
    assert (outcome.answer, outcome.usage.calls) == ("A", 4)


@pytest.mark.parametrize(
    ("agent", "ask", "last"),
    [
        (LeanAgent, written("llm_query_batched", prompts=["a", "b"]), written("final_answer", answer="done")),
        (ReActAgent, react("llm_query_batched", prompts=["a", "b"]), react("finish", answer="done")),
    ],
)
def test_every_dialect_has_the_same_tools(agent: Any, ask: str, last: str) -> None:
    model = ScriptedModel([ask, "A", ModelError("no route"), last], name=LOCAL)
    outcome = agent(model=model, subcalls=IN_TURN).run("?", context="c")
    assert outcome.answer == "done"
    assert outcome.turns[0].observations[0].text == "['A', <failed: no route>]"
    assert [c.depth for c in outcome.ledger.calls] == [0, 1, 0]


@pytest.mark.parametrize("agent", [ToolLoopAgent, LeanAgent, ReActAgent])
def test_every_dialect_is_told_of_them_in_the_same_words_and_only_the_code_loop_unasked(agent: Any) -> None:
    task = Task("t", "?", lambda _: Score(False), context="c")
    asked, unasked = (
        "".join(m.text for m in agent(model=LOCAL, **depth).first_request(task).prompt.messages)
        for depth in ({"max_depth": 1}, {})
    )
    assert "Ask a fresh model, which sees only the prompt and the context." in asked
    assert "llm_query_batched" in asked
    assert ("llm_query" in unasked) is (agent is ToolLoopAgent)


def test_the_trace_holds_the_tree(tmp_path: Path) -> None:
    inner, file = code("final_answer = llm_query('deep') + '!'"), tmp_path / "t.jsonl"
    cell, settings = "final_answer = llm_query_batched(['p', 'q'])", SubCalls(depth=2, concurrency=1)
    outcome = run(cell, inner, "x", inner, "y", subcalls=settings, trace=file)
    assert sorted(outcome.answer) == ["x!", "y!"]
    record = read(file)
    starts = {e["node"]: e for e in record.of("subcall_start")}
    asked = {n: tuple(e[key] for key in ("parent", "kind", "depth", "turn", "batch")) for n, e in starts.items()}
    ended = {e["node"]: (e["ok"], e["usage"]["calls"], e["stop"]) for e in record.of("subcall_end")}
    assert {n: (record.texts[e["prompt_sha256"]], *asked[n], *ended[n]) for n, e in starts.items()} == {
        "0.1": ("p", "0", "agent", 1, 1, "0.b1", True, 2, "answered"),
        "0.2": ("q", "0", "agent", 1, 1, "0.b1", True, 2, "answered"),
        "0.1.1": ("deep", "0.1", "completion", 2, 1, None, True, 1, None),
        "0.2.1": ("deep", "0.2", "completion", 2, 1, None, True, 1, None),
    }
    assert len(ended) == 4
    assert sorted((e["node"], e["turn"]) for e in record.of("turn")) == [("0", 1), ("0.1", 1), ("0.2", 1)]
    assert all("node" in e for event in ("request", "reply", "turn", "run_end") for e in record.of(event))
    assert record.end["node"] == "0"
    again = outcome_of(record)
    assert (again.ledger.rows, again.usage) == (outcome.ledger.rows, outcome.usage)
    assert [c.node for c in again.ledger.calls] == [c.node for c in outcome.ledger.calls]


def test_sub_calls_between_turns_do_not_make_the_trace_grow_faster(tmp_path: Path) -> None:
    first, *cells = [f"print(llm_query('x{i}'))" for i in range(6)]
    replies = [reply for cell in cells for reply in (code(cell), "A")]
    run(first, "A", *replies, code("final_answer = 1"), trace=tmp_path / "t.jsonl")
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
    cells = [code("import os; os._exit(3)"), code("final_answer = [[r.ok, r.error] for r in rs]")]
    outcome = run("rs = llm_query_batched(['a', 'b'])", "A", ModelError("no route"), *cells, subcalls=IN_TURN)
    assert (outcome.answer, outcome.usage.calls) == ([[True, None], [False, "no route"]], 4)

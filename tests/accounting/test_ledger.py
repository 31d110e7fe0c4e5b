"""The ledger: rows sum to the call, re-sent and cached apart; a trace restores it, and keeps no more than it has to.

The call tree of a trace: sums by node and depth.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_traces import Told, told_tree

from rlm_loop import Budget, LeanAgent, ReActAgent, ToolLoopAgent
from rlm_loop.accounting import Ledger, Part, tree_of
from rlm_loop.agents import Agent, outcome_of
from rlm_loop.messages import Usage
from rlm_loop.models import ScriptedModel
from rlm_loop.replay import ledger_of
from rlm_loop.traces import read
from tests.agents.replies import cell

PARTS = [
    Part("tool_schema", 0, -1, 7),
    Part("template", 0, 0, 3),
    Part("task", 0, 0, 10),
    Part("template", 1, 1, 3),
    Part("assistant", 1, 1, 5),
    Part("repl_output", 1, 2, 4),
    Part("scaffold:thought", 1, 2, 6),
    Part("template", 0, 3, 2),
]


def test_rows_sum_to_the_call_and_split_resent_and_cached() -> None:
    ledger = Ledger()
    call = ledger.charge(PARTS, Usage(40, 9, 25), 2, 0, "agent", sent=1)
    assert [sum(r.tokens for r in call.rows), sum(r.resent for r in call.rows)] == [40, 20]  # schema, first message
    # the cache holds a prefix of 25: the schema, the first message and the marker and the start of the second
    assert {(r.cause, r.origin_turn): r.cached for r in call.rows} == {
        ("tool_schema", 0): 7,
        ("template", 0): 3,
        ("task", 0): 10,
        ("template", 1): 3,
        ("assistant", 1): 2,
        ("repl_output", 1): 0,
        ("scaffold:thought", 1): 0,
    }
    unknown = ledger.charge(PARTS, Usage(40, 9, None), 1, 0, "agent")
    assert {(r.cached, r.resent) for r in unknown.rows} == {(None, 0)}
    assert ledger.usage.cache_read_tokens is None  # and not zero


def test_frame_has_the_documented_columns_and_sums() -> None:
    ledger = Ledger()
    ledger.charge(PARTS, Usage(40, 9, 0), 1, 0, "agent")
    ledger.charge(PARTS, Usage(40, 1, 0), 2, 0, "agent", sent=2)
    frame = ledger.frame()
    assert list(frame.columns) == [
        "call", "turn", "depth", "purpose", "cause", "origin_turn", "tokens", "resent", "cached", "detail", "written",
    ]  # fmt: skip
    assert (frame["tokens"].sum(), ledger.usage.input_tokens, ledger.scaffold_tokens) == (80, 80, 12)
    assert list(Ledger().frame().columns) == list(frame.columns)


@pytest.mark.parametrize(
    ("calls", "said"),
    [
        ([], ""),
        ([(True, 5)], "exact"),
        ([(True, 5), (False, 4)], "counted with another tokenizer"),
        ([(True, 5), (False, 4), (False, None)], "shared out by length"),
    ],
)
def test_it_says_how_tokens_were_counted(calls: list[tuple[bool, int | None]], said: str) -> None:
    """The least sure way names the whole, and stands wherever tokens by cause are shown."""
    ledger = Ledger()
    for exact, counted in calls:
        part = Part("task", 0, 0, 5)
        ledger.charge([part], Usage(5, 1), 1, 0, "agent", exact=exact, counted=counted)
    assert ledger.counting == said
    assert said in ledger._repr_html_()


@pytest.mark.parametrize("agent", [ToolLoopAgent(), LeanAgent(), ReActAgent()], ids=lambda agent: agent.name)
def test_a_trace_restores_the_ledger_and_is_linear_in_turns(agent: Agent, tmp_path: Path) -> None:
    sizes: list[int] = []
    for turns in (10, 20, 30):
        file = tmp_path / f"{turns}.jsonl"
        model = ScriptedModel([cell(agent, f"print({i})") for i in range(100, 100 + turns)])
        live = replace(agent, model=model, budget=Budget(steps=turns)).run("Count.", trace=file)
        assert live.steps == turns  # nothing is left out
        assert ledger_of(read(file)).calls == live.ledger.calls
        sizes.append(file.stat().st_size)
    # figures grow by a digit here and there: a tenth is far less than another turn's rows would add
    assert sizes[2] - sizes[1] < 1.1 * (sizes[1] - sizes[0])


def test_nodes_and_their_sums_also_from_a_file(tmp_path: Path) -> None:
    told_tree(tmp_path / "run.jsonl").trace.close()
    record = told_tree().record
    tree = tree_of(record)
    assert [n.node for n in tree.nodes[:5]] == ["0", "0.1", "0.1.1", "0.2", "0.3"]
    root, agent, failed = (tree.subtrees[path][0] for path in ("0", "0.1", "0.16"))
    assert (agent.kind, agent.parent, agent.turn, agent.steps) == ("agent", "0", 2, 1)
    assert (agent.title, failed.error) == ("Look into the first half", "provider: no <route>")
    assert [(n.ok, n.stop, n.steps) for n in (root, failed)] == [(True, "answered", 2), (False, None, 0)]
    usages = tree.subtrees["0.2"][0].own, agent.own, tree.total("0.1")
    assert usages == (Usage.NOTHING, Usage(100, 10, 0, 1, None), Usage(107, 13, 0, 2, None))
    assert (len(tree.nodes), tree.total().input_tokens) == (24, 2 * 100 + 107 + 20 * 10)
    assert tree.total().cost is None  # the root's model reports no price: a sum with an unknown is unknown
    assert tree_of(read(tmp_path / "run.jsonl")).text() == tree.text()
    assert tree.total().calls == outcome_of(record).usage.calls


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 99)), max_size=12))
def test_subtrees_sum_for_any_tree(told: list[tuple[int, int]]) -> None:
    trace = Told()
    known = ["0"]
    for parent, tokens in told:
        known.append(trace.child("p", parent=known[parent % len(known)], usage=Usage(tokens, 1, 0)))
    tree = tree_of(trace.end())
    for node in tree.nodes:
        below = [n for n in tree.nodes if n.node == node.node or n.node.startswith(node.node + ".")]
        assert tree.total(node.node).input_tokens == sum(n.own.input_tokens or 0 for n in below)
        assert tree.subtrees[node.node] == below
    assert len(tree.text().splitlines()) <= len(tree.nodes)

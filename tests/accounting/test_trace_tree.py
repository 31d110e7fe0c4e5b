"""The call tree of a trace: sums by node and depth."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from made_traces import Told, told_tree

from rlm_loop.accounting import read_tree, tree_of
from rlm_loop.agents import outcome_of
from rlm_loop.messages import Usage


def test_nodes_and_their_sums_also_from_a_file_and_an_outcome(tmp_path: Path) -> None:
    told_tree(tmp_path / "run.jsonl").trace.close()
    record = told_tree().record
    tree = tree_of(record)
    assert [n.node for n in tree.nodes[:5]] == ["0", "0.1", "0.1.1", "0.2", "0.3"]
    agent, failed = tree["0.1"], tree["0.16"]
    assert (agent.kind, agent.depth, agent.parent, agent.turn, agent.steps) == ("agent", 1, "0", 2, 1)
    assert (agent.title, failed.index, failed.error) == ("Look into the first half", 13, "provider: no <route>")
    assert [(n.ok, n.stop, n.steps) for n in (tree.root, failed)] == [(True, "answered", 2), (False, None, 0)]
    assert (tree["0.2"].own, agent.own) == (Usage.NOTHING, Usage(100, 10, 0, 1, None))
    assert tree.total("0.1") == Usage(107, 13, 0, 2, None)
    assert (len(tree), tree.size(), tree.total().input_tokens) == (24, 24, 2 * 100 + 107 + 20 * 10)
    assert tree.total().cost is None  # the root's model reports no price: a sum with an unknown is unknown
    assert read_tree(tmp_path / "run.jsonl").text() == tree.text()
    outcome = outcome_of(record)
    assert outcome.tree.total().calls == outcome.usage.calls


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
        assert tree.size(node.node) == len(below)
    assert len(tree.text(fold=0).splitlines()) == len(tree)

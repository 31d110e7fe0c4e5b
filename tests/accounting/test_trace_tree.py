"""The call tree of a trace: sums by node and depth."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from made_traces import Told, told_tree

from rlm_loop.accounting import read_tree, tree_of
from rlm_loop.agents import outcome_of
from rlm_loop.messages import Usage


def test_the_nodes_of_a_run() -> None:
    tree = tree_of(told_tree().record)
    assert len(tree) == 24
    assert [n.node for n in tree.nodes[:5]] == ["0", "0.1", "0.1.1", "0.2", "0.3"]
    assert tree.root.steps == 2
    assert tree.root.ok
    assert tree.root.stop == "answered"
    agent = tree["0.1"]
    assert (agent.kind, agent.depth, agent.parent, agent.turn, agent.steps) == ("agent", 1, "0", 2, 1)
    assert agent.title == "Look into the first half"
    assert tree["0.2"].own == Usage.NOTHING
    assert tree["0.16"].ok is False
    assert tree["0.16"].error == "provider: no <route>"
    assert tree["0.16"].index == 13


def test_own_and_subtree_add_up() -> None:
    tree = tree_of(told_tree().record)
    assert tree["0.1"].own == Usage(100, 10, 0, 1, None)
    assert tree.total("0.1") == Usage(107, 13, 0, 2, None)
    assert tree.total().input_tokens == 2 * 100 + 107 + 20 * 10
    assert tree.total().cost is None  # the root's model reports no price: a sum with an unknown is unknown
    assert tree.size() == 24


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


def test_reading_a_file(tmp_path: Path) -> None:
    told_tree(tmp_path / "run.jsonl").trace.close()
    assert read_tree(tmp_path / "run.jsonl").text() == tree_of(told_tree().record).text()


def test_an_outcome_has_its_tree() -> None:
    told = told_tree()
    outcome = outcome_of(told.record)
    assert len(outcome.tree) >= 1
    assert outcome.tree.total().calls == outcome.usage.calls
    assert outcome._repr_html_()

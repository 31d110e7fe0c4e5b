"""The call tree of a trace: sums by node and depth, folding, and what a reader sees."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from made_traces import Told

from rlm_loop.accounting import TraceTree, read_tree, tree_of
from rlm_loop.agents import outcome_of
from rlm_loop.messages import Prompt, Usage


def a_run(path: Path | None = None) -> Told:
    """A root of two turns with a sub-agent (which asks once), a cached answer, and a batch of which one fails."""
    told = Told(path)
    told.turn("x = 1")
    agent = told.start(kind="agent")
    told.turn("llm_query('deep')", node=agent, brief="Look into the first half")
    told.child("deep", "yes", parent=agent, usage=Usage(7, 3, 0, cost=0.5))
    told.stop(agent, seconds=4.0, stop="answered")
    told.start(kind="cached")
    told.stop("0.2", seconds=0.0)
    for i in range(20):
        node = told.start(batch="0.b1", index=i)
        told.call(node, Prompt.ask(f"piece {i}"), usage=Usage(10, 1, 0, cost=0.25))
        told.stop(node, error={"kind": "provider", "message": "no <route>"} if i == 13 else None, seconds=i / 10)
    told.turn("final_answer = 3", answer=3)
    told.end(3)
    return told


def test_the_nodes_of_a_run() -> None:
    tree = tree_of(a_run().record)
    assert len(tree) == 24
    assert [n.node for n in tree.nodes[:5]] == ["0", "0.1", "0.1.1", "0.2", "0.3"]
    assert tree.root.steps == 2
    assert tree.root.ok
    assert tree.root.stop == "answered"
    agent = tree["0.1"]
    assert (agent.kind, agent.depth, agent.parent, agent.turn, agent.steps) == ("agent", 1, "0", 2, 1)
    assert agent.title == "Look into the first half"
    assert tree["0.2"].own == Usage.nothing()
    assert tree["0.16"].ok is False
    assert tree["0.16"].error == "provider: no <route>"
    assert tree["0.16"].index == 13


def test_own_and_subtree_add_up() -> None:
    tree = tree_of(a_run().record)
    assert tree["0.1"].own == Usage(100, 10, 0, 1, None)
    assert tree.total("0.1") == Usage(107, 13, 0, 2, None)
    assert tree.total().input_tokens == 2 * 100 + 107 + 20 * 10
    assert tree.total().cost is None  # the root's model reports no price: a sum with an unknown is unknown
    assert [(d.depth, d.nodes, d.failed, d.own.input_tokens) for d in tree.by_depth()] == [
        (0, 1, 0, 200),
        (1, 22, 1, 300),
        (2, 1, 0, 7),
    ]
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
    assert sum(d.own.calls for d in tree.by_depth()) == len(told)
    assert len(tree.text(fold=0).splitlines()) == len(tree)


def test_a_batch_is_one_line_and_its_failure_another() -> None:
    text = tree_of(a_run().record).text()
    assert text.splitlines() == [
        "0 agent m · 2 turns · 23 calls below · 507 tokens in, 53 out in all, 200 tokens in, 20 out itself · 9.0 s",
        "├─ 0.1 agent m · turn 2 · 1 turn of its own · 1 call below · 107 tokens in, 13 out in all, "
        "100 tokens in, 10 out itself · 4.0 s",
        "│  └─ 0.1.1 completion m · turn 2 · 7 tokens in, 3 out, $0.5000 · 1.0 s",
        "├─ 0.2 cached m · turn 2 · 0.0 s",
        "└─ 0.3 … 0.22 20 completions m · batch 0.b1 · turn 2 · 19 ok, 1 failed · 200 tokens in, 20 out, $5.0000 · "
        "1.0 s each (median; longest 1.9 s)",
        "   └─ 0.16 completion m · turn 2 · 10 tokens in, 1 out, $0.2500 · 1.3 s · failed: provider: no <route>",
    ]


def test_a_batch_of_200_takes_few_lines() -> None:
    told = Told()
    told.batch([f"p{i}" for i in range(200)], ["t"] * 200)
    tree = tree_of(told.end())
    assert len(tree.text().splitlines()) == 2
    assert len(tree.text(fold=0).splitlines()) == 201
    assert len(tree.text(fold=200).splitlines()) == 201


def test_a_run_that_was_killed() -> None:
    told = Told()
    told.start()
    tree = tree_of(told.record)
    assert tree.root.ok is None
    assert tree["0.1"].ok is None
    assert tree["0.1"].seconds is None
    assert "not ended" in tree.text().splitlines()[1]


def test_reading_a_file(tmp_path: Path) -> None:
    a_run(tmp_path / "run.jsonl").trace.close()
    assert read_tree(tmp_path / "run.jsonl").text() == tree_of(a_run().record).text()


class Checker(HTMLParser):
    """Fails on tags that are not ours, on attributes that could run something, and on wrong nesting."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ["div", "span", "details", "summary", "table", "tbody", "tr", "td"]
        assert all(name in ("style", "class", "open") for name, _ in attrs)
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def read_html(tree: TraceTree) -> str:
    checker = Checker()
    checker.feed(tree._repr_html_())
    checker.close()
    assert checker.open == []
    return checker.text


def test_the_tree_in_a_notebook() -> None:
    text = read_html(tree_of(a_run().record))
    for part in ("depth 2", "22 nodes", "batch 0.b1", "failed: provider: no <route>", "Look into the first half"):
        assert part in text
    assert "depth" not in read_html(tree_of(Told().end()))


@settings(max_examples=30, deadline=None)
@given(st.text(), st.text())
def test_nothing_that_was_written_becomes_markup(title: str, error: str) -> None:
    told = Told(question=title)
    node = told.start(model=title)
    told.stop(node, error={"kind": error, "message": error})
    read_html(tree_of(told.end()))


def test_a_deep_tree_needs_no_deep_stack() -> None:
    told = Told()
    node = "0"
    for _ in range(400):
        node = told.start(node, kind="agent")
    tree = tree_of(told.record)
    assert len(tree.text().splitlines()) == 401
    assert read_html(tree)


def test_an_outcome_has_its_tree() -> None:
    told = a_run()
    outcome = outcome_of(told.record)
    assert len(outcome.tree) >= 1
    assert outcome.tree.total().calls == outcome.usage.calls
    assert outcome._repr_html_()

"""The call tree as lines and in a notebook: folding, and what a reader sees."""

from __future__ import annotations

from html.parser import HTMLParser

from hypothesis import given, settings
from hypothesis import strategies as st
from made_traces import Told, told_tree

from rlm_loop.accounting import TraceTree, tree_of


def test_a_batch_is_one_line_and_its_failure_another() -> None:
    text = tree_of(told_tree().record).text()
    assert text.splitlines() == [
        "0 agent m · 2 turns · 23 calls below · 507 tokens in, 53 out in all, 200 tokens in, 20 out itself · 9.0 s",
        "├─ 0.1 agent m · turn 2 · 1 turn of its own · 1 call below · 107 tokens in, 13 out in all, "
        "100 tokens in, 10 out itself · 4.0 s",
        "│  └─ 0.1.1 completion m · turn 2 · 7 tokens in, 3 out, $0.5000 · 1.0 s",
        "├─ 0.2 cached m · turn 2 · 0.0 s",
        "└─ 0.3 … 0.22 20 completions · batch 0.b1 · turn 2 · 19 ok, 1 failed · 200 tokens in, 20 out, $5.0000",
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
    text = read_html(tree_of(told_tree().record))
    for part in ("batch 0.b1", "failed: provider: no <route>"):
        assert part in text


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

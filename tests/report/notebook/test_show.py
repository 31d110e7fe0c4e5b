"""How a run and its call tree look, as text, as HTML and as a notebook: each part once, escaped, and clipped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from growth import grows_in_proportion, parts
from hypothesis import given, settings
from hypothesis import strategies as st
from made_traces import Told, told_tree
from parsed_page import text_in_notebook

from rlm_loop import LeanAgent, ToolLoopAgent
from rlm_loop.accounting import Ledger, Part, tree_of
from rlm_loop.actions import Action, Answer, CallTool, Display, Failure, FinalAnswer, Malformed, Observation, RunCode
from rlm_loop.messages import Reply, Usage
from rlm_loop.models import ScriptedModel
from rlm_loop.outcome import Outcome, Stop, Turn
from rlm_loop.report import step_text


def turn(text: str, *pairs: tuple[Action, Observation], index: int = 1) -> Turn:
    reply = Reply(text, usage=Usage(1200, 30, 1000, cost=None))
    return Turn(index, reply, tuple(a for a, _ in pairs), tuple(o for _, o in pairs), 1.25)


def html_of(*turns: Turn, answer: object = 42) -> str:
    ledger = Ledger()
    ledger.charge([Part("task", 0, 0, 1000), Part("template", 0, 1, 200)], Usage(1200, 30), 1, 0, "agent")
    said: dict[str, Any] = {"reason": "why <it> ended", "question": "How <many>?", "trace": "run.jsonl"}
    return Outcome(answer, Stop.ANSWERED, turns, Usage(1200, 30), ledger, **said)._repr_html_()


CELL = turn(
    "I count.\n```python\nprint(6 * 7)\nfinal_answer = 42\n```",
    (
        RunCode("print(6 * 7)\nfinal_answer = 42\n"),
        Observation("42\n", cause="repl_output", answer=FinalAnswer(42, "object")),
    ),
)


def test_a_turn_as_text_shows_each_part_once() -> None:
    said = "I count.|[code]|    print(6 * 7)|    final_answer = 42|[output]|    42|[answer]|    42"
    head = "-- turn 1: 1,200 tokens in (1,000 cached), 30 out, 1.2 s"
    assert step_text(CELL).splitlines() == [head, *parts(said)]


@pytest.mark.parametrize(
    ("action", "seen", "expected"),
    [
        (CallTool("add", '{"a": 1, "b": "x\\ny"}'), Observation("2"), ["[call add]", "    a=1", "    b=", "    x"]),
        (CallTool("add", "not json"), Observation("2"), ["    not json", "[result]", "    2"]),
        (Answer("Paris"), Observation(answer=FinalAnswer("Paris")), ["[answer]", "    Paris"]),
        (Malformed("none"), Observation(failure=Failure("malformed", "none")), ["[not readable]", "    none"]),
        (RunCode("1/0"), Observation("E", Failure("runtime", "it"), "error"), ["[failed: runtime]", "    E"]),
        (RunCode("x"), Observation("", Failure("skipped", "not run")), ["[failed: skipped]", "    not run"]),
    ],
)
def test_each_kind_of_action_is_shown(action: Action, seen: Observation, expected: list[str]) -> None:
    lines = step_text(turn("", (action, seen))).splitlines()
    assert [lines.count(line) for line in expected] == [1] * len(expected), lines


@pytest.mark.parametrize(
    ("text", "code", "left"),
    [
        ("before\n```python\nx = 1\n```\nafter", "x = 1", "before"),
        ("```\n\nx = 1\n\n```", "x = 1\n", ""),
        ("- item\n  ```py\n  x = 1\n  ```", "x = 1", "- item"),
        ("x = 1 is prose here", "x = 1", "x = 1 is prose here"),
        ("~~~\na\nb\n~~~ \nend", "a\nb", ""),
        ("```python\nx = 1", "x = 1", ""),
    ],
)
def test_prose_stays_before_and_after_the_code(text: str, code: str, left: str) -> None:
    before, _, after = step_text(turn(text, (RunCode(code), Observation()))).partition("[code]")
    assert before.splitlines()[1:] == left.splitlines()
    assert after.endswith(("after", "end", "    x = 1", "prose here", "    x"))
    assert after.count("after") == text.count("after")


def test_the_words_beside_code_are_found_in_proportion_to_their_length() -> None:
    """A fence with blanks before the code took time that grew with their square."""
    one = (RunCode("x = 1"), Observation())
    grows_in_proportion(lambda text: step_text(turn(text, one)), " ", head="```", tail="!\n```\nx = 1\n```")


def test_an_outcome_as_html_shows_each_part_and_no_long_output() -> None:
    long = turn("", (RunCode("print(1)"), Observation("x" * 1_000_000, cause="repl_output")), index=3)
    done = turn("done", (Answer("done"), Observation(answer=FinalAnswer("done"))), index=2)
    page = html_of(CELL, done, long)
    text = text_in_notebook(page)
    said = "answered|why <it> ended|How <many>?|42|turn 1: code|turn 2: answer|1,200|run.jsonl|by cause|template"
    assert [part for part in parts(said) if part not in text] == []
    assert len(page) < 30_000


@given(st.text(), st.text(), st.text())
def test_nothing_that_was_written_can_become_markup(written: str, code: str, output: str) -> None:
    pair = (RunCode(code), Observation(output, cause="repl_output"))
    text_in_notebook(html_of(turn(written, pair), answer=written))


def test_displays_are_shown_and_cannot_run_anything() -> None:
    displays = (
        Display("image/png", "iVBORw0KGgo="),
        Display("image/svg+xml", "<svg onload='x()'/>"),
        Display("text/html", '<b>t</b><script>x()</script>"'),
        Display("text/latex", "<$x$>"),
    )
    plotted = turn("```python\nplot()\n```", (RunCode("plot()"), Observation(displays=displays)))
    page = html_of(plotted)
    said = parts(
        '<img src="data:image/png;base64,iVBORw0KGgo="|<img src="data:image/svg+xml;base64,|&lt;$x$&gt;|'
        '<iframe sandbox srcdoc="&lt;meta http-equiv=&quot;Content-Security-Policy&quot; |'
        '&lt;b&gt;t&lt;/b&gt;&lt;script&gt;x()&lt;/script&gt;&quot;"'
    )
    assert [part for part in said if part not in page] == []
    assert ("<script" in page, "<svg" in page) == (False, False)
    assert "[display image/png]" in step_text(plotted)


# -- as a notebook file: valid, with code as code, and nothing that was written drawn as Markdown


def saved(outcome: Outcome, folder: Path) -> list[Any]:
    nbformat: Any = pytest.importorskip("nbformat")
    path = outcome.to_notebook(folder / "run.ipynb")
    first = path.read_bytes()
    assert outcome.to_notebook(path).read_bytes() == first, "the same run gives the same file"
    book = nbformat.read(path, as_version=4)
    nbformat.validate(book)
    return book.cells


def test_code_blocks_are_cells_with_their_outputs(tmp_path: Path) -> None:
    replies = ["I look.\n```python\nprint(6 * 7)\n```\nThen I answer.", "```python\n1 / 0\n```"]
    model = ScriptedModel([*replies, "The answer is ```42```."])
    cells = saved(ToolLoopAgent(model=model).run("What is 6 x 7? ![x](http://a.b/c.png)"), tmp_path)
    first, second = [cell for cell in cells if cell.cell_type == "code"][:2]
    assert (first.source, [(o.name, o.text) for o in first.outputs]) == ("print(6 * 7)", [("stdout", "42\n")])
    assert (second.outputs[0].name, "ZeroDivisionError" in second.outputs[0].text) == ("stderr", True)
    said = [cell.source for cell in cells if cell.cell_type == "markdown"]
    assert said[0] == "**Question**\n\n```text\nWhat is 6 x 7? ![x](http://a.b/c.png)\n```"
    assert [text.split("\n")[3] for text in said[1:3]] == ["I look.", "Then I answer."]
    assert said[-1].startswith("**Answer**\n\n````text\nThe answer is ```42```.\nanswered")


def test_calls_are_cells_too_and_secrets_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "hunter2-hunter2-hunter2")

    def look(place: str) -> str:
        """Look at a place."""
        return f"at {place}: hunter2-hunter2-hunter2"

    called = '{"name": "look", "arguments": {"place": "home"}}'
    model = ScriptedModel([called, '{"name": "final_answer", "arguments": {"answer": 7}}'])
    cells = saved(LeanAgent(model=model, presentation="text", tools=[look]).run("Look."), tmp_path)
    assert "hunter2" not in (tmp_path / "run.ipynb").read_text()
    calls = [cell.source for cell in cells if cell.cell_type == "code"]
    assert calls == ["look(place='home')", "final_answer(answer=7)"]
    assert cells[-1].source.startswith("**Answer**\n\n```text\n7\nanswered")


def test_a_batch_is_one_line_and_its_failure_another() -> None:
    tree = tree_of(told_tree().record)
    assert tree.text().splitlines() == [
        "0 agent m · 2 turns · 23 calls below · 507 tokens in, 53 out in all, 200 tokens in, 20 out itself · 9.0 s",
        "├─ 0.1 agent m · turn 2 · 1 turn of its own · 1 call below · 107 tokens in, 13 out in all, "
        "100 tokens in, 10 out itself · 4.0 s",
        "│  └─ 0.1.1 completion m · turn 2 · 7 tokens in, 3 out, $0.5000 · 1.0 s",
        "├─ 0.2 cached m · turn 2 · 0.0 s",
        "└─ 0.3 … 0.22 20 completions · batch 0.b1 · turn 2 · 19 ok, 1 failed · 200 tokens in, 20 out, $5.0000",
        "   └─ 0.16 completion m · turn 2 · 10 tokens in, 1 out, $0.2500 · 1.3 s · failed: provider: no <route>",
    ]
    shown = text_in_notebook(tree._repr_html_())
    assert ("batch 0.b1" in shown, "failed: provider: no <route>" in shown) == (True, True)


def test_a_batch_of_200_takes_few_lines_and_a_call_that_was_killed_has_not_ended() -> None:
    told = Told()
    told.batch([f"p{i}" for i in range(200)], ["t"] * 200)
    tree = tree_of(told.record)
    assert len(tree.text().splitlines()) == 2
    node = told.start()
    tree = tree_of(told.record)
    (called,) = tree.subtrees[node]
    assert (tree.nodes[0].ok, called.ok, called.seconds) == (None, None, None)
    assert "not ended" in tree.text().splitlines()[-1]


@settings(max_examples=30)
@given(st.text(), st.text())
def test_nothing_in_a_tree_becomes_markup(title: str, error: str) -> None:
    told = Told(question=title)
    told.stop(told.start(model=title), error={"kind": error, "message": error})
    text_in_notebook(tree_of(told.end())._repr_html_())


def test_a_deep_tree_needs_no_deep_stack() -> None:
    told = Told()
    node = "0"
    for _ in range(400):
        node = told.start(node, kind="agent")
    tree = tree_of(told.record)
    assert len(tree.text().splitlines()) == 401
    assert text_in_notebook(tree._repr_html_())

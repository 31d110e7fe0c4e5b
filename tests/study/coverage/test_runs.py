"""Coverage and tree of a run that really happened: an agent, a REPL, sub-calls."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlm_loop import ToolLoopAgent
from rlm_loop.accounting.tree import read_tree
from rlm_loop.models import ScriptedModel
from rlm_loop.study.coverage import coverage_of, diagnose
from rlm_loop.traces.reader import read

TEXT = "".join(f"record {i:04d} holds the value {i * 7919 % 10007:05d} for its owner\n" for i in range(100))


def test_a_run_with_sub_calls(tmp_path: Path) -> None:
    model = ScriptedModel(
        [
            "```python\nprint(context[:480])\n```",
            "```python\nsaid = [llm_query('count: ' + context[a : a + 1200]) for a in (1200, 2400)]\n```",
            "7",
            "8",
            "```python\nfinal_answer = sum(int(s) for s in said)\n```",
        ]
    )
    path = tmp_path / "run.jsonl"
    outcome = ToolLoopAgent(model=model).run("How many?", context=TEXT, trace=path)
    assert outcome.answer == 15
    tree = read_tree(path)
    assert [(n.node, n.kind, n.steps) for n in tree.nodes] == [
        ("0", "agent", 3),
        ("0.1", "completion", 0),
        ("0.2", "completion", 0),
    ]
    assert tree.total() == outcome.usage == outcome.tree.total()
    coverage = coverage_of(TEXT, path)
    assert coverage.ranges() == [(0, 480), (1200, 3600)]
    assert coverage.ranges(depth=1) == [(1200, 3600)]
    found = diagnose(read(path), coverage, [(1248, 1296), (4000, 4048)], resolved=False)
    assert (found.seen, found.depths) == (1, (1,))


@pytest.mark.parametrize(
    ("replies", "reason"),
    [
        (["It is 5."], "never_looked"),  # the question quotes the line up to the number, and that is all it saw
        (["```python\nprint(context[3970:4004])\n```", "It is 5."], "never_looked"),
        (["```python\nprint(context.split('0083')[1][17:22])\n```", "It is 5."], "misread"),
        (["```python\nprint(context[3984:4032])\n```", "It is 5."], "misread"),
    ],
)
def test_what_the_question_quotes_was_not_looked_at(tmp_path: Path, replies: list[str], reason: str) -> None:
    question = 'One line is "record 0083 holds the value NUMBER for its owner". What is NUMBER?'
    ToolLoopAgent(model=ScriptedModel(replies)).run(question, context=TEXT, trace=tmp_path / "run.jsonl")
    found = diagnose(
        read(tmp_path / "run.jsonl"), coverage_of(TEXT, tmp_path / "run.jsonl"), [(3984, 4031)], resolved=False
    )
    assert found.reason == reason

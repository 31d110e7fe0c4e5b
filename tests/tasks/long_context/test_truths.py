"""Every family: the truth is found again in the finished text by another way; and names."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import again
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlm_loop import DirectAgent
from rlm_loop.models import ScriptedModel
from rlm_loop.study import Study
from rlm_loop.tasks import Attempt, Task, get_suite
from rlm_loop.tasks.long_context import FAMILIES, long_context
from rlm_loop.tasks.long_context.plan import Draw, weave


def same(task: Task, found: object) -> bool:
    return sorted(found) == sorted(task.expected) if task.score.how == "any_order" else found == task.expected  # type: ignore


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("size", [2_000, 8_000, 30_000])
def test_the_truth_is_in_the_text(family: str, size: int) -> None:
    for task in long_context(family, size, tasks=8, seed=size % 7):
        text = task.material()
        assert len(text) == size
        assert same(task, again.truth(task.question, text)), task.question
        assert task.score(Attempt(task.expected, answered=True)).resolved
        assert task.score(Attempt(str(task.expected), answered=True)).resolved
        assert not task.score(Attempt("nothing of the kind", answered=True)).resolved


@given(st.data())
@settings(max_examples=60)
def test_weaving(data: st.DataObject) -> None:
    filler = data.draw(st.text("ab \n", min_size=1, max_size=300)) + "\n"
    lines = [f"#{n}" for n in range(data.draw(st.integers(0, 12)))]
    size = data.draw(st.integers(60, 900))
    text = weave(lines, size, filler, Draw(data.draw(st.text(max_size=3))))
    assert len(text) == size
    assert [line for line in text.split("\n") if line.startswith("#")] == lines
    with pytest.raises(ValueError, match="do not fit into 1 characters"):
        weave(["#0"], 1, filler, Draw(""))


@pytest.mark.parametrize(
    ("name", "called"),
    [
        ("/needle@8000", "/needle@8k"),
        ("/needle", "/needle@100k"),
        ("/needle@1m", "/needle@1M"),
        ("/needle@1500k", "/needle@1500k"),
        ("/chain@2500", "/chain@2500"),
        ("@8k/dev", "@8k/dev"),
    ],
)
def test_names(name: str, called: str) -> None:
    assert get_suite(f"long_context{name}").name == f"long_context{called}"
    assert get_suite(f"long-context{name}") == get_suite(f"long_context{called}")


def test_halves_are_alike() -> None:
    splits = [get_suite(f"long_context@32k/{split}", tasks=4) for split in ("dev", "test")]
    kinds = [[(t.facts["family"], t.facts["number"] // 2) for t in split] for split in splits]
    assert kinds[0] == kinds[1]
    assert len({t.id for split in splits for t in split}) == 4 * len(FAMILIES)


def test_another_seed_is_another_text_and_each_task_has_its_own() -> None:
    texts = [t.material() for seed in (0, 1) for t in long_context("records", "8k", seed=seed).tasks]
    assert len(set(texts)) == len(texts) == 16


@pytest.mark.slow
def test_a_suite_is_listed_without_its_texts() -> None:
    suite = get_suite("long_context@100M")
    assert len(suite) == 8 * len(FAMILIES)
    assert all(t.expected and t.question for t in suite)


def test_rows_say_which_text(tmp_path: Path) -> None:
    suite = replace(s := long_context("needle", "8k"), tasks=s.tasks[:1])
    model = ScriptedModel([str(suite.tasks[0].expected)])
    (row,) = Study("s", {"direct": DirectAgent(model=model, window=100)}, suite).run(tmp_path, False).rows
    assert (row["resolved"], row["facts"]["family"], row["facts"]["size"]) == (True, "needle", 8_000)
    assert "of Python 3.11.7, 1,608,420 characters, sha256 86d131c4f2c8d6d5" in row["facts"]["context"]
    assert len(model.prompts[0].messages[0].text) < 300

"""Every family: the truth is found again in the finished text by another way, and in its needles alone."""

from __future__ import annotations

import contextlib

import again
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlm_loop.tasks import Attempt, Task
from rlm_loop.tasks.long_context import FAMILIES, long_context
from rlm_loop.tasks.long_context.plan import Draw, PlannedLine, weave
from rlm_loop.tasks.long_context.text import RealText

CODES = ("The secret code of", "The password of", "The access code of")
MARKS = (*CODES, "Note ", "Record ", "Badge ", "Person ", "Entry #")


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


@pytest.mark.parametrize("family", FAMILIES)
def test_the_needles_are_what_the_answer_depends_on(family: str) -> None:
    for task in long_context(family, "8k", tasks=8, seed=3):
        text, needles = task.material(), task.ranges()
        lines = [text[start:end] for start, end in needles]
        assert all(line.startswith(MARKS) and "\n" not in line for line in lines)
        assert all(text[end : end + 1] == "\n" and text[start - 1 : start] in ("\n", "") for start, end in needles)
        assert same(task, again.truth(task.question, "\n".join(lines)))  # enough
        if family in ("needle", "needles", "chain"):  # and each of them needed
            for left_out in range(len(lines)):
                rest = "\n".join(lines[:left_out] + lines[left_out + 1 :])
                with contextlib.suppress(ValueError):
                    assert not same(task, again.truth(task.question, rest))


@given(st.data())
@settings(max_examples=60)
def test_weaving(data: st.DataObject) -> None:
    filler = RealText("made", data.draw(st.text("ab \n", min_size=1, max_size=300)) + "\n")
    lines = [PlannedLine(f"#{n}", n % 2 == 0) for n in range(data.draw(st.integers(0, 12)))]
    size = data.draw(st.integers(60, 900))
    woven = weave(lines, size, filler, Draw(data.draw(st.text(max_size=3))))
    assert len(woven.text) == size
    assert [woven.text[a:b] for a, b in woven.needles] == [line.text for line in lines if line.matters]
    found = woven.text.split("\n")
    assert [line for line in found if line.startswith("#")] == [line.text for line in lines]


def test_lines_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="do not fit into 10 characters"):
        weave([PlannedLine("x" * 20)], 10, RealText("made", "a\n"), Draw(""))

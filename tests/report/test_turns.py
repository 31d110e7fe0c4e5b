"""The figure of prompt tokens by turn and cause."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from rlm_loop.accounting.attribution import Part
from rlm_loop.accounting.ledger import Ledger
from rlm_loop.messages import Usage
from rlm_loop.report import save, tokens_by_turn, turns_text
from rlm_loop.study import StudyError


def a_ledger() -> Ledger:
    ledger = Ledger()
    ledger.charge([Part("system", 0, 0, 10), Part("task", 0, 1, 20)], Usage(30, 1), turn=1)
    ledger.charge([Part("task", 0, 0, 5)], Usage(5, 1), turn=0, depth=1)
    ledger.charge([Part("system", 0, 0, 10), Part("scaffold:x", 1, 1, 4)], Usage(17, 1), turn=2, sent_messages=1)
    return ledger


def test_the_bands_stand_on_each_other_and_sum_to_the_bill() -> None:
    made = tokens_by_turn(a_ledger().frame())
    [axes] = made.axes
    names = [text.get_text() for text in axes.get_legend().get_texts()]
    assert names == ["unattributed", "sub-calls", "scaffold:x", "task", "system"]
    assert sum(bar.get_height() for bar in axes.patches) == 52
    tops = {
        bar.get_x(): max(b.get_y() + b.get_height() for b in axes.patches if b.get_x() == bar.get_x())
        for bar in axes.patches
    }
    assert [tops[x] for x in sorted(tops)] == [35, 17]
    assert axes.get_title(loc="left").endswith(": 52")


def test_the_alternative_text_says_what_the_figure_shows(tmp_path: Path) -> None:
    frame = a_ledger().frame()
    assert turns_text(frame, title="T") == (
        "T. Stacked bars for 2 turns, 52 prompt tokens in all: 35 in turn 1, 17 in turn 2. By cause: system 20 (38%), "
        "task 20 (38%), sub-calls 5 (10%), scaffold:x 4 (8%), unattributed 3 (6%)."
    )
    first, second = save(tokens_by_turn(frame), tmp_path / "a"), save(tokens_by_turn(frame), tmp_path / "b")
    assert [p.read_bytes() for p in first] == [p.read_bytes() for p in second]
    assert "By cause: system 20 (38%)" in first[1].read_text(encoding="utf-8")
    assert b"By cause: system 20 (38%)" in first[0].read_bytes()


def test_a_frame_of_the_meter_has_no_depth() -> None:
    frame = pd.DataFrame(
        {"session": ["a", "b"], "call": [1, 1], "turn": [1, 1], "cause": ["task"] * 2, "tokens": [3, 4]}
    )
    assert "7 prompt tokens" in turns_text(frame)


@pytest.mark.parametrize(
    ("frame", "said"),
    [(Ledger().frame(), "no tokens"), (pd.DataFrame({"turn": [1]}), "no column cause, tokens")],
)
def test_what_cannot_be_drawn(frame: pd.DataFrame, said: str) -> None:
    with pytest.raises(StudyError, match=said):
        tokens_by_turn(frame)

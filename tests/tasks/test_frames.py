"""The suite `frames`: its answers, its frames, and how strategies meet them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, cast

import pytest

from rlm_loop import DirectAgent, ScriptedModel, ToolLoopAgent
from rlm_loop.tasks import Attempt, Deferred, get_suite
from rlm_loop.tasks.frames import rows_of
from tests.lazy import Lazy, needs

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = Lazy("pandas")

pytestmark = needs("pandas", extra="suites")
SUITE = get_suite("frames")
(VOID,) = SUITE.take(["frames-void"])


@pytest.mark.parametrize("table", sorted({task.facts["table"] for task in SUITE}))
def test_a_frame_holds_the_recorded_rows(table: str) -> None:
    task = next(t for t in SUITE if t.facts["table"] == table)
    rows, frame = rows_of(cast(Deferred, task.context).name.removeprefix("frames/")), task.material()
    assert len(frame) == len(rows) == task.facts["rows"]
    for column in frame.columns:
        values = [None if pd.isna(v) else v for v in frame[column].tolist()]
        assert values == [row[column] for row in rows]


def test_without_pandas_a_frame_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r'pip install -e "\.\[suites\]"'):
        VOID.material()


def test_the_code_loop_computes_on_the_frame() -> None:
    code = "```python\nfinal_answer(int((context.status == 'void').sum()))\n```"
    outcome = ToolLoopAgent(model=ScriptedModel([code])).attempt(VOID)
    assert VOID.judge(Attempt.of(outcome)).resolved


def test_a_strategy_without_a_repl_reads_whole_rows() -> None:
    model = ScriptedModel(["76"])
    DirectAgent(model=model, window=2000).attempt(VOID)
    told = model.prompts[0].messages[-1].text
    lines = VOID.material().to_csv(index=False).splitlines()
    shown = [line for line in told.splitlines() if line in lines]
    assert (lines[:20], lines[-10:]) == (shown[:20], shown[-10:])
    assert f"\n... [{len(lines) - len(shown)} rows left out] ...\n" in told
    assert 1900 < sum(len(line) + 1 for line in shown) < 2000

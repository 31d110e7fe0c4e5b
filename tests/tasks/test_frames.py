"""The suite `frames`: its answers, its frames, and how strategies meet them."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any, cast

import pytest

from rlm_loop import DirectAgent, ScriptedModel, ToolLoopAgent
from rlm_loop.tasks import Attempt, Deferred, Task, get_suite
from rlm_loop.tasks.frames import rows_of
from tests.lazy import Lazy, needs

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = Lazy("pandas")

pytestmark = needs("pandas", extra="suites")
SUITE = get_suite("frames")
TABLES = sorted({task.facts["table"] for task in SUITE})
VOID = next(task for task in SUITE if task.id == "frames-void")


def near(value: Any) -> Any:
    if isinstance(value, list):
        return value[::-1]
    return f"{value}1" if isinstance(value, str) else value + {int: 1, float: 0.02}[type(value)]


@pytest.mark.parametrize("task", SUITE.tasks, ids=lambda task: task.id)
def test_what_is_near_is_wrong(task: Task) -> None:
    assert not task.judge(Attempt(near(task.expected), answered=True)).resolved
    assert not task.judge(Attempt()).resolved


def test_the_halves_are_alike_and_ask_about_other_rows() -> None:
    assert [t.level for t in SUITE] == sorted(t.level for t in SUITE)
    dev, test = SUITE.split("dev"), SUITE.split("test")
    for first, second in zip(dev, test, strict=True):
        assert (first.level, first.tags[2]) == (second.level, second.tags[2])
    for half in (dev, test):
        tables = [t.facts["table"] for t in half]
        assert all(tables.count(name) >= 4 for name in TABLES)
    assert not {t.context for t in dev} & {t.context for t in test}


@pytest.mark.parametrize("table", TABLES)
def test_a_frame_is_the_same_each_time_and_holds_the_recorded_rows(table: str) -> None:
    task = next(t for t in SUITE if t.facts["table"] == table)
    rows, frame = rows_of(cast(Deferred, task.context).name.removeprefix("frames/")), task.material()
    pd.testing.assert_frame_equal(frame, task.material())
    assert 200 <= len(frame) == len(rows) == task.facts["rows"] <= 2000
    for column in frame.columns:
        values = [None if pd.isna(v) else v for v in frame[column].tolist()]
        assert values == [row[column] for row in rows]
    assert frame.drop_duplicates().shape != frame.shape or table != "members"


def test_each_table_has_a_line_of_its_own() -> None:
    lines = {cast(Deferred, t.context).identify() for t in SUITE}
    assert len(lines) == 16
    assert "frames/orders/0.0.0; 4b360e4b4f9b5b40" in lines


@pytest.mark.slow
def test_without_pandas_the_questions_can_be_listed_and_a_frame_says_what_to_install() -> None:
    program = (
        "import sys; sys.modules['pandas'] = None\n"
        "from rlm_loop.tasks import get_suite\n"
        "task = get_suite('frames').tasks[0]\n"
        "print(task.expected > 0)\n"
        "try: task.material()\n"
        "except ImportError as e: print(e)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "True",
        'the suite frames needs pandas: pip install -e ".[suites]" in your clone of rlm_loop',
    ]


def test_the_code_loop_computes_on_the_frame() -> None:
    code = "```python\nfinal_answer(int((context.status == 'void').sum()))\n```"
    outcome = ToolLoopAgent(model=ScriptedModel([code])).attempt(VOID)
    assert VOID.judge(Attempt.of(outcome)).resolved


def test_a_strategy_without_a_repl_reads_whole_rows() -> None:
    model = ScriptedModel(["76"])
    outcome = DirectAgent(model=model, window=2000).attempt(VOID)
    assert outcome.answer == "76"
    told = model.prompts[0].messages[-1].text
    lines = VOID.material().to_csv(index=False).splitlines()
    shown = [line for line in told.splitlines() if line in lines]
    assert (lines[:20], lines[-10:]) == (shown[:20], shown[-10:])
    assert f"\n... [{len(lines) - len(shown)} rows left out] ...\n" in told
    assert 1900 < sum(len(line) + 1 for line in shown) < 2000

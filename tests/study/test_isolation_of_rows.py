"""Each row says what its cells were kept apart by; which launcher that was is no part of a study."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from rlm_loop import ToolLoopAgent
from rlm_loop.models import ScriptedModel
from rlm_loop.repl import PythonREPL
from rlm_loop.repl.isolation.kinds import Strongest
from rlm_loop.study import Study
from rlm_loop.tasks.base import Score, Suite, Task


def test_rows_record_it_and_a_study_goes_on_with_another(tmp_path: Path) -> None:
    tasks = tuple(Task(name, "6 * 7?", lambda a: Score(a.answer == 42, 1.0)) for name in ("one", "two"))
    agent = ToolLoopAgent(ScriptedModel(["```python\nfinal_answer = 6 * 7\n```"] * 2))
    plain = replace(agent, repl=lambda: PythonREPL(launcher="plain"))
    Study("mine", {"loop": plain}, [Suite("s", tasks[:1])], model=None).run(tmp_path, False)
    rows = Study("mine", {"loop": agent}, [Suite("s", tasks)], model=None).run(tmp_path, False).rows
    assert [row["isolation"] for row in rows] == ["plain", Strongest().here()]
    assert all(row["resolved"] for row in rows)

"""A study shows its grid before it runs, and its results as a table, also where only Markdown is shown."""

from __future__ import annotations

from rlm_loop import ToolLoopAgent
from rlm_loop.models import ScriptedModel
from rlm_loop.study import Study
from rlm_loop.tasks import Attempt, Score, Suite, Task


def right(attempt: Attempt) -> Score:
    return Score(attempt.answer == 1, float(attempt.answer == 1), "")


def study(name: str) -> Study:
    def arms(model: object, seed: int) -> dict[str, ToolLoopAgent]:
        return {
            arm: ToolLoopAgent(model=ScriptedModel([f"```python\nfinal_answer = {answer}\n```"] * 2))
            for arm, answer in (("<one>", 1), ("two", 2))
        }

    return Study(name, arms, Suite("s", tuple(Task(f"t{n}", "?", right) for n in range(2))), differs=None)


def test_the_grid_before_it_runs() -> None:
    page = study("<b>grid</b>")._repr_html_()
    assert "<b>grid</b>" not in page.replace("<b>&lt;b&gt;grid&lt;/b&gt;</b>", "")
    for part in ("&lt;one&gt;, two", "s (2 tasks)", "episodes", ">4<", "not declared"):
        assert part in page

"""What a hurried newcomer types: it works, or one line says what to type instead."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from rlm_loop import Budget, Compaction, LeanAgent, ReActAgent, Suite, Task, ToolLoopAgent, tool
from rlm_loop.agents import Agent, Rules, SubCalls
from rlm_loop.models import ScriptedModel
from rlm_loop.repl import PythonREPL
from rlm_loop.study import Study, StudyError
from rlm_loop.tasks import Attempt, Score

TASK = Task("a", "2 + 2?", 4)


def four() -> ScriptedModel:
    return ScriptedModel(["4"])


def study(*args: Any, **given: Any) -> Study:
    return Study("s", *(args or ({"lean": LeanAgent(four())}, [TASK])), **given)


TAKEN = [tool(lambda: 1, name=name, description="Do it.") for name in ("add", "add", "context")]
WRONG: list[tuple[Callable[[], Any], str]] = [
    (lambda: LeanAgent(budget=25), "budget must be a Budget, .* got 25"),
    (lambda: LeanAgent(temperature="hot"), "temperature must be a number, .* got 'hot'"),
    (lambda: LeanAgent(temperature=-0.1), "temperature must be a number, .* got -0.1"),
    (lambda: ToolLoopAgent(max_depth=1.5), "depth must be"),
    (lambda: LeanAgent(rules=Rules(allow="look")), "list of tool names"),
    (lambda: LeanAgent(subcalls=SubCalls(concurrency=0)), "concurrency must be .* at least 1, got 0"),
    (lambda: LeanAgent(model=5), "model must be a name"),
    (lambda: LeanAgent(four()).run("?", max_steps=3), r"max_steps is a setting of the agent.* LeanAgent\(max_steps"),
    (lambda: LeanAgent(four()).run("?", contxt=3), "no argument 'contxt'; did you mean 'context'"),
    (lambda: LeanAgent(injectors=[object()]), "injectors must be Injector .* got <object"),
    (lambda: LeanAgent(tools=print), "tools must be a list, got .*print"),
    (lambda: LeanAgent(tools=[5]), "a tool must be a documented function"),
    (lambda: LeanAgent(four(), tools=TAKEN).run("?"), "add, context"),
    (lambda: LeanAgent(hooks=Budget()), r"write hooks=\[...\]"),
    (lambda: LeanAgent(repl="sandox"), "did you mean 'sandbox'"),
    (lambda: ReActAgent(form="json"), 'form must be one of "text", "calls", got \'json\''),
    (lambda: ToolLoopAgent(answer_type=object()), "answer_type is a type .* verify= takes a function"),
    (lambda: ToolLoopAgent(system=["a"]), "system must be a text"),
    (lambda: LeanAgent(four()).run(5), "Task.question is a text, not 5"),
    (lambda: LeanAgent(history="windw"), "drop_outputs, window, summary"),
    (lambda: LeanAgent(history=4.0), "max_messages"),
    (lambda: LeanAgent(history=0), "at least 1"),
    (lambda: Compaction(threshold_tokens=None), "never happens"),
    (lambda: LeanAgent(tools=[PythonREPL(), PythonREPL()]), "give one"),
    (lambda: LeanAgent(presentation="constrained", rules=Rules(may_block=True)), "leave may_block off"),
    (lambda: LeanAgent(presentation="constrained", answer_tool=False), "answer_tool"),
    (lambda: Budget(repeated=1), r"Budget\.repeated must be"),
    (lambda: Budget(steps=1.5), "Budget.steps must be a whole number or None, got 1.5"),
    (lambda: Task("a", "2 + 2?"), "give expected=, or score="),
    (lambda: Task("2 + 2?", 4), "Task.question is a text, not 4"),
    (lambda: Task("a", "?", lambda attempt: None).judge(Attempt("4")), "scorer of 'a' returned None: return a Score"),
    (lambda: Suite([TASK], "s"), "a suite holds tasks, not 's'"),
    (lambda: Suite("s", ["2 + 2?"]), "a suite holds tasks, not '2"),
    (lambda: study({"lean": LeanAgent(four())}, "computation"), "tasks must be suites or tasks, not 'computation'"),
    (lambda: study({"lean": LeanAgent}, [TASK]).episodes(), "the arm 'lean' is no agent"),
    (lambda: study(5, [TASK]).episodes(), "arms are agents by name"),
    (lambda: study(factors={"max_step": [2]}).episodes(), "no field 'max_step'; .* did you mean 'max_steps'"),
]


@pytest.mark.parametrize(("typed", "said"), WRONG, ids=[said[:50] for _, said in WRONG])
def test_a_misuse_is_refused_in_one_line(typed: Callable[[], Any], said: str) -> None:
    with pytest.raises((TypeError, ValueError, StudyError), match=said) as refused:
        typed()
    assert "\n" not in str(refused.value)


@dataclass(frozen=True)
class Own(LeanAgent):
    """An agent of a user's, without our decorators."""

    care: int = 1


@pytest.mark.parametrize(
    ("agent", "steps", "seconds"),
    [
        (Own(max_steps=5, care=2), 5, None),
        (replace(LeanAgent(max_steps=5, seconds=2), max_tokens=1), 5, 2),
        (replace(LeanAgent(max_steps=5), max_steps=6), 6, None),
        (pickle.loads(pickle.dumps(LeanAgent(max_steps=5))), 5, None),
        (LeanAgent(budget=Budget(steps=7, seconds=3), max_steps=5), 5, 3),
        (LeanAgent(budget=Budget(seconds=3), seconds=None, max_steps=None), 20, 3),
        (replace(LeanAgent(max_steps=5), budget=Budget(steps=8)), 8, None),
    ],
    ids=str,
)
def test_short_forms_are_limits_of_the_budget(agent: Agent, steps: int | None, seconds: float | None) -> None:
    assert (agent.budget.steps, agent.budget.seconds) == (steps, seconds)
    assert LeanAgent(max_steps=5, seconds=9) == LeanAgent(budget=Budget(steps=5, seconds=9))  # they leave no mark


def test_a_studys_limits_are_a_factor() -> None:
    study = Study("s", {"lean": LeanAgent(four(), seconds=9)}, [TASK], factors={"max_steps": [2, 3]})
    (arms,) = study.agents().values()
    limits = {name: (arm.budget.steps, arm.budget.seconds) for name, arm in arms.items()}
    assert limits == {"lean[max_steps=2]": (2, 9), "lean[max_steps=3]": (3, 9)}


@pytest.mark.parametrize(
    ("task", "right"),
    [
        (Task("a", "2 + 2?", 4), True),
        (Task("a", "2 + 2?", expected="4"), True),
        (Task("a", "2 + 2?", lambda attempt: attempt.answer == "4"), True),
        (Task("a", "2 + 2?", lambda attempt: Score(True, 1.0)), True),
        (Task("a", "2 + 2?", lambda attempt: attempt.answer == "5"), False),
    ],
    ids=["answer", "expected", "bool", "score", "wrong"],
)
def test_every_way_to_say_what_is_right(task: Task, right: bool, tmp_path: Path) -> None:
    assert task.judge(Attempt("4", answered=True)).resolved is right
    found = Study("s", LeanAgent(four()), [task]).run(tmp_path, progress=False)
    assert [(r["resolved"], r["suite"], r["arm"]) for r in found.rows] == [(right, "tasks", "calls")]


def test_a_text_that_names_a_file_is_asked_about(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "server.log").write_text("a line")
    with pytest.warns(UserWarning, match=r"was Path\('server.log'\) meant"):
        LeanAgent(four()).run("?", context="server.log")
    LeanAgent(four()).run("?", context="another text")

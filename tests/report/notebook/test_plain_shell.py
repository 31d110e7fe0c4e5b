"""The magic in a plain IPython shell, without a notebook."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rlm_loop import Budget, ToolLoopAgent
from rlm_loop.models import ModelError, ScriptedModel
from tests.repl.session_kinds import ipython_shell

pytest.importorskip("IPython", reason='pip install -e ".[notebooks]"')


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Any]:
    with ipython_shell(tmp_path) as made:
        made.run_line_magic("load_ext", "rlm_loop")
        made.push({"rows": [1, 2, 3], "model": scripted("print(context)", "final_answer = len(context)")})
        yield made


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Callable[[], list[str]]:
    """The lines that were shown since the last look."""
    return lambda: "".join(capsys.readouterr()).strip().splitlines()


def scripted(*cells: Any) -> ScriptedModel:
    return ScriptedModel([f"```python\n{c}\n```" if isinstance(c, str) else c for c in cells])


def test_a_cell_is_run_and_its_steps_are_lines(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    done = shell.run_cell("%%rlm --model model --context rows\nHow many rows?")
    assert (done.success, done.result, shell.user_ns["outcome"].answer) == (True, None, 3)
    shown = capsys.readouterr().err
    said = ("the outcome is kept as outcome", "[1, 2, 3]", "%%rlm")
    assert [part in shown for part in said] == [True, True, False]
    assert "--background" in shell.find_cell_magic("rlm").__doc__


MISUSES = [
    ("--modle x", "?", "unrecognized arguments: --modle x; did you mean '--model'?; %%rlm? lists the options"),
    ("--model", "?", "expected one argument"),
    ("--model nosuch", "?", "'nosuch'"),
    ("--model rows", "?", "the variable rows holds no model but a list"),
    ("--agent x", "?", "there is no agent x: use tool-loop, lean, react, direct"),
    ("--agent talk --max-steps 3", "?", "--max-steps"),
    ("--context nope", "?", "nope"),
    ("--max-steps -1", "?", "steps"),
    ("--out 3x", "?", "--out 3x"),
    ('--context "', "?", "No closing quotation"),
    ("--model model", " ", "the cell is empty"),
]


@pytest.mark.parametrize(("line", "text", "told"), MISUSES)
def test_a_misuse_is_one_line(shell: Any, said: Any, line: str, text: str, told: str) -> None:
    with ToolLoopAgent(model=scripted("1")).session() as talk:
        shell.push({"talk": talk})
        assert not shell.run_cell(f"%%rlm {line}\n{text}").success
    (shown,) = said()
    assert (shown.startswith("UsageError: %%rlm: "), told in shown) == (True, True), shown


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("--context rows", [1, 2, 3]),
        ("--context rows,text", {"rows": [1, 2, 3], "text": "abc"}),
        ("--agent mine --context text", "abc"),
        ("--agent lean --max-steps 1", None),
    ],
)
def test_agent_and_context(shell: Any, line: str, answer: Any) -> None:
    mine = ToolLoopAgent(model="nosuch", budget=Budget(steps=7, seconds=9))
    shell.push({"text": "abc", "mine": mine, "model": scripted("final_answer = globals().get('context')")})
    assert shell.run_cell(f"%%rlm --model model {line}\n?").success
    assert shell.user_ns["outcome"].answer == answer or "lean" in line
    assert shell.user_ns["outcome"].agent == ("calls" if "lean" in line else "code")


def test_a_session_goes_on_from_cell_to_cell_and_in_the_background(shell: Any) -> None:
    with ToolLoopAgent(model=scripted("n = 3\nfinal_answer = n", "final_answer = 2 * n")).session() as talk:
        shell.push({"talk": talk})
        assert shell.run_cell("%%rlm --agent talk\nHow many rows?").success
        assert shell.run_cell("%%rlm --agent talk --out run --background\nAnd twice?").success
        assert shell.user_ns["run"].result(300).answer == 6
        assert [o.question for o in talk.outcomes] == ["How many rows?", "And twice?"]


@pytest.mark.parametrize(
    ("second", "stop", "told"),
    [
        (KeyboardInterrupt(), "interrupted", "Interrupted: interrupted after 1 turn; what was done is"),
        (ModelError("no reply: try again"), "failed", "UsageError: ModelError: no reply: try again; what was done is"),
    ],
)
def test_a_run_that_breaks_off_is_one_line_and_its_outcome_is_kept(
    shell: Any, said: Any, second: BaseException, stop: str, told: str
) -> None:
    shell.push({"model": scripted("print(1)", second)})
    assert not shell.run_cell("%%rlm --model model\nHow many?").success  # so that "run all" stops here
    assert (shell.user_ns["outcome"].stop, shell.user_ns["outcome"].steps) == (stop, 1)
    assert f"{told} in the variable outcome" in said()


def test_without_the_magic_an_error_is_its_line_and_message_and_where_the_outcome_is(shell: Any, said: Any) -> None:
    shell.push({"agent": ToolLoopAgent(model=scripted("print(1)", KeyboardInterrupt()))})
    shell.run_cell("agent.run('How many?')")
    assert said()[-1].endswith("what was done is in sys.last_value.outcome")
    assert sys.last_value.outcome.steps == 1
    shell.push({"agent": ToolLoopAgent(model=scripted(ModelError("no reply: try again")))})
    shell.run_cell("question = '?'\nagent.run(question)")
    assert said() == ["line 2 of <module>: agent.run(question)", "ModelError: no reply: try again"]
    shell.run_cell("held = (n for n in [])")  # it cannot be sent
    assert not shell.run_cell("%%rlm --model model --context held\nHow many are in held?").success
    assert "context" in "\n".join(said())

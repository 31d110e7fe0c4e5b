"""The magic in a plain IPython shell, without a notebook."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest

from rlm_loop import ToolLoopAgent
from rlm_loop.models import ModelError, ScriptedModel

pytest.importorskip("IPython", reason='pip install -e ".[notebooks]"')


@pytest.fixture
def shell() -> Iterator[Any]:
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    hook, display = sys.excepthook, sys.displayhook
    made = InteractiveShell(config=Config({"HistoryManager": {"enabled": False}}))
    made.run_line_magic("load_ext", "rlm_loop")
    made.push({"rows": [1, 2, 3], "model": scripted("print(context)", "final_answer = len(context)")})
    yield made
    made.run_line_magic("unload_ext", "rlm_loop")
    assert "rlm" not in made.magics_manager.magics["cell"]
    made.restore_sys_module_state()
    sys.excepthook, sys.displayhook = hook, display


def scripted(*cells: Any) -> ScriptedModel:
    return ScriptedModel([f"```python\n{c}\n```" if isinstance(c, str) else c for c in cells])


def test_a_cell_is_run_and_its_steps_are_lines(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    done = shell.run_cell("%%rlm --model model\nHow many rows?")
    assert done.success
    assert done.result is None
    shown = capsys.readouterr().err
    assert "context: a dict of rows; the outcome is kept as outcome" in shown
    assert "{'rows': [1, 2, 3]}" in shown
    assert shell.user_ns["outcome"].answer == 1
    assert "%%rlm" not in shown


def test_quiet_gives_the_outcome_as_the_value(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    done = shell.run_cell("%%rlm --model model --quiet --out mine --context rows\nHow many?")
    assert done.result is shell.user_ns["mine"]
    assert done.result.answer == 3
    assert "outcome" not in shell.user_ns
    assert capsys.readouterr().err == ""


def test_a_misuse_is_one_line(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    done = shell.run_cell("%%rlm --modle x\nHow many?")
    assert not done.success
    shown = capsys.readouterr()
    assert (shown.out + shown.err).strip() == (
        "UsageError: %%rlm: unrecognized arguments: --modle x; %%rlm? lists the options"
    )


def test_an_interrupted_run_is_one_line_and_its_outcome_is_kept(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    shell.push({"model": scripted("print(1)", KeyboardInterrupt())})
    done = shell.run_cell("%%rlm --model model --quiet\nHow many?")
    assert not done.success  # so that "run all" stops here
    assert shell.user_ns["outcome"].stop == "interrupted"
    assert shell.user_ns["outcome"].steps == 1
    shown = capsys.readouterr()
    assert (shown.out + shown.err).strip() == (
        "Interrupted: interrupted after 1 turn; what was done is in the variable outcome"
    )


def test_without_the_magic_it_says_where_the_outcome_is(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    shell.push({"agent": ToolLoopAgent(model=scripted("print(1)", KeyboardInterrupt()))})
    shell.run_cell("agent.run('How many?')")
    shown = capsys.readouterr()
    assert (shown.out + shown.err).strip().endswith("what was done is in sys.last_value.outcome")
    assert sys.last_value.outcome.steps == 1


def test_a_models_fault_is_one_line_and_what_was_done_is_kept(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    shell.push({"model": scripted("print(1)", ModelError("no reply: try again"))})
    done = shell.run_cell("%%rlm --model model --quiet\nHow many?")
    assert not done.success
    assert shell.user_ns["outcome"].stop == "failed"
    shown = capsys.readouterr()
    assert (shown.out + shown.err).strip() == (
        "UsageError: ModelError: no reply: try again; what was done is in the variable outcome"
    )


def test_a_variable_that_cannot_be_sent_is_one_line(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    shell.run_cell("held = (n for n in [])")
    done = shell.run_cell("%%rlm --model model --quiet\nHow many are in held?")
    assert not done.success
    shown = capsys.readouterr()
    assert "UsageError: TypeError: cannot send 'context' (dict) to the REPL" in shown.out + shown.err


def test_in_the_background_the_variable_holds_the_run(shell: Any) -> None:
    assert shell.run_cell("%%rlm --model model --background --out run\nHow many rows?").success
    assert shell.user_ns["run"].wait(300).answer == 1


def test_a_session_goes_on_from_cell_to_cell(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    shell.push(
        {"model": scripted("n = len(context['rows'])\nfinal_answer = n", *["final_answer = (n, sorted(context))"] * 3)}
    )
    assert shell.run_cell("%%rlm --model model --session talk\nHow many rows?").success
    assert shell.user_ns["outcome"].answer == 3
    assert shell.run_cell("%%rlm --session talk\nAnd the rows twice?").success
    assert "the session's context" in capsys.readouterr().err
    assert shell.run_cell("more = [4]").success
    assert shell.run_cell("%%rlm --session talk --out third --quiet\nAnd with more?").success
    assert shell.user_ns["third"].answer == (3, ["more", "rows"])
    assert shell.run_cell("%%rlm --session talk --out run --background\nAgain?").success
    assert shell.user_ns["run"].wait(300).answer == (3, ["more", "rows"])
    assert [o.question for o in shell.user_ns["talk"].outcomes] == [
        "How many rows?",
        "And the rows twice?",
        "And with more?",
        "Again?",
    ]
    shell.user_ns["talk"].close()
    assert shell.run_cell("%%rlm --session talk --model model\nIs it new?").success is False  # no reply is left
    assert len(shell.user_ns["talk"].outcomes) == 1
    shell.user_ns["talk"].close()


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("--session talk --model model", "--model belongs to the cell that began the session talk"),
        ("--session talk --max-depth 0", "--depth belongs to the cell"),
        ("--session rows", "the variable rows holds no session but a list"),
        ("--session outcome", "--session and --out are both outcome"),
        ("--session 1x", "--session 1x is not a variable's name"),
    ],
)
def test_what_cannot_be_of_a_session_is_one_line(
    shell: Any, capsys: pytest.CaptureFixture[str], line: str, told: str
) -> None:
    with ToolLoopAgent(model=scripted("1")).session() as talk:
        shell.push({"talk": talk})
        assert not shell.run_cell(f"%%rlm {line}\nHow many?").success
    shown = capsys.readouterr()
    assert told in shown.out + shown.err


def test_the_help_lists_the_options(shell: Any) -> None:
    told = shell.find_line_magic("rlm")
    assert told is None
    doc = shell.find_cell_magic("rlm").__doc__
    for option in ("--model", "--agent", "--context", "--steps", "--out", "--background"):
        assert option in doc

"""Errors show the user's own frames, and what tries to leave the REPL is an ordinary error."""

from __future__ import annotations

import pytest

from rlm_loop.repl import PythonREPL

ORDINARY = {
    "quit()": "SystemExit",
    "raise GeneratorExit": "GeneratorExit",
    "breakpoint()": "RuntimeError: breakpoint() does not work here: nobody can type into this REPL",
    "import pdb; pdb.set_trace()": "BdbQuit",
    "class E(Exception):\n    def __str__(self): raise ValueError\nraise E()": "E",
    "import os; os.kill(os.getpid(), 2)\nwhile True: pass": "KeyboardInterrupt",
    "x = '\\0'\nint(x)": "ValueError: invalid literal for int() with base 10: '\\x00'",
}


@pytest.mark.parametrize("code", ORDINARY)
def test_ordinary_errors_leave_the_repl_alive(shared: PythonREPL, code: str) -> None:
    shared.run("alive = 1")
    result = shared.run(code)
    assert result.error == "runtime"
    assert result.message == ORDINARY[code]
    assert result.lost == ()
    assert shared.run("alive").output == "1"


@pytest.mark.parametrize(
    ("code", "line", "caret"),
    [("x = (1,\ny = 2", "x = (1,", "^"), ("if True\n  pass", "if True", "^"), ("a = 1\n  b = 2", "  b = 2", "")],
)
def test_syntax_errors_show_line_and_caret(shared: PythonREPL, code: str, line: str, caret: str) -> None:
    result = shared.run(code)
    assert result.message.split(":")[0] in ("SyntaxError", "IndentationError")
    assert line.strip() in result.output
    assert caret in result.output
    assert "Traceback" not in result.output


@pytest.mark.parametrize("code", ["a\0b", "(" * 5000, "-" * 100_000 + "1", "'\ud800'; x = \ud800"])
def test_code_that_cannot_be_compiled(shared: PythonREPL, code: str) -> None:
    assert shared.run(code).error == "runtime"
    assert shared.run("1").output == "1"


def test_a_syntax_error_runs_nothing(shared: PythonREPL) -> None:
    shared.run("ran = False")
    shared.run("ran = True\nprint('x'\n")
    assert shared.run("ran").output == "False"


def test_chains_and_groups(shared: PythonREPL) -> None:
    chained = shared.run("try:\n    1/0\nexcept ZeroDivisionError as e:\n    raise ValueError('outer') from e").output
    assert "ZeroDivisionError" in chained
    assert chained.rstrip().endswith("ValueError: outer")
    hidden = shared.run("try:\n    1/0\nexcept ZeroDivisionError:\n    raise ValueError('alone') from None").output
    assert "ZeroDivisionError" not in hidden
    group = shared.run("raise ExceptionGroup('both', [ValueError('one'), TypeError('two')])").output
    assert "ValueError: one" in group
    assert "TypeError: two" in group


def test_frames_of_a_module_in_the_working_folder_are_the_users() -> None:
    with PythonREPL(files={"mine.py": "def bad():\n    return {}['k']\n"}) as repl:
        assert "return {}['k']" in repl.run("import mine\nmine.bad()").output

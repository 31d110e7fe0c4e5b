"""One table of cells for every kind of session; what a kind does otherwise is in the table too."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest
from processes import Held
from session_kinds import KINDS, BudgetSpent, need, session

from rlm_loop import ToolLoopAgent
from rlm_loop.actions import FinalAnswer
from rlm_loop.models import ScriptedModel
from rlm_loop.repl import EvaluationFailed, ReplError, open_repl

#: Cells, and then what the last of them shows.
SHOWN: dict[str, tuple[str, ...]] = {
    "names stay": ("x = 1", "x + 1", "2"),
    "nothing for None": ("None", ""),
    "no echo after a print": ("print('a')\n5", "a\n"),
    "no echo after a semicolon": ("5;", ""),
    "echo is the repr": ("{'a': [1] * 40}", "{'a': [" + ", ".join(["1"] * 40) + "]}"),
    "bound before an exception": ("kept = 1\nraise ValueError\nnever = 2", "kept", "1"),
    "del": ("gone = 1", "del gone", "'gone' in globals()", "False"),
    "late binding": ("def f(): return g()", "def g(): return 7", "f()", "7"),
    "global": ("n = 0\ndef bump():\n global n\n n += 1", "bump(); bump()", "n", "2"),
    "nonlocal": ("def f(n=0):\n def g():\n  nonlocal n\n  n += 1\n  return n\n g()\n return g()\nf()", "2"),
    "comprehensions": ("k = 2", "[k for _ in 'ab'], {i: k for i in 'a'}, {k for _ in 'a'}", "([2, 2], {'a': 2}, {2})"),
    "generator expressions": ("k = 2", "sum(k * i for i in (1, 2))", "6"),
    "class name": ("class B: pass", "B", "<class '__main__.B'>"),
    "inheritance": (
        "class A:\n def __init__(self, x): self._x = x\n def __repr__(self): return f'A({self._x})'\n"
        "class B(A):\n def __init__(self): super().__init__(3); self._x += 1",
        "B()",
        "A(4)",
    ),
    "properties": ("class A:\n @property\n def p(self): return 5", "A().p", "5"),
    "class methods": ("class A:\n @classmethod\n def c(cls): return cls.__name__", "A().c()", "'A'"),
    "dataclass": ("import dataclasses as d\n@d.dataclass\nclass P:\n a: int\n b: int = 2", "P(1)", "P(a=1, b=2)"),
    "enum": ("from enum import Enum\nclass E(Enum):\n A = 1\n B = 2", "[e.name for e in E]", "['A', 'B']"),
    "named tuple": ("import collections as c\nP = c.namedtuple('P', 'x y')", "P(1, 2)._replace(y=3)", "P(x=1, y=3)"),
    "+= once": ("l = []\ndef at(v): l.append(v); return v\nd = {0: 5}\nd[at(0)] += at(1); d, l", "({0: 6}, [0, 1])"),
    "unpacking": ("a, (b, *c) = 1, (2, 3, 4)\na, b = b, a", "a, b, c", "(2, 1, [3, 4])"),
    "unpacking in displays": ("[*'ab', 5], {**{'k': 1}}", "(['a', 'b', 5], {'k': 1})"),
    "f-strings": ("x = 3.14159", "f'{x:.2f} {x!r} {x=}'", "'3.14 3.14159 x=3.14159'"),
    "str.format": ("'{0} {1.real} {k[a]:>3}'.format('x', 2, k={'a': 1})", "'x 2   1'"),
    "annotations": ("x: int = 5\ndef f(a: int, b: 'str' = 'x') -> 'int':\n y: int = a\n return y", "f(x)", "5"),
    "with and try": (
        "from contextlib import contextmanager\n@contextmanager\ndef c():\n try: yield 1\n finally: print('out')",
        "with c() as v:\n print(v)",
        "1\nout\n",
    ),
    "generators": ("def g():\n yield 1\n yield from (2, 3)", "list(g()), next(g())", "([1, 2, 3], 1)"),
    "walrus": ("if (n := 3) > 2: print(n)", "3\n"),
    "lambda and sorting": ("sorted({'b': 1, 'a': 2}.items(), key=lambda p: p[1])", "[('b', 1), ('a', 2)]"),
    "main": ("if __name__ == '__main__': print('main')", "main\n"),
    "analysis": (
        "import json, re, math, statistics, itertools, collections\nfrom datetime import date, timedelta",
        "json.dumps({'a': 1}), re.findall(r'\\d+', 'a1b22'), math.sqrt(4), statistics.mean([1, 3]), "
        "list(itertools.accumulate([1, 2])), collections.Counter('aab').most_common(1), "
        "date(2024, 2, 28) + timedelta(2)",
        "('{\"a\": 1}', ['1', '22'], 2.0, 2, [1, 3], [('a', 2)], datetime.date(2024, 3, 1))",
    ),
    "CRLF": ("if True:\r\n    crlf = 1\r\ncrlf", "1"),
    "text beyond ASCII": ("'é' + '😀'", "'é😀'"),
    "printed lone surrogate": ("print('\\ud800')", "\\ud800\n"),
    "colours are removed": ("print('\\x1b[31mred\\x1b[0m')", "red\n"),
    "progress bars end as their last state": ("print('10%\\r50%\\r100%')", "100%\n"),
    "a module's own prints": ("import pprint\npprint.pprint({'a': 1})", "{'a': 1}\n"),
}

#: How the line of an error begins.
ERRORS = {
    "1/0": "ZeroDivisionError: division by zero",
    "nope": "NameError: name 'nope' is not defined",
    "[].nope": "AttributeError: 'list' object has no attribute 'nope'",
    "x = (1,\ny = 2": "SyntaxError: '(' was never closed",
    "def f():\npass": "IndentationError: expected an indented block",
    "raise ValueError('first\\nsecond')": "ValueError: first",
    "assert 1 == 2, 'why'": "AssertionError: why",
    "exit()": "SystemExit",
    "import sys; sys.exit(3)": "SystemExit: 3",
    "raise KeyboardInterrupt": "KeyboardInterrupt",
    "raise BaseException('b')": "BaseException: b",
    "input('? ')": "EOFError: EOF when reading a line",
    "def f(): return f()\nf()": "RecursionError: maximum recursion depth exceeded",
    "class R:\n def __repr__(self): raise RuntimeError('no repr')\nR()": "RuntimeError: no repr",
    "a\0b": "SyntaxError: source code",
}

Case = tuple[tuple[str, ...], tuple[str, str], dict[str, tuple[str, str]]]


def cell(*cells: str, output: str = "", error: str = "", **otherwise: tuple[str, str]) -> Case:
    """`otherwise` has output (a beginning, where it ends in `...`) and error of kinds that do it in another way."""
    return cells, (output, error), otherwise


REFUSED, NO_IMPORT = ("", "SyntaxError: not allowed in a restricted session"), ("", "ImportError")
CASES: dict[str, Case] = {
    **{name: cell(*cells, output=output) for name, (*cells, output) in SHOWN.items()},
    **{code: cell(code, error=error) for code, error in ERRORS.items()},
    # -- what restricted sessions refuse
    "match": cell(
        "def f(v):\n match v:\n  case {'k': [a, *rest]}: return a, rest\n  case int() | str(): return 'plain'\n"
        "  case _: return None\nf({'k': [1, 2]}), f(3), f(None)",
        output="((1, [2]), 'plain', None)",
        restricted=REFUSED,
    ),
    "private names": cell(
        "class A:\n def up(self):\n  self.__n = 1\n  self.__n += 2\n  return self.__n\nA().up()",
        output="3",
        restricted=REFUSED,
    ),
    "async def": cell("async def co(): return 5", "await co()", output="5", restricted=REFUSED),
    "asyncio": cell(
        "import math\nasync def co(): return 6", "import asyncio\nasyncio.run(co())", output="6", restricted=NO_IMPORT
    ),
    "top-level await": cell("await __import__('asyncio').sleep(0, 'woke')", output="'woke'", restricted=REFUSED),
    "exec": cell("exec('y = 4'); y", output="4", restricted=REFUSED),
    "frames": cell("(i for i in ()).gi_frame is not None", output="True", restricted=REFUSED),
    "subclasses": cell("len(object.__subclasses__()) > 10", output="True", restricted=REFUSED),
    "other modules": cell("import os\nos.sep", output="'/'", restricted=("", "ImportError: 'os' cannot be imported")),
    "other files": cell("open('/dev/null').close()", restricted=("", "PermissionError: '/dev/null' is outside")),
    # -- what only a process of its own can capture
    "a child": cell("import os\nos.system('echo hi');", output="hi\n", restricted=NO_IMPORT, notebook=("", "")),
    "past sys.stdout": cell("import os\nos.write(1, b'raw');", output="raw", restricted=NO_IMPORT, notebook=("", "")),
    "a thread's output": cell(
        "import threading\nt = threading.Thread(target=print, args=('in a thread',))\nt.start(); t.join()",
        output="in a thread\n",
        restricted=NO_IMPORT,
        notebook=("", ""),
    ),
    # -- IPython's syntax
    "magic": cell("%time x = 3", error="SyntaxError", kernel=("CPU times...", ""), notebook=("CPU times...", "")),
    "shell": cell("!echo hi", error="SyntaxError", kernel=("hi\n", ""), notebook=("hi...", "")),
}


@pytest.fixture(scope="module")
def clock() -> Held:
    """The sessions' clock."""
    return Held()


@pytest.fixture(scope="module", params=KINDS)
def kind_and_session(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, clock: Held
) -> Iterator[tuple[str, Any]]:
    with session(request.param, tmp_path_factory.mktemp("ipython"), timeout=60, grace=30, clock=clock) as made:
        yield request.param, made


@pytest.fixture
def alike(kind_and_session: tuple[str, Any]) -> Any:
    return kind_and_session[1]


@pytest.mark.parametrize("name", CASES)
def test_cells(kind_and_session: tuple[str, Any], name: str) -> None:
    kind, made = kind_and_session
    cells, expected, otherwise = CASES[name]
    output, error = otherwise.get(kind, expected)
    result = [made.run(code) for code in cells][-1]
    if error:
        assert (result.error, result.message[: len(error)]) == ("runtime", error)
        assert error.partition(":")[0] in result.output
        assert "rlm_loop" not in result.output
    else:
        assert (result.error, result.message) == (None, "")
        assert result.output.startswith(output[:-3]) if output.endswith("...") else result.output == output


ANSWERS = {
    "final_answer = None": FinalAnswer(None, "object"),
    "final_answer = 0": FinalAnswer(0, "object"),
    "final_answer = []\nfinal_answer.append(3)": FinalAnswer([3], "object"),
    "final_answer((1, {2: 'b'}))": FinalAnswer((1, {2: "b"}), "object"),
    "final_answer = 1\nfinal_answer = 2": FinalAnswer(2, "object"),
    "try:\n    final_answer(8)\nexcept Exception:\n    pass": FinalAnswer(8, "object"),
    "class R:\n    def __repr__(self): return 'R!'\nfinal_answer = R()": FinalAnswer("R!", "repr"),
    "x = final_answer": None,
    "final_answer = 5\ndel final_answer": None,
    "def f():\n    final_answer = 3\nf()": None,
    "2": None,
}


@pytest.mark.parametrize("code", ANSWERS)
def test_answers(alike: Any, code: str) -> None:
    alike.new_run()
    result = alike.run(code)
    assert (result.error, result.answer) == (None, ANSWERS[code])
    assert alike.run("3").answer is None


def test_pending_is_confirmed_or_deleted_and_a_new_run_forgets(alike: Any) -> None:
    alike.new_run()
    first = alike.run("final_answer = 41\n1/0")
    assert (first.answer, first.pending, first.error) == (None, FinalAnswer(41, "object"), "runtime")
    assert alike.run("print(final_answer)").output == "41\n"
    assert alike.run("final_answer = final_answer").answer == FinalAnswer(41, "object")
    assert (alike.run("del final_answer").answer, "not set" in alike.run("final_answer").output) == (None, True)
    assert alike.run("del final_answer\nfinal_answer = 5").answer == FinalAnswer(5, "object")
    alike.new_run()
    assert "not set" in alike.run("final_answer").output
    assert alike.get("'final_answer' in globals()") is False


def test_errors_show_the_users_frames_only(alike: Any) -> None:
    alike.run("def inner(x):\n    return 1 / x\n")
    lines = alike.run("import json\ndef outer():\n    return inner(0)\n\nouter()").output.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert [x.strip() for x in lines if x.startswith("    ")] == ["outer()", "return inner(0)", "return 1 / x"]
    assert lines[-1] == "ZeroDivisionError: division by zero"
    library = alike.run("json.loads('{')").output
    assert "decoder.py" not in library
    assert "json.loads('{')" in library


def test_output_is_clipped_in_the_middle(alike: Any) -> None:
    result = alike.run("print('a' * 100_000 + 'é' * 100_000)")
    assert (result.truncated, len(result.output) <= alike.output_cap) == (True, True)
    assert result.full == "a" * 100_000 + "é" * 100_000 + "\n"  # for the record
    assert "characters left out" in result.output
    assert (result.output[0], result.output[-2:]) == ("a", "é\n")
    echo = alike.run("'b' * 200_000")
    assert (echo.truncated, echo.output[:2]) == (True, "'b")
    assert (echo.full, alike.run("1").full) == ("'" + "b" * 200_000 + "'", "")


def test_set_get_and_reserved_names(alike: Any) -> None:
    value = {"a": [1, (2, {3})], 4: "é\r\n\0"}
    alike.set("given", value)
    assert alike.get("given") == value
    alike.run("given['a'].append(5)")
    alike.set("fixed", "text", reserved=True)
    assert (alike.run("print(fixed)").output, alike.run("final_answer = 1").output) == ("text\n", "")
    told = alike.run("print('b'); fixed = 1; raise ValueError('no')").output.splitlines()
    assert (told[0], told[-2], "fixed" in told[-1]) == ("b", "ValueError: no", True)
    assert alike.run("fixed").output == "'text'"
    alike.add_tools({"add": lambda a, b: a + b})
    told = alike.run("del fixed\ndef add(a, b): return 0").output
    assert ("fixed" in told, "add" in told, told.count("\n")) == (True, True, 0)
    assert alike.run("add(1, 2), fixed").output == "(3, 'text')"
    with pytest.raises(EvaluationFailed, match="NameError"):
        alike.get("no_such_name")
    with pytest.raises(ValueError, match="not usable"):
        alike.set("final_answer", 1)


def test_large_values_go_in_exactly(alike: Any) -> None:
    text = "é\r\n\0😀x" * 300_000
    alike.set("big", text)
    assert alike.get("len(big), big[:6], big == big[:6] * 300_000") == (len(text), text[:6], True)


def add(a: int, b: int = 2) -> int:
    """Add two numbers."""
    return a + b


def test_host_tools(alike: Any) -> None:
    def fail() -> None:
        raise LookupError("no such page")

    alike.add_tools({"add": add, "fail": fail, "again": lambda: alike.run("1")})
    assert alike.run("add(1), add(a=1, b=5)").output == "(3, 6)"
    caught = alike.run("try:\n    fail()\nexcept RuntimeError as e:\n    print(e)")
    assert caught.output == "LookupError: no such page\n"
    failed = alike.run("fail()")
    assert (failed.message, "rlm_loop" in failed.output) == ("ToolError: LookupError: no such page", False)
    assert "session of its own" in alike.run("again()").message
    assert "add(a: 'int', b: 'int' = 2) -> 'int'\n" in (told := alike.run("help(add)").output)
    assert "Add two numbers." in told
    alike.run("add = 3")
    assert alike.run("add(1)").output == "3"
    with pytest.raises(ValueError, match="'print'"):
        alike.add_tools({"print": add})


def test_what_tools_were_put_over_returns(alike: Any) -> None:
    alike.add_tools({"search": lambda: "host"})
    alike.run("def look(): return 'mine'")
    borrowed = ["search", "look", "fresh"]
    for run in ("first", "second"):  # a run may add its tools more than once, and more than one may borrow
        alike.add_tools({name: lambda run=run: run for name in borrowed})
    alike.run("look = 3")  # restored at once, to the tool
    for run in ("second", "first"):
        assert alike.run("search(), look(), fresh()").output == repr((run,) * 3)
        alike.give_back([*borrowed, "no_such_name"])
    assert alike.run("search(), look()").output == "('host', 'mine')"
    assert alike.run("fresh").message.startswith("NameError")


@pytest.mark.parametrize("code", ["stop()", "while True:\n try:\n  stop()\n except Exception:\n  pass"])
def test_a_tool_that_ends_the_run(alike: Any, code: str) -> None:
    spent = BudgetSpent("no tokens left")

    def stop() -> None:
        raise spent

    alike.add_tools({"stop": stop})
    with pytest.raises(BudgetSpent) as raised:
        alike.run("print('partial')\n" + code)
    assert (raised.value, alike.last.error, "partial" in alike.last.output) == (spent, "budget", True)
    assert alike.run("2").output == "2"


STOPPED = {
    "loop": "while True: pass",
    "sleep": "import time; time.sleep(60)",
    # `n = 0` stands between: CPython 3.12 takes what is raised at the head of a loop for a part of what is before it
    "swallowed once": "import time\ntry:\n    time.sleep(60)\nexcept BaseException: pass\nn = 0\nwhile True: n += 1",
    "answer": "final_answer = 5\ngo()\nwhile True: pass",
}


@pytest.mark.parametrize("name", STOPPED)
def test_a_time_limit_keeps_the_variables(alike: Any, clock: Held, name: str) -> None:
    alike.new_run()
    alike.add_tools({"go": clock.go})
    alike.run("kept = 1")
    clock.hold()
    code = "print('first')\n" + STOPPED[name]
    result = alike.run(code if "go()" in code else code.replace("\n", "\ngo()\n", 1), timeout=0.3)
    clock.free()
    assert (result.error, "all variables are kept" in result.message) == ("timeout", True)
    # a stop that strikes between two lines of the cell, in our own code, has no line of the cell to show
    assert result.output.startswith(("first\nTraceback", "first\nKeyboardInterrupt"))
    assert result.output.endswith("KeyboardInterrupt\n")
    assert result.pending == (FinalAnswer(5, "object") if name == "answer" else None)
    assert alike.run("kept").output == "1"


def test_time_in_a_tool_is_not_the_cells(alike: Any, clock: Held) -> None:
    alike.add_tools({"slow": lambda: clock.skip(3600)})
    result = alike.run("slow()", timeout=1800)
    assert (result.error, result.seconds < 1800) == (None, True)


def test_a_lent_session_is_given_back_as_it_was(alike: Any) -> None:
    alike.add_tools({"add": lambda *_: "the user's"})
    alike.set("context", "own", reserved=True)
    alike.run("def llm_query(q): return 'mine'")
    own = "add(1, 2), llm_query('q'), context"
    reply = f"```python\nfinal_answer = ({own})\n```"
    asks = ToolLoopAgent(ScriptedModel([reply, "asked"]), repl=alike, tools=[add])
    assert asks.run("q", context="abc").answer == (3, "asked", "abc")
    assert alike.run(own).output == "(\"the user's\", 'mine', 'own')"
    forbids = ToolLoopAgent(ScriptedModel([reply]), repl=alike, max_depth=0)
    assert forbids.run("q").answer == ("the user's", "mine", "own")
    with ToolLoopAgent(ScriptedModel([reply, "asked"] * 2), repl=alike).session(context="abc") as questions:
        assert [questions.ask("q", context=c).answer[2] for c in ("abc", "de")] == ["abc", "de"]
    assert alike.run("llm_query('q'), context").output == "('mine', 'own')"


@pytest.mark.parametrize("kind", KINDS)
def test_setup_and_closing(kind: str, tmp_path: Any) -> None:
    with session(kind, tmp_path, setup="base = 40\ndef helper(): return base + 2") as made:
        assert made.run("helper()").output == "42"
    made.close()
    uses = lambda: made.run("1"), lambda: made.set("a", 1), lambda: made.get("1"), lambda: made.add_tools({})
    for use in (*uses, made.new_run):
        with pytest.raises(ReplError, match="closed"):
            use()


@pytest.mark.parametrize("kind", [k for k in KINDS if k != "notebook"])
def test_a_clean_beginning_with_files_of_its_own(kind: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_API_KEY", "hidden")
    text, raw = "a,b\r\n1,é\r\n", b"\x00\xff"
    files = {"a.csv": text, "sub/raw.bin": raw, "random.py": "raise RuntimeError", "mine.py": "x = 4"}
    with session(kind, tmp_path, files=files) as made:
        assert made.run("[n for n in dir() if not n.startswith('__')]").output == "[]"
        assert made.run("import random; random.randint(1, 1)").output == "1"
        assert made.run("with open('a.csv', newline='') as f: text = f.read()\ntext").output == repr(text)
        assert made.run("with open('sub/raw.bin', 'rb') as f: raw = f.read()\nraw").output == repr(raw)
        made.run("with open('new.txt', 'w') as f: _ = f.write('ü')")
        folder = made.cwd
        assert (folder / "new.txt").read_text("utf-8") == "ü"
        if kind != "restricted":
            code = "import mine, os, sys; mine.x, os.environ.get('MY_API_KEY'), len(sys.argv)"
            assert made.run(code).output == "(4, None, 1)"
    assert not folder.exists()


@pytest.mark.parametrize("kind", ["restricted", "kernel"])
def test_an_agent_picks_one_by_name(kind: str, tmp_path: Any) -> None:
    need(kind)
    model = ScriptedModel(["```python\nfinal_answer = len(context)\n```"])
    outcome = ToolLoopAgent(model, repl=kind).run("How long?", context="abc", trace=tmp_path / "t.jsonl")
    assert (outcome.answer, outcome.isolation) == (3, kind)


MISSING = {
    "kernel": ("IPython", r'pip install -e "\.\[kernel\]"'),
    "restricted": ("RestrictedPython", r'pip install -e "\.\[restricted\]"'),
    "notebook": ("IPython", "no notebook here to attach to"),
}


@pytest.mark.parametrize("kind", MISSING)
def test_what_is_missing_is_named(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    need(kind)
    module, told = MISSING[kind]
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ReplError, match=told), open_repl(kind) as made:
        made.run("1")

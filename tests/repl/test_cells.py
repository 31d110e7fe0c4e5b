"""Cells behave as in a notebook: names, output, errors, answers, and functions of the host that they call."""

from __future__ import annotations

import contextvars
import datetime as dt
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from session_kinds import SEEN, BudgetSpent, seen

from rlm_loop.actions import FinalAnswer
from rlm_loop.repl import PythonREPL, ReplError, SetupFailed, open_repl
from rlm_loop.repl.text import clip, shown

# -- names and output

LATE = (
    "import threading\nfrom concurrent.futures import ThreadPoolExecutor\n"
    "go = threading.Event(); pool = ThreadPoolExecutor(1)\n"
    "t = threading.Thread(target=lambda: (go.wait(), print('late'))); t.start()"
)

#: Cells, and then what the last of them shows.
SHOWN: dict[str, tuple[str, ...]] = {
    "type hints": ("import typing\nclass N: pass\ndef h(a: 'N'): ...", "typing.get_type_hints(h)['a'] is N", "True"),
    "source": ("import inspect\ndef src():\n pass", "print(inspect.getsource(src))", "def src():\n pass\n"),
    "our modules": ("import importlib.util as u", "[u.find_spec(m) for m in ('worker', 'session')]", "[None, None]"),
    "packages of this interpreter": ("import pytest; pytest.__file__", repr(pytest.__file__)),
    "os.system": ("import os; _ = os.system('printf out; printf err >&2')", "outerr"),
    "fork": ("import os\nif not (pid := os.fork()): print('child'); os._exit(0)\nos.waitpid(pid, 0);", "child\n"),
    "colours in a repr": ("class R:\n    def __repr__(self): return '\\x1b[31mred\\x1b[0m \\x00'\nR()", "red \ufffd"),
    "stdout.buffer": ("import sys; print('a'); _ = sys.stdout.buffer.write(b'b\\n')", "a\nb\n"),
    "moved": ("import contextlib, io\nwith contextlib.redirect_stdout(io.StringIO()) as s: print()\ns.tell()", "1"),
    "stdout": ("import sys; print(sys.stdout.isatty(), sys.stdout.encoding, sys.stdout.fileno())", "False utf-8 1\n"),
    "after closed descriptors": ("import os; os.close(1); os.close(2)", "print('a'); os.write(1, b'b\\n');", "a\nb\n"),
    "a handler": ("import logging; logging.basicConfig(format='%(message)s')", "logging.warning('now')", "now\n"),
    "what a cell left": (LATE, "go.set(); t.join(); print(pool.submit(lambda: echo('two')).result())", "late\ntwo\n"),
}


@pytest.mark.parametrize("name", SHOWN)
def test_what_cells_show(shared: PythonREPL, name: str) -> None:
    shared.add_tools({"echo": lambda x: x})
    *cells, expected = SHOWN[name]
    result = [shared.run(cell) for cell in cells][-1]
    assert (result.output, result.error) == (expected, None)


@pytest.mark.parametrize("name", ["../x", "/etc/x", "", "a/../../x"])
def test_files_stay_inside_the_folder(name: str) -> None:
    with pytest.raises(ValueError, match="inside"):
        PythonREPL(files={name: ""})


WRONG: list[tuple[dict[str, Any], type[ReplError], str]] = [
    *(({"setup": setup}, SetupFailed, "setup") for setup in ("1/0", "import os; os._exit(1)", "def f(:")),
    ({"cwd": "/does/not/exist"}, ReplError, "does not exist"),
    ({"python": "/does/not/exist"}, ReplError, "/does/not/exist"),
]


@pytest.mark.parametrize(("options", "error", "told"), WRONG)
def test_a_session_that_cannot_begin_says_why(options: dict[str, Any], error: type[ReplError], told: str) -> None:
    with PythonREPL(**options) as repl, pytest.raises(error, match=told):
        repl.run("1")


def test_an_unknown_kind_is_refused_and_those_that_there_are_are_named() -> None:
    for kind, told in {"container": "image that is there", "nonsense": "auto, subprocess"}.items():
        with pytest.raises(ValueError, match=told):
            open_repl(kind)
    for launcher in ("container", "bubblewrap", ""):
        with pytest.raises(ValueError, match="launcher"):
            PythonREPL(launcher=launcher)


def test_sets_are_ordered_the_same_in_every_process(shared: PythonREPL, repl: PythonREPL) -> None:
    code = "str({'alpha', 'beta', 'gamma', 'delta'})"
    assert shared.run(code).output == repl.run(code).output


FLOODS = {
    "descriptor": ("import os\nfor i in range(20):\n    os.write(1, b'x' * 1_000_000)\nprint('end')", 20_000_004),
    "child": ("import os; _ = os.system('head -c 20000000 /dev/zero | tr \"\\\\0\" x'); print('end')", 20_000_004),
}


@pytest.mark.parametrize("name", FLOODS)
def test_floods_are_clipped_with_an_exact_count(shared: PythonREPL, name: str) -> None:
    code, size = FLOODS[name]
    result = shared.run(code)
    assert (result.error, result.truncated) == (None, True)
    assert len(result.output) <= 65_536
    left = int(result.output.split("... [")[1].split(" characters")[0])
    assert len(result.output) - len(f"\n... [{left} characters left out] ...\n") + left == size
    assert result.output.endswith("end\n")


def test_a_small_cap() -> None:
    with PythonREPL(output_cap=200) as repl:
        output = repl.run("for i in range(1000): print(i)\n1/0").output
        assert (len(output) <= 200, output[:4], "division by zero" in output) == (True, "0\n1\n", True)


@given(st.text(max_size=300), st.integers(0, 300))
def test_clip_keeps_head_and_tail_and_counts_the_rest(text: str, limit: int) -> None:
    short, cut = clip(text, limit)
    assert (len(short) <= limit, cut) == (True, len(text) > limit)
    if not cut:
        assert short == text
    elif "... [" in short and "... [" not in text:
        head, rest = short.split("\n... [")
        count, tail = rest.split(" characters left out] ...\n")
        assert text.startswith(head)
        assert text.endswith(tail)
        assert len(head) + int(count) + len(tail) == len(text)


@given(st.binary(max_size=200))
def test_any_bytes_become_readable_text(data: bytes) -> None:
    text = shown(data.decode("utf-8", "replace"))
    assert all(c.isprintable() or c in "\n\t\r" or ord(c) > 126 for c in text)
    text.encode()


# -- errors

ORDINARY = {
    "breakpoint()": "RuntimeError: breakpoint() does not work here: nobody can type into this REPL",
    "import pdb; pdb.set_trace()": "BdbQuit",
    "x = '\\0'\nint(x)": "ValueError: invalid literal for int() with base 10: '\\x00'",
}


@pytest.mark.parametrize("code", ORDINARY)
def test_ordinary_errors_leave_the_repl_alive(shared: PythonREPL, code: str) -> None:
    shared.run("alive = 1")
    result = shared.run(code)
    assert (result.error, result.message, result.lost) == ("runtime", ORDINARY[code], ())
    assert shared.run("alive").output == "1"


OWN_MODULE = "open('mine.py', 'w').write('def bad():\\n    return {}[1]\\n')\nimport mine\nmine.bad()"
#: Code, what is shown of its error, and what is not.
ERRORS: list[tuple[str, list[str], str]] = [
    ("ran = (1,\ny = 2", ["SyntaxError", "ran = (1,", "^"], "Traceback"),
    ("if True\n  ran = 1", ["SyntaxError", "if True", "^"], "Traceback"),
    ("ran = 1\n  b = 2", ["IndentationError", "b = 2"], "Traceback"),
    ("raise ValueError('\\x1b[31mred\\x1b[0m')", ["ValueError: red"], "\x1b"),
    (OWN_MODULE, ["return {}[1]", "KeyError: 1"], "\x1b"),
    ("try: 1/0\nexcept Exception: raise ValueError('alone') from None", ["ValueError: alone"], "ZeroDivision"),
]


@pytest.mark.parametrize(("code", "shows", "hides"), ERRORS)
def test_an_error_is_shown_with_all_that_belongs_to_it(
    shared: PythonREPL, code: str, shows: list[str], hides: str
) -> None:
    shared.run("ran = False")
    result = shared.run(code)
    assert [part for part in shows if part not in result.output] == []
    assert hides not in result.output + result.message
    assert shared.run("ran").output == "False"  # of a cell with a syntax error nothing runs


# -- answers

OBJECTS: list[tuple[str, Any]] = [
    ("{'~': 1}", {"~": 1}),
    ("frozenset({3})", frozenset({3})),
    ("__import__('datetime').date(2024, 2, 29)", dt.date(2024, 2, 29)),
    ("__import__('datetime').datetime(2024, 1, 2, 3, 4, 5, 6)", dt.datetime(2024, 1, 2, 3, 4, 5, 6)),
    ("__import__('collections').Counter('aab')", {"a": 2, "b": 1}),
    ("__import__('collections').namedtuple('P', 'x y')(1, 2)", (1, 2)),
]


@pytest.mark.parametrize(("code", "value"), OBJECTS, ids=[c for c, _ in OBJECTS])
def test_values_cross_as_objects(shared: PythonREPL, code: str, value: Any) -> None:
    answer = shared.run(f"final_answer = {code}").answer
    assert (answer, type(answer.value)) == (FinalAnswer(value, "object"), type(value))


REPRS = {
    "object()": "<object object",
    "[object()]": "[<object object",
    "loop": "[[...]]",
    "type('Bad', (), {'__repr__': lambda s: 1/0})()": "repr raised ZeroDivisionError",
}


@pytest.mark.parametrize("code", REPRS)
def test_what_cannot_cross_is_a_repr(shared: PythonREPL, code: str) -> None:
    answer = shared.run(f"loop = []; loop.append(loop); final_answer = {code}").answer
    assert (answer.form, REPRS[code] in answer.value) == ("repr", True)


OF_PANDAS = {
    "np.float64(1.5)": 1.5,
    "np.int64(3)": 3,
    "np.bool_(True)": True,
    "np.str_('s')": "s",
    "pd.Series([1, 2]).sum()": 3,
    "{'a': np.int32(1)}": {"a": 1},
    "pd.Timestamp('2024-01-02')": dt.datetime(2024, 1, 2),
}


def test_pandas_and_numpy_values(repl: PythonREPL) -> None:
    pytest.importorskip("pandas")
    repl.run("import numpy as np, pandas as pd")
    assert {code: repl.run(f"final_answer = {code}").answer.value for code in OF_PANDAS} == OF_PANDAS
    assert repl.run("final_answer = pd.NaT").answer == FinalAnswer("NaT", "repr")
    assert repl.run("final_answer = np.array([1])").answer == FinalAnswer("array([1])", "repr")
    frame = repl.run("final_answer = pd.DataFrame({'a': [1]})").answer
    assert (frame.form, "a" in frame.value) == ("repr", True)


def test_a_call_is_an_answer_whatever_the_cell_catches_and_from_a_thread(repl: PythonREPL) -> None:
    assert repl.run("try:\n    final_answer(8)\nexcept BaseException:\n    pass").answer == FinalAnswer(8, "object")
    assert repl.run("final_answer(final_answer)").answer == FinalAnswer(8, "object")
    result = repl.run("import threading\nt = threading.Thread(target=lambda: final_answer(9))\nt.start(); t.join()")
    assert (result.answer, result.output) == (FinalAnswer(9, "object"), "")


# -- host tools


class HardStop(BaseException):
    pass


def test_arguments_and_results_keep_their_types(repl: PythonREPL) -> None:
    passed: list[Any] = []

    def keep(*args: Any, **kwargs: Any) -> Any:
        passed.append((args, kwargs))
        return {"back": (1, {2}), 3: b"x"}

    repl.add_tools({"keep": keep})
    repl.run("from datetime import date")
    assert repl.run("keep((1, {2}), when=date(2024, 1, 1))").output == "{'back': (1, {2}), 3: b'x'}"
    assert passed == [(((1, {2}),), {"when": dt.date(2024, 1, 1)})]
    repl.run("keep(object())")
    assert passed[-1][0][0].startswith("<object object")


ENDINGS = {
    "swallowed": "try:\n    stop()\nexcept Exception:\n    print('swallowed')",
    "again and again": "while True:\n    try:\n        stop()\n    except BaseException:\n        pass",
    "in a thread": "import threading, time\nthreading.Thread(target=stop).start()\ntime.sleep(60)",
}


@pytest.mark.parametrize("error", [BudgetSpent("no tokens left"), HardStop("now"), SystemExit(3)])
@pytest.mark.parametrize("cell", ENDINGS.values(), ids=ENDINGS)
def test_an_end_of_the_run_goes_through_everything(ending: Any, error: BaseException, cell: str) -> None:
    def stop() -> None:
        raise error

    ending.add_tools({"stop": stop})
    ending.run("x = 1\nprint('before')")
    with pytest.raises(type(error)) as raised:
        ending.run("print('partial')\n" + cell)
    assert (raised.value, ending.last.error) == (error, "budget")
    assert ("partial" in ending.last.output, "swallowed" in ending.last.output) == (True, False)
    assert ending.run("2").output == "2"


@pytest.fixture(scope="module")
def ending() -> Any:
    with PythonREPL(grace=0.5) as repl:
        yield repl


@pytest.mark.parametrize("kind", SEEN)
def test_calls_from_threads_overlap_and_are_not_mixed_up(kind: str) -> None:
    barrier = threading.Barrier(8, timeout=30)

    def meet(n: int) -> int:
        barrier.wait()  # passes only when eight calls are under way at once
        return n

    with seen(kind) as repl:
        repl.add_tools({"meet": meet})
        code = "from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(8) as pool: "
        code += "got = list(pool.map(meet, range(40)))\ngot == list(range(40))"
        assert repl.run(code).output == "True"


def test_a_late_result_is_credited_to_nobody(repl: PythonREPL) -> None:
    gate, begun = threading.Event(), threading.Event()

    def wait(n: int) -> int:
        begun.set()
        gate.wait(10)
        return n

    repl.add_tools({"wait": wait, "begun": begun.is_set, "now": lambda: "now"})
    code = "import threading, time\ndef work():\n    try: wait(1)\n    except RuntimeError: pass\n"
    code += "t = threading.Thread(target=work, daemon=True)\nt.start()\nwhile not begun(): time.sleep(0.01)"
    assert repl.run(code).error is None
    gate.set()
    assert repl.run("t.join(5); print(t.is_alive(), now())").output == "False now\n"


def test_a_forked_child_cannot_call_tools(repl: PythonREPL) -> None:
    repl.add_tools({"now": lambda: "now"})
    code = "import os\nif (pid := os.fork()) == 0:\n try: now()\n except RuntimeError as e: print(e, flush=True)\n"
    code += " os._exit(0)\nos.waitpid(pid, 0);"
    assert "forked child" in repl.run(code).output
    assert repl.run("now()").output == "'now'"


def test_tools_run_in_the_callers_context(repl: PythonREPL) -> None:
    name = contextvars.ContextVar("name", default="none")
    name.set("mine")
    repl.add_tools({"who": name.get})
    assert repl.run("who()").output == "'mine'"


def test_names_that_no_tool_can_have_are_refused_all_at_once(repl: PythonREPL) -> None:
    names = ["final_answer", "1a", "class", "fine"]
    with pytest.raises(ValueError, match="'final_answer', '1a', 'class'"):
        repl.add_tools({name: lambda: 1 for name in names})
    assert repl.run("fine").error == "runtime"


def test_a_table_reaches_tools_as_csv(repl: PythonREPL) -> None:
    pytest.importorskip("pandas")
    looked: list[Any] = []
    repl.add_tools({"look": looked.append})
    repl.run("import pandas as pd\nlook(pd.DataFrame({'n': range(100)}))")
    assert looked[0] == ",n\n" + "".join(f"{n},{n}\n" for n in range(100))

"""Cells behave as in a notebook: names, output, errors and answers."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from marks import needs_bwrap

from rlm_loop.actions import FinalAnswer
from rlm_loop.repl import PythonREPL, ReplError, SetupFailed, open_repl
from rlm_loop.repl.text import Piece, clip, clip_parts, shown

# -- names

AS_IN_A_NOTEBOOK = {
    "type hints": (
        ["import typing\nclass N: pass\ndef h(a: 'N') -> 'N': ...", "typing.get_type_hints(h)['a'] is N"],
        "True",
    ),
    "source of a function": (
        ["import inspect\ndef src():\n    return 'here'", "print(inspect.getsource(src))"],
        "def src():\n    return 'here'\n",
    ),
    "future import stays": (
        ["from __future__ import annotations", "def a(x: nope): ...\na.__annotations__['x']"],
        "'nope'",
    ),
    "own modules unseen": (
        ["import importlib.util as u\n[u.find_spec(m) for m in ('worker', 'session', 'clip')]"],
        "[None, None, None]",
    ),
}


@pytest.mark.parametrize("name", AS_IN_A_NOTEBOOK)
def test_cells_work_as_in_a_notebook(shared: PythonREPL, name: str) -> None:
    cells, expected = AS_IN_A_NOTEBOOK[name]
    result = [shared.run(cell) for cell in cells][-1]
    assert (result.output, result.error) == (expected, None)


def test_packages_of_this_interpreter_can_be_imported(shared: PythonREPL) -> None:
    assert shared.get("__import__('pytest').__file__") == pytest.__file__


@needs_bwrap
def test_process_pools_work(shared: PythonREPL) -> None:
    shared.run("from concurrent.futures import ProcessPoolExecutor\ndef double(n): return 2 * n")
    code = "import multiprocessing as mp\nwith mp.get_context('fork').Pool(2) as pool: got = pool.map(double, [1, 2])"
    assert shared.run(code).error is None
    assert shared.run("got").output == "[2, 4]"


@pytest.mark.parametrize("name", ["../x", "/etc/x", "", "a/../../x"])
def test_files_stay_inside_the_folder(name: str) -> None:
    with pytest.raises(ValueError, match="inside"):
        PythonREPL(files={name: ""})


def test_a_given_folder_is_used_and_kept(tmp_path: object) -> None:
    with PythonREPL(cwd=str(tmp_path)) as repl:
        repl.run("open('made', 'w').write('x')")
        folder = repl.cwd
    assert (folder / "made").read_text() == "x"


def test_variables_are_listed(repl: PythonREPL) -> None:
    repl.add_tools({"look": lambda: 1})
    repl.set("context", "text")
    repl.run("a = 1\n_b = 2\nimport json\nfinal_answer = 3")
    assert repl.variables == ("context", "a", "json")


def test_setup_runs_first_and_may_fail() -> None:
    with PythonREPL(setup="import math\nready = math.pi > 3") as repl:
        assert repl.run("ready").output == "True"
    for setup in ("1/0", "import os; os._exit(1)", "def f(:"):
        with PythonREPL(setup=setup) as repl, pytest.raises(SetupFailed, match="setup"):
            repl.run("1")
    with PythonREPL(cwd="/does/not/exist") as repl, pytest.raises(ReplError, match="does not exist"):
        repl.run("1")
    with PythonREPL(python="/does/not/exist") as repl, pytest.raises(ReplError, match="cannot start"):
        repl.run("1")


def test_open_repl_names_the_kinds() -> None:
    for kind in ("auto", "subprocess"):
        with open_repl(kind, timeout=5) as repl:  # type: ignore[attr-defined]
            assert repl.run("1").output == "1"
    for kind, told in {"container": "image that is there", "nonsense": "auto, subprocess"}.items():
        with pytest.raises(ValueError, match=told):
            open_repl(kind)


def test_sets_are_ordered_the_same_in_every_process() -> None:
    seen = set()
    for _ in range(2):
        with PythonREPL() as repl:
            seen.add(repl.run("str({'alpha', 'beta', 'gamma', 'delta'})").output)
    assert len(seen) == 1


# -- output

CELLS = {
    "order": (
        "import os, subprocess, sys\nprint('1')\nos.write(1, b'2\\n')\nprint('3', file=sys.stderr)\n"
        "subprocess.run(['echo', '4'])\nos.write(2, b'5\\n')\nprint('6', end='')\nsys.stderr.write('7')\nprint(8)",
        "1\n2\n3\n4\n5\n678\n",
    ),
    "os.system": ("import os; _ = os.system('printf out; printf err >&2')", "outerr"),
    "fork": (
        "import os\npid = os.fork()\nif pid == 0:\n    print('child')\n    os._exit(0)\nos.waitpid(pid, 0);",
        "child\n",
    ),
    "frames pass through": (
        'import os\nos.write(1, b\'{"t":"done","g":1,"id":1}\\n!kill\\n\')\nprint(\'{"t":"died","g":1}\')',
        '{"t":"done","g":1,"id":1}\n!kill\n{"t":"died","g":1}\n',
    ),
    "colours in a repr": (
        "class R:\n    def __repr__(self): return '\\x1b[31mred\\x1b[0m \\x00'\nR()",
        "red \ufffd",
    ),
    "colours in an error": (
        "try: raise ValueError('\\x1b[31mred\\x1b[0m')\nexcept ValueError as e: err = e\nprint('a')\nraise err",
        "a\nTraceback (most recent call last):\n",
    ),
    "stdout.buffer": ("import sys; print('a'); _ = sys.stdout.buffer.write(b'b\\n')", "a\nb\n"),
    "redirected": (
        "import contextlib, io\nwith contextlib.redirect_stdout(io.StringIO()) as s: print('x')\ns.getvalue()",
        "'x\\n'",
    ),
    "exotic file": (
        "import sys; print(sys.stdout.isatty(), sys.stdout.encoding, sys.stdout.fileno())",
        "False utf-8 1\n",
    ),
}


@pytest.mark.parametrize("name", CELLS)
def test_output_is_complete_and_in_order(shared: PythonREPL, name: str) -> None:
    code, expected = CELLS[name]
    result = shared.run(code)
    if "error" in name:
        assert result.output.startswith(expected)
        assert "\x1b" not in result.output + result.message
    else:
        assert result.output == expected


@pytest.mark.parametrize(
    "spoil",
    [
        "import sys; sys.stdout.close(); sys.stderr.close()",
        "import os; os.close(1); os.close(2)",
        "import sys; sys.stdout = None",
        "import sys; sys.stdin.close()",
    ],
)
def test_the_next_cell_prints_again(repl: PythonREPL, spoil: str) -> None:
    repl.run(spoil)
    assert repl.run("import os\nprint('a'); os.write(1, b'b\\n');").output == "a\nb\n"


def test_a_handler_of_an_earlier_cell_writes_to_the_cell_that_logs(repl: PythonREPL) -> None:
    repl.run("import logging; logging.basicConfig(format='%(message)s')")
    assert repl.run("logging.warning('now')").output == "now\n"


def test_what_a_cell_leaves_running_prints_into_the_cell_that_runs(repl: PythonREPL) -> None:
    repl.add_tools({"echo": lambda x: x})
    repl.run(
        "import threading\nfrom concurrent.futures import ThreadPoolExecutor\n"
        "go = threading.Event(); pool = ThreadPoolExecutor(1)\n"
        "t = threading.Thread(target=lambda: (go.wait(), print('late'))); t.start()"
    )
    assert repl.run("go.set(); t.join(); print('mine')").output == "late\nmine\n"
    assert repl.run("pool.submit(lambda: print(echo('two'))).result()").output == "two\n"


FLOODS = {
    "prints": "for i in range(20):\n    print('x' * 1_000_000)\nprint('end')",
    "one print": "print('é' * 10_000_000)\nprint('end')",
    "descriptor": "import os\nfor i in range(20):\n    os.write(1, b'x' * 1_000_000)\nprint('end')",
    "child": "import os; _ = os.system('head -c 20000000 /dev/zero | tr \"\\\\0\" x'); print('end')",
}
SIZES = {"prints": 20_000_024, "one print": 10_000_005, "descriptor": 20_000_004, "child": 20_000_004}


@pytest.mark.parametrize("name", FLOODS)
def test_floods_are_clipped_with_an_exact_count(shared: PythonREPL, name: str) -> None:
    result = shared.run(FLOODS[name])
    assert (result.error, result.truncated, result.characters) == (None, True, SIZES[name])
    assert len(result.output) <= 65_536
    left = int(result.output.split("... [")[1].split(" characters")[0])
    mark = f"\n... [{left} characters left out] ...\n"
    assert len(result.output) - len(mark) + left == SIZES[name]
    assert result.output.endswith("end\n")


def test_a_small_cap() -> None:
    with PythonREPL(output_cap=200) as repl:
        result = repl.run("for i in range(1000): print(i)\n1/0")
        assert len(result.output) <= 200
        assert result.output.startswith("0\n1\n")
        assert "division by zero" in result.output


@given(st.text(max_size=300), st.integers(0, 300))
def test_clip_keeps_head_and_tail_and_counts_the_rest(text: str, limit: int) -> None:
    short, cut = clip(text, limit)
    assert len(short) <= limit
    assert cut == (len(text) > limit)
    if not cut:
        assert short == text
    elif "... [" in short and "... [" not in text:
        head, rest = short.split("\n... [")
        count, tail = rest.split(" characters left out] ...\n")
        assert text.startswith(head)
        assert text.endswith(tail)
        assert len(head) + int(count) + len(tail) == len(text)


@given(
    st.lists(st.tuples(st.text(max_size=20), st.integers(0, 50), st.text(max_size=20)), max_size=4),
    st.integers(40, 120),
)
def test_pieces_add_up(parts: list[tuple[str, int, str]], limit: int) -> None:
    whole = Piece()
    for part in parts:
        whole = whole.then(Piece(*part))
    assert whole.characters == sum(len(h) + n + len(t) for h, n, t in parts)
    text, cut = clip_parts(whole.head, whole.dropped, whole.tail, limit)
    assert len(text) <= limit
    assert cut or text == "".join(h + t for h, _, t in parts)


@given(st.binary(max_size=200))
def test_any_bytes_become_readable_text(data: bytes) -> None:
    text = shown(data.decode("utf-8", "replace"))
    assert text.isprintable() or all(c.isprintable() or c in "\n\t\r" or ord(c) > 126 for c in text)
    text.encode()


# -- errors

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


# -- answers

OBJECTS: list[tuple[str, Any]] = [
    ("{}", {}),
    ("{'~': 1}", {"~": 1}),
    ("frozenset({3})", frozenset({3})),
    ("10 ** 5000", 10**5000),
    ("-(2 ** 200)", -(2**200)),
    ("0.1 + 0.2", 0.1 + 0.2),
    ("__import__('datetime').date(2024, 2, 29)", dt.date(2024, 2, 29)),
    ("__import__('datetime').datetime(2024, 1, 2, 3, 4, 5, 6)", dt.datetime(2024, 1, 2, 3, 4, 5, 6)),
    ("__import__('collections').Counter('aab')", {"a": 2, "b": 1}),
    ("__import__('collections').namedtuple('P', 'x y')(1, 2)", (1, 2)),
]


@pytest.mark.parametrize(("code", "value"), OBJECTS, ids=[c for c, _ in OBJECTS])
@pytest.mark.parametrize("form", ["final_answer = {}", "final_answer({})"])
def test_values_cross_as_objects(shared: PythonREPL, form: str, code: str, value: Any) -> None:
    answer = shared.run(form.format(code)).answer
    assert answer == FinalAnswer(value, "object")
    assert answer is not None
    assert type(answer.value) is type(value)


REPRS = {
    "object()": "<object object",
    "lambda: 1": "<function",
    "[object()]": "[<object object",
    "loop": "[[...]]",
    "type('R', (), {'__repr__': lambda s: 'R!'})()": "R!",
    "type('Bad', (), {'__repr__': lambda s: 1/0})()": "repr raised ZeroDivisionError",
}


@pytest.mark.parametrize("code", REPRS)
def test_what_cannot_cross_is_a_repr(shared: PythonREPL, code: str) -> None:
    answer = shared.run(f"loop = []; loop.append(loop); final_answer = {code}").answer
    assert answer is not None
    assert answer.form == "repr"
    assert REPRS[code] in answer.value


def test_pandas_and_numpy_values(repl: PythonREPL) -> None:
    pytest.importorskip("pandas")
    repl.run("import numpy as np, pandas as pd")
    for code, value in {
        "np.float64(1.5)": 1.5,
        "np.int64(3)": 3,
        "np.bool_(True)": True,
        "np.str_('s')": "s",
        "pd.Series([1, 2]).sum()": 3,
        "{'a': np.int32(1)}": {"a": 1},
        "pd.Timestamp('2024-01-02')": dt.datetime(2024, 1, 2),
    }.items():
        assert repl.run(f"final_answer = {code}").answer == FinalAnswer(value, "object"), code
    frame = repl.run("final_answer = pd.DataFrame({'a': [1]})").answer
    assert frame is not None
    assert (frame.form, "a" in frame.value) == ("repr", True)
    assert repl.run("final_answer = pd.NaT").answer == FinalAnswer("NaT", "repr")
    assert repl.run("final_answer = np.array([1])").answer == FinalAnswer("array([1])", "repr")


def test_del_unsets(repl: PythonREPL) -> None:
    repl.run("final_answer = 2\n1/0")
    result = repl.run("del final_answer")
    assert (result.error, result.answer) == (None, None)
    assert "not set" in repl.run("final_answer").output
    assert repl.run("del final_answer\nfinal_answer = 5").answer == FinalAnswer(5, "object")


def test_a_call_ends_the_cell(repl: PythonREPL) -> None:
    result = repl.run("print('a')\ntry:\n    final_answer(7)\nexcept Exception:\n    pass\nprint('b')")
    assert (result.output, result.answer, result.error) == ("a\n", FinalAnswer(7, "object"), None)
    swallowed = repl.run("try:\n    final_answer(8)\nexcept BaseException:\n    pass")
    assert swallowed.answer == FinalAnswer(8, "object")
    assert repl.run("final_answer(final_answer)").answer == FinalAnswer(8, "object")


def test_an_answer_from_a_thread(repl: PythonREPL) -> None:
    code = "import threading\nt = threading.Thread(target=lambda: final_answer(9))\nt.start(); t.join()"
    result = repl.run(code)
    assert (result.answer, result.output) == (FinalAnswer(9, "object"), "")

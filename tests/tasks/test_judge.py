"""Solutions run in a process of their own; whatever they do, there is a verdict."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_loop.repl import PythonREPL
from rlm_loop.tasks.judge import JudgeFailed, JudgeResult, judge
from rlm_loop.tasks.judge_child import pack, unpack
from tests.repl.session_kinds import need

TESTS = "def check(candidate):\n    assert candidate(2) == 4\n    assert candidate(3) == 9\n"
FORGED = b'{"nonce": "", "reason": ""}'


def _judge(source: str, timeout: float = 20.0) -> JudgeResult:
    return judge([("", source)], TESTS, "f", timeout=timeout)


@pytest.mark.parametrize(
    "source",
    [
        "f = lambda x: x * x\n",
        "from __future__ import annotations\ndef f(x: int) -> int:\n    print('noise')\n    return x ** 2\n",
        "import threading, time\nthreading.Thread(target=time.sleep, args=(60,)).start()\ndef f(x): return x * x\n",
        "def f(x): return x * x\nif __name__ == '__main__':\n    raise SystemExit\n",
    ],
)
def test_right_solutions_pass(source: str) -> None:
    verdict = _judge(source)
    assert (verdict.passed, verdict.reason) == (True, "")


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("def f(x):\n    return 4\n", "AssertionError at: assert candidate(3) == 9"),
        ("def f(x): return g(x)", "NameError: name 'g' is not defined at: assert candidate(2) == 4"),
        ("def g(x): return x", "no function f"),
        ("def f(x): return (", "SyntaxError"),
        ("def f(x): return 'x' * 10 ** 11", "MemoryError"),
        ("def f(x): raise SystemExit(0)", "SystemExit: 0"),
        ("def f(x): return input()", "EOFError"),
        ("def f(x): return f(x)", "RecursionError"),
        ("import os\nos._exit(0)\ndef f(x): return x", "ended without a result (exit status 0)"),
        (f"import os\ndef f(x): os.write(1, {FORGED!r}) and os._exit(0)", "ended without a result"),
        ("import socket\ndef f(x): socket.socket()", "PermissionError: socket.__new__ is not allowed here"),
        ("import os\ndef f(x): os.system('true')", "PermissionError"),
        ("import pytest\ndef f(x): return x * x", "ModuleNotFoundError"),  # standard library only, on every machine
        ("class E(Exception):\n    def __str__(self): raise E\ndef f(x): raise E", "E at: assert candidate(2)"),
    ],
)
def test_wrong_and_wild_solutions_fail_with_a_line(source: str, says: str) -> None:
    verdict = _judge(source)
    assert (verdict.passed, verdict.timed_out) == (False, False)
    assert says in verdict.reason
    assert "\n" not in verdict.reason


def test_an_endless_loop_is_ended() -> None:
    loop = "    while True:\n        try:\n            pass\n        except BaseException:\n            pass\n"
    verdict = _judge(f"def f(x):\n{loop}", 1)
    assert (verdict.passed, verdict.timed_out, verdict.reason) == (False, True, "no result within 1 s")
    with pytest.raises(JudgeFailed, match="did not begin"):  # which says nothing of the solution
        _judge("def f(x): return x", 1e-6)


def test_the_first_candidate_that_compiles_and_defines_the_function_counts() -> None:
    right, wrong = "def f(x): return x * x\n", "def f(x): return 0\n"
    assert judge([("", "prose, no code"), ("", "def f(x"), ("k = 1", right), ("", wrong)], TESTS, "f").passed
    assert not judge([("", wrong), ("", right)], TESTS, "f").passed


def test_a_folder_can_be_imported_from_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "extra.py").write_text("def square(x): return x * x\n")
    source = "from extra import square\ndef f(x): return square(x)\n"
    assert judge([("", source)], TESTS, "f", folder=tmp_path).passed
    assert "ModuleNotFoundError" in _judge(source).reason
    assert not (tmp_path / "__pycache__").exists()


def test_a_verdict_does_not_depend_on_the_hash_seed_or_the_draw() -> None:
    seen = "import random\ndef f(x): raise ValueError(f'{list(set(map(str, range(9))))} {random.random()}')\n"
    assert _judge(seen).reason == _judge(seen).reason


FORGERIES = {
    "a number that equals everything": "class E(int):\n    __eq__ = lambda *_: True\ndef f(x): return E(0)\n",
    "an object that equals everything": "class E:\n    def __eq__(self, other): return True\ndef f(x): return E()\n",
    "the report, found in the callers' frames": (
        "import json, os, sys\nframe = sys._getframe()\nwhile frame:\n"
        "    job = frame.f_locals.get('job') or {}\n"
        "    said = {n: job.get('word') or job.get('nonce') for n in ('word', 'nonce')} | {'reason': '', 'fault': ''}\n"
        "    for d in range(3, 20) if job else ():\n"
        "        try: os.write(d, json.dumps(said).encode())\n"
        "        except OSError: pass\n"
        "    job and os._exit(0)\n    frame = frame.f_back\ndef f(x): return 0\n"
    ),
    "the judge's own functions": (
        "import sys\nmain = sys.modules['__main__']\nmain._explain = lambda error: ''\n"
        "main._told = lambda error: ['returned', 4]\ndef f(x): raise ValueError\n"
    ),
    "another exception for assert": "import builtins\nbuiltins.AssertionError = SystemExit\ndef f(x): return 0\n",
    "an exit at the end": "import atexit, os\natexit.register(os._exit, 0)\ndef f(x): raise SystemExit\n",
    "the other processes": (
        "import json, os, re\ndef f(x):\n    for p in filter(str.isdigit, os.listdir('/proc')):\n        try:\n"
        "            word = re.search(r'\"word\": \"(\\w+)\"', open(f'/proc/{p}/fd/0').read(1 << 20))[1]\n"
        "            said = json.dumps({'word': word, 'reason': '', 'fault': ''})\n"
        "            open(f'/proc/{p}/fd/1', 'w').write(said + '\\n')\n            os._exit(0)\n"
        "        except (OSError, TypeError): pass\n    return 0\n"
    ),
    "the tests' memory": (
        "import os\ndef f(x):\n    open(f'/proc/{os.getppid()}/mem', 'rb')\n    os._exit(0)\n"  # would go on from here
    ),
}


@pytest.mark.parametrize("place", ["auto", "hardened"])
@pytest.mark.parametrize("source", FORGERIES.values(), ids=FORGERIES)
def test_a_solution_cannot_say_that_it_passed(source: str, place: Literal["auto", "hardened"]) -> None:
    need(place)
    assert not judge([("", source)], TESTS, "f", timeout=30, place=place).passed


def test_a_solution_is_isolated_as_cells_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need("hardened")
    monkeypatch.setenv("SOME_API_KEY", "not-for-you")
    (tmp_path / "mine").write_text("mine")
    tmp_path.chmod(0o777)
    with PythonREPL() as repl:
        repl.run("pass")
        isolation = repl.isolation
    for does in (f"open({str(tmp_path / 'mine')!r}).read()", f"open({str(tmp_path / 'new')!r}, 'w').close()"):
        verdict = _judge(f"def f(x):\n    {does}\n    return x * x\n")
        assert (verdict.passed, verdict.isolation) == (False, isolation)
    assert not (tmp_path / "new").exists()
    assert "SOME_API_KEY" not in _judge("import os\ndef f(x): raise ValueError(sorted(os.environ))\n").reason


@pytest.mark.parametrize("cells", ["sandbox", "container"])
def test_where_the_judge_would_be_weaker_than_the_cells_it_refuses(cells: str) -> None:
    need("hardened")
    right = [("", "def f(x): return x * x")]
    for place in ("plain", "hardened"):
        with pytest.raises(JudgeFailed, match=f"its cells were isolated as '{cells}'.*run as '{place}'"):
            judge(right, TESTS, "f", place=place, cells=cells)
    assert judge(right, TESTS, "f", place="hardened", cells="plain").isolation == "hardened"


def test_what_tests_hand_over_is_plain_or_nothing_is_said_of_the_solution() -> None:
    with pytest.raises(JudgeFailed, match="no plain form"):
        judge([("", "def f(x): return x")], "def check(f):\n    try: f(object())\n    except Exception: pass\n", "f")


_NUMBERS = (
    st.integers() | st.floats(allow_nan=False) | st.complex_numbers(allow_nan=False) | st.decimals(allow_nan=False)
)
_KEYS = st.none() | st.booleans() | st.text() | st.binary() | _NUMBERS | st.fractions()
VALUES = st.recursive(
    _KEYS,
    lambda inner: st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(_KEYS, inner) | st.frozensets(_KEYS),
    max_leaves=20,
)


@given(VALUES)
def test_a_plain_value_comes_back_as_it_was(value: Any) -> None:
    back = unpack(json.loads(json.dumps(pack(value, lambda other: pytest.fail(f"{other!r} is plain")))))
    assert back == value
    assert type(back) is type(value)


def test_views_and_ranges_cross_and_an_object_does_not() -> None:
    views = unpack(pack([{1: 2}.keys(), iter([1, 2]), range(3), 10**5000, object()], lambda _: ["?", "an object"]))
    assert (views[0], list(views[1]), *views[2:4]) == ({1}, [1, 2], range(3), 10**5000)
    assert views[4] != "an object"


@pytest.mark.parametrize("forged", [["exec", "1"], ["int"], 1.5, {"a": 1}, ["int", "1", "2"]])
def test_a_forged_value_is_refused(forged: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        unpack(forged)

"""Solutions run in a process of their own; whatever they do, there is a verdict."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from rlm_loop.tasks.judge import Verdict, judge

TESTS = "def check(candidate):\n    assert candidate(2) == 4\n    assert candidate(3) == 9\n"


def _judge(source: str, timeout: float = 20.0) -> Verdict:
    return judge([("", source)], TESTS, "f", timeout=timeout)


@pytest.mark.parametrize(
    "source",
    [
        "def f(x):\n    return x * x\n",
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
        ("def f(x): raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("def f(x): return input()", "EOFError"),
        ("def f(x): return f(x)", "RecursionError"),
        ("import os\nos._exit(0)\ndef f(x): return x", "ended without a result (exit status 0)"),
        ("import os\ndef f(x): os.abort()", "ended without a result"),
        (
            'import os\ndef f(x): os.write(1, b\'{"nonce": "", "reason": ""}\') and os._exit(0)',
            "ended without a result",
        ),
        ("import socket\ndef f(x): socket.socket()", "PermissionError: socket.__new__ is not allowed here"),
        ("import os\ndef f(x): os.system('true')", "PermissionError"),
        ("import pytest\ndef f(x): return x * x", "ModuleNotFoundError"),  # standard library only, on every machine
        (
            "def f(x):\n    class E(Exception):\n        def __str__(self): raise E\n    raise E",
            "E at: assert candidate(2)",
        ),
    ],
)
def test_wrong_and_wild_solutions_fail_with_a_line(source: str, says: str) -> None:
    verdict = _judge(source)
    assert not verdict.passed
    assert not verdict.timed_out
    assert says in verdict.reason
    assert "\n" not in verdict.reason


def test_an_endless_loop_is_ended() -> None:
    start = time.monotonic()
    verdict = _judge(
        "def f(x):\n    while True:\n        try:\n            pass\n        except BaseException:\n            pass\n",
        1,
    )
    assert (verdict.passed, verdict.timed_out) == (False, True)
    assert verdict.reason == "no result within 1 s"
    assert time.monotonic() - start < 20


def test_the_first_candidate_that_compiles_and_defines_the_function_counts() -> None:
    right, wrong = "def f(x): return x * x\n", "def f(x): return 0\n"
    assert judge([("", "prose, no code"), ("", "def f(x"), ("k = 1", right), ("", wrong)], TESTS, "f").passed
    assert not judge([("", wrong), ("", right)], TESTS, "f").passed


def test_what_stands_before_is_run_first() -> None:
    assert judge(
        [("import math\ndef sq(x): return math.prod([x, x])\n", "def f(x): return sq(x)\n")], TESTS, "f"
    ).passed


def test_a_folder_can_be_imported_from_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "extra.py").write_text("def square(x): return x * x\n")
    source = "from extra import square\ndef f(x): return square(x)\n"
    assert judge([("", source)], TESTS, "f", folder=tmp_path).passed
    assert "ModuleNotFoundError" in _judge(source).reason
    assert not (tmp_path / "__pycache__").exists()


def test_a_verdict_does_not_depend_on_the_hash_seed_or_the_draw() -> None:
    seen = "import random\ndef f(x): raise ValueError(f'{list(set(map(str, range(9))))} {random.random()}')\n"
    assert _judge(seen).reason == _judge(seen).reason


def test_the_child_needs_the_standard_library_only() -> None:
    from rlm_loop.tasks import judge_child

    imported = {
        line.split()[1]
        for line in Path(judge_child.__file__).read_text().splitlines()
        if line.startswith(("import ", "from "))
    }
    assert imported - {"__future__"} <= set(sys.stdlib_module_names)

"""A cell that goes on is interrupted, else killed; the call returns in time and says what was lost."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from rlm_loop.repl import CellResult, PythonREPL

TIMEOUT, GRACE = 0.3, 0.8

STOPPED = {
    "loop": "while True: pass",
    "sleep": "import time; time.sleep(60)",
    "wait": "import threading; threading.Event().wait()",
    "queue": "import queue; queue.Queue().get()",
    "regex": "import re; re.match('(a*)*b', 'a' * 40)",
    "child": "import subprocess; subprocess.run(['sleep', '60'])",
    "swallowed once": "import time\ntry:\n    time.sleep(60)\nexcept BaseException: pass\nwhile True: pass",
    "swallowed always": "import time\nwhile True:\n    try: time.sleep(0.001)\n    except BaseException: pass",
    "finally": "import time\ntry:\n    time.sleep(60)\nfinally:\n    time.sleep(60)",
    "await": "import asyncio\nawait asyncio.sleep(60)",
    "asyncio.run": "import asyncio\nasyncio.run(asyncio.sleep(60))",
    "repr": "class R:\n    def __repr__(self):\n        while True: pass\nR()",
    "answer": "class R:\n    def __repr__(self):\n        while True: pass\nfinal_answer = R()",
    "print": "while True: print('x' * 1000)",
    "output of a child": "import os; os.system('yes')",
}
KILLED = {
    "in C": "sum(range(10 ** 13))",
    "no signals": "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass",
    "nested handlers": "def f():\n while True:\n  try:\n   while True:\n    try:\n     while True: pass\n"
    "    except BaseException: pass\n  except BaseException: pass\nf()",
}


@pytest.fixture(scope="module")
def hasty() -> Iterator[PythonREPL]:
    with PythonREPL(timeout=TIMEOUT, grace=GRACE, rebuild=False) as repl:
        yield repl


@pytest.fixture(scope="module")
def forgetful() -> Iterator[PythonREPL]:
    """A session that does not get its variables back; for those that do, see test_journal.py."""
    with PythonREPL(timeout=20, rebuild=False) as repl:
        yield repl


def timed(repl: PythonREPL, code: str) -> CellResult:
    repl.run("kept = 1", timeout=20)
    began = time.monotonic()
    result = repl.run(code)
    spent = time.monotonic() - began
    assert result.error == "timeout"
    assert TIMEOUT <= spent < TIMEOUT + GRACE + 0.5
    return result


@pytest.mark.parametrize("name", STOPPED)
def test_what_can_be_interrupted_keeps_its_variables(hasty: PythonREPL, name: str) -> None:
    result = timed(hasty, STOPPED[name])
    if "restarted" in result.message:  # allowed for these, where nothing but luck decides
        assert name in ("swallowed always", "regex", "output of a child")
        return
    assert result.lost == ()
    assert "all variables are kept" in result.message
    assert hasty.run("kept", timeout=20).output == "1"


@pytest.mark.parametrize("name", KILLED)
def test_what_cannot_be_interrupted_is_killed_and_says_what_is_lost(hasty: PythonREPL, name: str) -> None:
    hasty.set("context", "stays")
    result = timed(hasty, "print('partial', flush=True)\n" + KILLED[name])
    if name == "nested handlers" and "kept" in result.message:
        return
    assert result.output == "partial\n"
    assert result.lost == ("kept",)
    assert "restarted" in result.message
    assert "kept" in result.message
    assert hasty.run("print(context); kept", timeout=20).message == "NameError: name 'kept' is not defined"


def test_off_the_main_thread() -> None:
    results: list[tuple[CellResult, float]] = []

    def work(code: str) -> None:
        with PythonREPL(timeout=TIMEOUT, grace=GRACE) as repl:
            repl.run("1", timeout=20)
            began = time.monotonic()
            results.append((repl.run(code), time.monotonic() - began))

    threads = [threading.Thread(target=work, args=(c,)) for c in ("while True: pass", "sum(range(10 ** 13))")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [r.error for r, _ in results] == ["timeout", "timeout"]
    assert all(s < TIMEOUT + GRACE + 0.5 for _, s in results)


def test_partial_output_and_place_are_kept(hasty: PythonREPL) -> None:
    result = hasty.run("print('first')\nwhile True: pass")
    assert result.output.startswith("first\nTraceback")
    assert "while True: pass" in result.output


def test_a_cell_that_handles_the_interrupt_was_still_stopped(hasty: PythonREPL) -> None:
    result = hasty.run("import time\ntry:\n    time.sleep(60)\nexcept KeyboardInterrupt:\n    print('handled')")
    assert (result.error, result.output) == ("timeout", "handled\n")


def test_setup_and_get_have_limits_too() -> None:
    from rlm_loop.repl import EvaluationFailed, SetupFailed

    with (
        PythonREPL(setup="while True: pass", timeout=0.3, grace=0.5) as repl,
        pytest.raises(SetupFailed, match="stopped"),
    ):
        repl.run("1")
    with PythonREPL(timeout=0.3, grace=0.5) as repl, pytest.raises(EvaluationFailed, match="stopped"):
        repl.get("(lambda f: f(f))(lambda f: [None for _ in iter(int, 1)])")


def test_setup_runs_again_after_a_kill() -> None:
    setup = "base = 1\ndef helper(): return base"
    with PythonREPL(setup=setup, timeout=0.3, grace=0.3, rebuild=False) as repl:
        result = repl.run("mine = 2", timeout=20)
        result = repl.run("import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass")
        assert result.lost == ("mine",)
        assert repl.run("helper()", timeout=20).output == "1"


@pytest.mark.parametrize(
    ("code", "cause"),
    [
        ("import os; os._exit(3)", "exit status 3"),
        ("import os; os.kill(os.getpid(), 11)", "SIGSEGV"),
        ("import ctypes; ctypes.string_at(0)", "SIGSEGV"),
        ("import os; os.kill(os.getpid(), 9)", "memory ran out"),
        ("import os; os.abort()", "SIGABRT"),
        ("import os; os.closerange(0, 256)", "died ("),
        ("import os; os.kill(os.getppid(), 9); import time; time.sleep(60)", "supervisor was killed"),
    ],
)
def test_a_dead_process_is_a_result(forgetful: PythonREPL, code: str, cause: str) -> None:
    forgetful.set("context", "stays")
    forgetful.run("x = 1\ny = 2")
    result = forgetful.run("print('last words', flush=True)\n" + code)
    assert result.error == "died"
    assert cause in result.message
    assert result.lost == ("x", "y")
    if "ppid" not in code:
        assert result.output == "last words\n"
    assert forgetful.run("context").output == "'stays'"
    assert forgetful.run("x").error == "runtime"


def test_a_death_between_cells_is_told_by_the_next(forgetful: PythonREPL) -> None:
    forgetful.run("x = 1\nimport os, threading\nthreading.Timer(0.05, os._exit, [5]).start()")
    time.sleep(0.4)
    result = forgetful.run("2 + 2")
    assert result.error is None
    assert result.output.endswith("\n4")
    assert "exit status 5" in result.output
    assert set(result.lost) == {"x", "os", "threading"}
    assert forgetful.run("3").output == "3"


def test_the_clock_is_an_argument() -> None:
    now = [0.0]

    def clock() -> float:
        now[0] += 0.25
        return now[0]

    with PythonREPL(clock=clock, timeout=1e6) as repl:
        result = repl.run("1")
        assert result.seconds >= 0.25
        assert result.seconds % 0.25 == 0

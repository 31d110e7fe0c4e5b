"""A cell that goes on is interrupted, else killed; the call returns in time and says what was lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from patience import Held, Stopwatch
from processes import gone
from session_kinds import seen

from rlm_loop.repl import CellResult, PythonREPL

TIMEOUT, GRACE = 0.3, 0.4
PATIENT = 60.0  # a grace that costs nothing, since these cells do stop

# Each calls `go()` once it is where it is to be stopped: until then its time does not run.
STOPPED = {
    "wait": "import threading; threading.Event().wait()",
    "queue": "import queue; queue.Queue().get()",
    "regex": "import re; re.match('(a*)*b', 'a' * 40)",
    "child": "import subprocess; subprocess.run(['sleep', '60'])",
    "swallowed always": "import time\nwhile True:\n    try: time.sleep(0.001)\n    except BaseException: pass",
    "finally": "import time\ntry:\n    time.sleep(60)\nfinally:\n    time.sleep(60)",
    "await": "import asyncio\ngo()\nawait asyncio.sleep(60)",
    "asyncio.run": "import asyncio\ngo()\nasyncio.run(asyncio.sleep(60))",
    "repr": "class R:\n    def __repr__(self):\n        while True: pass\nR()",
    "answer": "class R:\n    def __repr__(self):\n        while True: pass\nfinal_answer = R()",
    "print": "while True: print('x' * 1000)",
    "import": "open('endless.py', 'w').write('import __main__\\n__main__.go()\\nwhile True: pass');\nimport endless",
}
KILLED = {  # an interrupt that strikes before the first is in C changes nothing
    "in C": "while True:\n    try: sum(range(10 ** 13))\n    except BaseException: pass",
    "output of a child": "import os\nwhile True: os.system('yes')",  # while it waits, the interrupt is ignored
    "no signals": "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\ngo()\nwhile True: pass",
    "nested handlers": "def f():\n while True:\n  try:\n   while True:\n    try:\n     while True: pass\n"
    "    except BaseException: pass\n  except BaseException: pass\nf()",
}


class Timed:
    """A session whose clock stands still until the cell calls `go()`."""

    def __init__(self, grace: float, rebuild: bool = False) -> None:
        self.clock = Held(TIMEOUT + grace + 0.1)
        self.repl = PythonREPL(timeout=TIMEOUT, grace=grace, rebuild=rebuild, clock=self.clock, launcher="plain")
        self.repl.add_tools({"go": self.clock.go})

    def run(self, code: str) -> CellResult:
        """Run a cell that is to be stopped; the call returns in time."""
        self.clock.hold()
        watch = Stopwatch()
        try:
            result = self.repl.run(code if "go()" in code else "go()\n" + code)
        finally:
            self.clock.free()
        assert result.error == "timeout"
        assert watch.seconds >= TIMEOUT
        grace = GRACE if "had to be killed" in result.message else 2.0  # what can be stopped does not use its own up
        assert watch.fair < TIMEOUT + grace + 0.5
        return result


@pytest.fixture(scope="module")
def patient() -> Iterator[Timed]:
    timed = Timed(PATIENT)
    with timed.repl:
        yield timed


@pytest.fixture(scope="module")
def hasty() -> Iterator[Timed]:
    timed = Timed(GRACE)
    with timed.repl:
        yield timed


@pytest.fixture(scope="module")
def forgetful(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A session that does not get its variables back; for those that do, see test_records.py."""
    with seen(request.param, timeout=60, rebuild=False) as repl:
        yield repl


@pytest.mark.parametrize("name", STOPPED)
def test_what_can_be_interrupted_keeps_its_variables(patient: Timed, name: str) -> None:
    patient.repl.run("kept = 1", timeout=20)
    result = patient.run(STOPPED[name])
    assert result.lost == ()
    assert "all variables are kept" in result.message
    assert patient.repl.run("kept", timeout=20).output == "1"


@pytest.mark.parametrize("name", KILLED)
def test_what_cannot_be_interrupted_is_killed_and_says_what_is_lost(hasty: Timed, name: str) -> None:
    repl = hasty.repl
    repl.set("context", "stays")
    repl.run("kept = 1", timeout=20)
    result = hasty.run("print('partial', flush=True)\n" + KILLED[name])
    if name in ("nested handlers", "output of a child") and "all variables are kept" in result.message:
        return
    assert result.output.startswith("partial\n")
    assert result.output == "partial\n" or "child" in name
    assert result.lost == ("kept",)
    assert "restarted" in result.message
    assert "kept" in result.message
    assert repl.run("print(context); kept", timeout=20).message == "NameError: name 'kept' is not defined"


def off_the_main_thread(work: Callable[[], Any]) -> Any:
    """Do something in another thread, where no signal handler runs; its result, or what it raised."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


class BudgetSpent(Exception):
    """By its name the REPL knows it: nothing is left to spend."""


def spend() -> None:
    raise BudgetSpent


OFF_MAIN = {
    "loop": ("while True: pass", False),
    "sleep": ("import time; time.sleep(600)", False),
    "swallowed always": (STOPPED["swallowed always"], False),
    "in C": (KILLED["in C"], True),
    "no signals": (KILLED["no signals"], True),
}


@pytest.mark.parametrize("name", OFF_MAIN)
def test_off_the_main_thread_it_is_the_same(name: str) -> None:
    """Stopped or killed in time; what can be had again is rebuilt, and the names that are lost are said exactly."""
    code, killed = OFF_MAIN[name]
    timed = Timed(GRACE if killed else PATIENT, rebuild=True)

    def work() -> None:
        with timed.repl as repl:
            repl.set("context", "stays")
            repl.add_tools({"spend": spend})
            repl.run("safe = [1]\nn = 0", timeout=20)
            repl.run("import math\nsafe.append(math.floor(2.5))", timeout=20)
            timed.clock.hold()
            with pytest.raises(BudgetSpent):
                repl.run("n += 1\nspend()")  # a cell that was ended is never run again
            timed.clock.free()
            repl.run("m = n + 1", timeout=20)
            result = timed.run("late = 1\n" + code)
            if not killed:
                assert result.lost == ()
                assert repl.run("safe, context, n > 0, m > 1", timeout=20).output == "([1, 2], 'stays', True, True)"
                return
            assert result.lost == ("n",)
            assert "what this cell had set is lost, and n; safe, math, m will be rebuilt" in result.message
            told = repl.run("safe, context", timeout=20)
            assert told.lost == ("m",)  # made of n, which was not there
            assert told.output.endswith("([1, 2], 'stays')")
            assert "rebuilt from the journal: safe, math; lost: m" in told.output
            assert repl.variables == ("context", "safe", "math")

    off_the_main_thread(work)


def test_partial_output_and_place_are_kept(patient: Timed) -> None:
    result = patient.run("print('first')\nwhile True: pass")
    assert result.output.startswith("first\nTraceback")
    assert "while True: pass" in result.output


def test_a_cell_that_handles_the_interrupt_was_still_stopped(patient: Timed) -> None:
    code = "import time\ntry:\n    go()\n    time.sleep(60)\nexcept KeyboardInterrupt:\n    print('handled')"
    result = patient.run(code)
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
    with PythonREPL(setup=setup, timeout=60, rebuild=False) as repl:
        repl.run("mine = 2")
        assert repl.run("import os; os._exit(1)").lost == ("mine",)
        assert repl.run("helper()").output == "1"


DEATHS = {
    "import os; os._exit(3)": "exit status 3",
    "import os; os.kill(os.getpid(), 11)": "SIGSEGV",
    "import os; os.closerange(0, 256)": "died (",
    "import ctypes; ctypes.string_at(0)": "SIGSEGV",
    "import os; os.kill(os.getpid(), 9)": "killed by SIGKILL",
    "import os; os.abort()": "SIGABRT",
}


@pytest.mark.parametrize(
    ("forgetful", "code", "cause"),
    [*(("auto", *death) for death in DEATHS.items()), *(("kernel", *death) for death in list(DEATHS.items())[:3])],
    indirect=["forgetful"],
)
def test_a_dead_process_is_a_result(forgetful: PythonREPL, code: str, cause: str) -> None:
    forgetful.set("context", "stays")
    forgetful.run("x = 1\ny = 2")
    result = forgetful.run("print('last words', flush=True)\n" + code)
    assert result.error == "died"
    assert cause in result.message
    assert result.lost == ("x", "y")
    assert result.output == "last words\n" or "closerange" in code
    assert forgetful.run("context").output == "'stays'"
    assert forgetful.run("x").error == "runtime"


def test_a_death_between_cells_is_told_by_the_next() -> None:
    with PythonREPL(timeout=60, rebuild=False, launcher="plain") as repl:
        pid = repl.get("__import__('os').getpid()")
        repl.run("x = 1\nimport os, threading\nthreading.Timer(0.05, os._exit, [5]).start()")
        assert gone(pid)
        result = repl.run("2 + 2")
        assert result.error is None
        assert result.output.endswith("\n4")
        assert "exit status 5" in result.output
        assert set(result.lost) == {"x", "os", "threading"}
        assert repl.run("3").output == "3"


def test_the_clock_is_an_argument() -> None:
    now = [0.0]

    def clock() -> float:
        now[0] += 0.25
        return now[0]

    with PythonREPL(clock=clock, timeout=1e6) as repl:
        result = repl.run("1")
        assert result.seconds >= 0.25
        assert result.seconds % 0.25 == 0

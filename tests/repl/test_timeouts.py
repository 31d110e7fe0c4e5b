"""A cell that goes on is interrupted, else killed; the call returns in time and says what was lost."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from patience import Held, Stopwatch
from session_kinds import seen

from rlm_loop.repl import CellResult, EvaluationFailed, PythonREPL, SetupFailed

TIMEOUT, GRACE = 0.3, 0.4
PATIENT = 60.0  # a grace that costs nothing, since these cells do stop

# Each calls `go()` once it is where it is to be stopped: until then its time does not run.
STOPPED = {
    "wait": "import threading; threading.Event().wait()",
    "swallowed always": "import time\nwhile True:\n    try: time.sleep(0.001)\n    except BaseException: pass",
    "finally": "import time\ntry:\n    time.sleep(60)\nfinally:\n    time.sleep(60)",
    "asyncio.run": "import asyncio\ngo()\nasyncio.run(asyncio.sleep(60))",
    "import": "open('endless.py', 'w').write('import __main__\\n__main__.go()\\nwhile True: pass');\nimport endless",
}
KILLED = {  # an interrupt that strikes before the first is in C changes nothing
    "in C": "while True:\n    try: sum(range(10 ** 13))\n    except BaseException: pass",
    "no signals": "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\ngo()\nwhile True: pass",
}


class Timed:
    """A session whose clock stands still until the cell calls `go()`."""

    def __init__(self, grace: float) -> None:
        self.clock = Held(TIMEOUT + grace + 0.1)
        self.repl = PythonREPL(timeout=TIMEOUT, grace=grace, rebuild=False, clock=self.clock, launcher="plain")
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

    def then(self, code: str) -> CellResult:
        """Run a cell that is given time."""
        return self.repl.run(code, timeout=20)


@pytest.fixture(scope="module", params=[PATIENT])
def timed(request: pytest.FixtureRequest) -> Iterator[Timed]:
    made = Timed(request.param)
    with made.repl:
        yield made


@pytest.fixture(scope="module")
def forgetful(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A session that does not get its variables back; for those that do, see test_records.py."""
    with seen(request.param, rebuild=False, setup="base = 1\ndef helper(): return base") as repl:
        yield repl


@pytest.mark.parametrize("name", STOPPED)
def test_what_can_be_interrupted_keeps_its_variables(timed: Timed, name: str) -> None:
    timed.then("kept = 1")
    result = timed.run(STOPPED[name])
    assert (result.lost, "all variables are kept" in result.message) == ((), True)
    assert timed.then("kept").output == "1"


@pytest.mark.parametrize("timed", [GRACE], indirect=True)
@pytest.mark.parametrize("name", KILLED)
def test_what_cannot_be_interrupted_is_killed_and_says_what_is_lost(timed: Timed, name: str) -> None:
    timed.repl.set("context", "stays")
    timed.then("kept = 1")
    result = timed.run("print('partial', flush=True)\n" + KILLED[name])
    assert (result.output, result.lost) == ("partial\n", ("kept",))
    assert ("restarted" in result.message, "kept" in result.message) == (True, True)
    assert timed.then("print(context); kept").message == "NameError: name 'kept' is not defined"


@pytest.mark.parametrize("name", ["wait", "swallowed always", *KILLED])
def test_off_the_main_thread_it_is_the_same(name: str) -> None:
    timed = Timed(GRACE if name in KILLED else PATIENT)

    def work() -> tuple[str, ...]:
        with timed.repl:
            timed.then("kept = 1")
            return timed.run({**STOPPED, **KILLED}[name]).lost

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(work).result() == (("kept",) if name in KILLED else ())


def test_partial_output_and_place_are_kept(timed: Timed) -> None:
    output = timed.run("print('first')\nwhile True: pass").output
    assert (output[:15], "while True: pass" in output) == ("first\nTraceback", True)


def test_a_cell_that_handles_the_interrupt_was_still_stopped(timed: Timed) -> None:
    code = "import time\ntry:\n    go()\n    time.sleep(60)\nexcept KeyboardInterrupt:\n    print('handled')"
    assert timed.run(code).output == "handled\n"


def test_setup_and_get_have_limits_too() -> None:
    with PythonREPL(setup="while True: pass", timeout=0.3, grace=0.5) as repl, pytest.raises(SetupFailed, match="stop"):
        repl.run("1")
    with PythonREPL(timeout=0.3, grace=0.5) as repl, pytest.raises(EvaluationFailed, match="stopped"):
        repl.get("(lambda f: f(f))(lambda f: [None for _ in iter(int, 1)])")


DEATHS = {
    "import os; os._exit(3)": "exit status 3",
    "import os; os.kill(os.getpid(), 11)": "SIGSEGV",
    "import os; os.closerange(0, 256)": "died (",
    "import os; os.kill(os.getpid(), 9)": "killed by SIGKILL",
}


@pytest.mark.parametrize("forgetful", ["auto", "kernel"], indirect=True)
@pytest.mark.parametrize("code", DEATHS)
def test_a_dead_process_is_a_result_and_setup_runs_again(forgetful: PythonREPL, code: str) -> None:
    forgetful.set("context", "stays")
    forgetful.run("x = 1\ny = 2")
    result = forgetful.run("print('last words', flush=True)\n" + code)
    assert (result.error, DEATHS[code] in result.message, result.lost) == ("died", True, ("x", "y"))
    assert result.output == "last words\n" or "closerange" in code
    assert forgetful.run("context, helper()").output == "('stays', 1)"
    assert forgetful.run("x").error == "runtime"

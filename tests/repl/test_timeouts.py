"""The limits of a cell, in time and in what it takes of the machine.

One that goes on is interrupted, else killed: the call returns in time and says what was lost.
"""

from __future__ import annotations

import math
import os
import resource
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from processes import Held, Stopwatch
from session_kinds import linux, seen

from rlm_loop.repl import CellResult, EvaluationFailed, Limits, PythonREPL, SetupFailed
from rlm_loop.repl.worker import tasks_of_user

TIMEOUT, GRACE = 0.3, 0.4
PATIENT = 60.0  # a grace that costs nothing, since these cells do stop

# Each calls `go()` once it is where it is to be stopped: until then its time does not run.
STOPPED = {
    "wait": "import threading; threading.Event().wait()",
    "finally": "import time\ntry:\n    time.sleep(60)\nfinally:\n    time.sleep(60)",
    "asyncio.run": "import asyncio\ngo()\nasyncio.run(asyncio.sleep(60))",
    "import": "open('endless.py', 'w').write('import __main__\\n__main__.go()\\nwhile True: pass');\nimport endless",
}
KILLED = {  # an interrupt that strikes before the first is in C changes nothing
    "in C": "while True:\n    try: sum(range(10 ** 13))\n    except BaseException: pass",
    "swallowed always": "import time\nwhile True:\n    try: time.sleep(0.001)\n    except BaseException: pass",
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
        return self.repl.run(code, timeout=20)


@pytest.fixture(scope="module", params=[PATIENT])
def timed(request: pytest.FixtureRequest) -> Iterator[Timed]:
    made = Timed(request.param)
    with made.repl:
        made.repl.get("0")
        yield made


@pytest.fixture(scope="module")
def forgetful(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A session that does not get its variables back; for those that do, see test_records.py."""
    with seen(request.param, rebuild=False, setup="base = 1\ndef helper(): return base") as repl:
        yield repl


@pytest.mark.parametrize("timed", [GRACE], indirect=True)
@pytest.mark.parametrize("name", KILLED)
def test_what_cannot_be_interrupted_is_killed_and_says_what_is_lost(timed: Timed, name: str) -> None:
    timed.repl.set("context", "stays")
    timed.then("kept = 1")
    result = timed.run("print('partial', flush=True)\n" + KILLED[name])
    assert (result.output, result.lost) == ("partial\n", ("kept",))
    assert ("restarted" in result.message, "kept" in result.message) == (True, True)
    assert timed.then("print(context); kept").message == "NameError: name 'kept' is not defined"


@pytest.mark.parametrize("name", [*STOPPED, *KILLED])
def test_what_a_thread_of_the_host_runs_is_interrupted_and_keeps_its_variables_or_is_killed(name: str) -> None:
    timed = Timed(GRACE if name in KILLED else PATIENT)

    def work() -> tuple[Any, ...]:
        with timed.repl:
            timed.then("kept = 1")
            result = timed.run({**STOPPED, **KILLED}[name])
            return result.lost, "all variables are kept" in result.message, timed.then("kept").output

    with ThreadPoolExecutor(1) as pool:
        lost, told, kept = pool.submit(work).result()
    assert (lost, told, kept == "1") == ((("kept",), False, False) if name in KILLED else ((), True, True))


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


# -- limits of memory, files, processes and processor time

WRONG: dict[str, list[Any]] = {
    "memory": [512, -1, 1e9, True],  # megabytes were meant
    "processes": [-1, 1.5, math.nan, "10"],
    "file_size": [-1, False],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in WRONG.items() for value in values])
def test_nonsense_is_refused(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"{name} must be"):
        Limits(**{name: value})


@linux
def test_memory_beyond_the_limit_is_an_error_of_the_cell() -> None:
    with PythonREPL(limits=Limits(memory=200 << 20)) as repl:
        result = repl.run("kept = 1\nbig = bytearray(300 << 20)")
        assert result.message == "MemoryError"
        assert repl.run("kept, len(bytearray(50 << 20))").output == "(1, 52428800)"
        child = "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'bytearray(300 << 20)'])"
        assert "MemoryError" in repl.run(child).output


def test_the_size_of_files_is_limited() -> None:
    with PythonREPL(limits=Limits(file_size=10_000)) as repl:
        assert "too large" in repl.run("with open('f', 'wb', 0) as f:\n while True: f.write(b'x' * 999)").message
        assert repl.run("import os; os.path.getsize('f')").output == "10000"
        assert len(repl.run("print('x' * 50_000)").output) == 50_001  # what it prints is no file


@linux
@pytest.mark.parametrize("raise_it", ["resource.RLIM_INFINITY", "2 ** 40"])
def test_no_cell_raises_a_limit(raise_it: str) -> None:
    with PythonREPL(limits=Limits(memory=1 << 30, file_size=64)) as repl:
        hard = repl.get("[__import__('resource').getrlimit(k)[1] for k in (2, 1)]")  # DATA, FSIZE on Linux
        assert hard == [1 << 30, 64]
        result = repl.run(f"import resource\nresource.setrlimit(resource.RLIMIT_DATA, ({raise_it}, {raise_it}))")
        assert result.error == "runtime" or os.geteuid() == 0  # root, where it has CAP_SYS_RESOURCE


@linux
def test_without_limits_nothing_is_changed() -> None:
    kinds = [resource.RLIMIT_DATA, resource.RLIMIT_NPROC, resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE]
    with PythonREPL() as repl:
        limits = repl.get(f"[__import__('resource').getrlimit(k) for k in {kinds!r}]")
    assert limits == [resource.getrlimit(k) for k in kinds]


@linux
def test_processes_are_counted_besides_what_the_user_runs_already() -> None:
    with PythonREPL(limits=Limits(processes=20), launcher="plain") as repl:
        soft = repl.get("__import__('resource').getrlimit(6)[0]")  # NPROC
        assert soft >= 20 + 2  # the REPL and its supervisor at least
        assert abs(soft - 20 - tasks_of_user()) < 200  # others may come and go
        if os.geteuid() != 0:  # the kernel exempts root; the tests of the sandbox run this as another user
            assert repl.run("import os\nfor _ in range(500):\n if os.fork() == 0: os.kill(0, 19)").error == "runtime"

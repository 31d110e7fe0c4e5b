"""What a cell may take of the machine, and what it is told when it wants more."""

from __future__ import annotations

import math
import os
import resource
from typing import Any

import pytest
from session_kinds import linux

from rlm_loop.repl import Limits, PythonREPL
from rlm_loop.repl.worker import tasks_of_user

WRONG: dict[str, list[Any]] = {
    "memory": [512, -1, 1e9, True],  # megabytes were meant
    "cpu_seconds": [0, math.nan, math.inf, "10"],
    "processes": [-1, 1.5],
    "open_files": [3],
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


def test_files_and_their_size_are_limited() -> None:
    with PythonREPL(limits=Limits(open_files=64, file_size=10_000)) as repl:
        assert "Too many open files" in repl.run("files = [open('/dev/null') for _ in range(100)]").message
        repl.run("files = None")
        assert "too large" in repl.run("with open('f', 'wb', 0) as f:\n while True: f.write(b'x' * 999)").message
        assert repl.run("import os; os.path.getsize('f')").output == "10000"
        assert repl.run("print('x' * 50_000)").characters == 50_001  # what it prints is no file


@linux
@pytest.mark.slow
def test_a_repl_that_ignores_that_its_processor_time_is_used_up_is_replaced() -> None:
    with PythonREPL(timeout=300, limits=Limits(cpu_seconds=1), rebuild=False) as repl:
        result = repl.run("import signal\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass")
        assert (result.error, "SIGKILL" in result.message) == ("died", True)
        assert repl.run("1").output == "1"


@linux
@pytest.mark.parametrize("raise_it", ["resource.RLIM_INFINITY", "2 ** 40"])
def test_no_cell_raises_a_limit(raise_it: str) -> None:
    with PythonREPL(limits=Limits(memory=1 << 30, open_files=64)) as repl:
        hard = repl.get("[__import__('resource').getrlimit(k)[1] for k in (2, 7)]")  # DATA, NOFILE on Linux
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

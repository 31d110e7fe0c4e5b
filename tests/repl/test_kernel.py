"""Cells with IPython: what is there besides what all sessions have, and what holds when things go wrong."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from processes import Held, Stopwatch, gone
from session_kinds import linux

from rlm_loop.repl import KernelREPL, Limits

pytest.importorskip("IPython", reason='needs IPython: pip install -e ".[kernel]"')


@pytest.fixture(scope="module")
def kernel() -> Iterator[KernelREPL]:
    with KernelREPL(timeout=60, limits=Limits(file_size=20 << 20)) as repl:
        yield repl


def test_all_output_comes_in_the_order_written(kernel: KernelREPL) -> None:
    code = "import os, sys\nfor i in range(3):\n    print(i)\n    os.write(1, b'w')\n    os.write(2, b'e')\n"
    code += "    print('s', file=sys.stderr)\n    os.system('printf c')"
    assert kernel.run(code + ";").output == "0\nwes\nc1\nwes\nc2\nwes\nc"
    long = kernel.run("os.write(1, ('é' * 100_000 + '\\n').encode()); os.system(\"printf 'ü'\");")
    assert len(long.full) == 100_002


def test_magics_work_on_the_same_variables(kernel: KernelREPL) -> None:
    kernel.run("m = 20")
    assert kernel.run("%who_ls int").output.count("'m'") == 1
    assert kernel.run("%%capture out\nprint(m)").error is None
    assert kernel.run("out.stdout").output == "'20\\n'"
    assert kernel.run("!echo $m").output == "20\n"
    assert kernel.run("get_ipython().user_ns['m'] is m").output == "True"


def test_limits_hold(kernel: KernelREPL) -> None:
    assert kernel.run("import resource; resource.getrlimit(resource.RLIMIT_FSIZE)[0]").output == "20971520"


@pytest.mark.slow
def test_what_cannot_be_interrupted_is_killed_and_the_variables_are_rebuilt() -> None:
    clock = Held(most=1.6)
    with KernelREPL(timeout=60, grace=0.5, clock=clock) as repl:
        repl.add_tools({"go": clock.go})
        repl.set("context", "stays")
        repl.run("x = 1")
        pid = repl.get("__import__('os').getpid()")
        clock.hold()
        watch = Stopwatch()
        in_c = "while True:\n    try: sum(range(10 ** 14))\n    except BaseException: pass"
        result = repl.run(f"print('partial', flush=True)\ngo()\n{in_c}", timeout=1.0)
        assert watch.fair < 1.0 + 0.5 + 0.5
        clock.free()
        assert (result.error, result.output, "restarted" in result.message) == ("timeout", "partial\n", True)
        assert gone(pid)
        assert repl.run("print(context, x)").output == "stays 1\n"


RESTARTS = ("exit()", "%reset -f", "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)")


def test_a_session_survives_a_restart_that_a_cell_asked_for() -> None:
    with KernelREPL(timeout=60) as repl:
        repl.set("given", 7, reserved=True)
        repl.add_tools({"five": lambda: 5})
        for code in RESTARTS:
            repl.run(code)
            assert repl.run("given + five()").output == "12", code


def test_a_stream_that_a_cell_replaced_comes_back(kernel: KernelREPL) -> None:
    raising = "class S:\n    def flush(self): raise ValueError\n"
    for stream in ("sys.stdout = None", "sys.stdout = 'text'", f"{raising}sys.stdout = S()"):
        kernel.run(f"import sys\n{stream}", timeout=30)
        assert kernel.run("print('next')").output == "next\n"


@pytest.mark.slow
def test_an_interrupt_does_not_reach_the_next_kernel() -> None:
    stream = "class S:\n    def write(self, s): pass\n    def flush(self):\n        while True: pass"
    with KernelREPL(timeout=60, grace=0.5) as repl:
        repl.run("1")
        stopped = repl.run(f"import sys\n{stream}\nsys.stdout = S()", timeout=0.5)
        assert stopped.error == "timeout"  # its kernel was replaced while the host still sent interrupts
        assert repl.run("print('next')").output == "next\n"


@linux
def test_a_kernel_without_descriptors_goes_on() -> None:
    with KernelREPL(timeout=60) as repl:
        repl.run("import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))")
        assert repl.run("print('one')").output == "one\n"

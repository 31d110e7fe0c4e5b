"""The REPL's own socket to the host: interrupts, forged ends of cells, and REPLs that do not read or hang up."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from pathlib import Path

import pytest
from test_protocol import FIND

from rlm_loop.repl import Launch, PythonREPL, ReplError
from rlm_loop.repl.host.direct import DirectWorker
from rlm_loop.repl.host.launch import plain

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere the supervisor hands frames on")


@pytest.fixture
def patient() -> object:
    with PythonREPL(timeout=60, grace=60, launcher="plain", rebuild=False) as repl:
        yield repl


def test_an_interrupt_that_is_under_way_does_not_strike_the_next_cell(patient: PythonREPL) -> None:
    """The supervisor sends interrupts, and the cell does not come through it: it may be slow to get a processor."""
    supervisor = patient.get("__import__('os').getppid()")
    driver = patient._lifecycle.resources.driver  # pyright: ignore[reportPrivateUsage]
    assert driver is not None
    assert driver.worker is not None
    os.kill(supervisor, signal.SIGSTOP)
    try:
        driver.worker.control("int")
        threading.Timer(0.2, os.kill, [supervisor, signal.SIGCONT]).start()
        assert patient.run("import time\nfor _ in range(60): time.sleep(0.01)\n'whole'").output == "'whole'"
    finally:
        os.kill(supervisor, signal.SIGCONT)


def test_what_a_cell_printed_is_kept_where_its_supervisor_does_not_answer() -> None:
    """It cannot report that the REPL was killed; the host has the pipe of the cell all the same."""
    with PythonREPL(grace=0.1, launcher="plain") as repl:
        supervisor = repl.get("__import__('os').getppid()")

        def stop() -> None:
            os.kill(supervisor, signal.SIGSTOP)
            raise KeyboardInterrupt

        repl.add_tools({"stop": stop})
        with pytest.raises(KeyboardInterrupt):
            repl.run("print('partial')\nimport threading, time\nthreading.Thread(target=stop).start()\ntime.sleep(60)")
        assert repl.last is not None
        assert "partial" in repl.last.output
        assert repl.run("2").output == "2"


IMITATED = f"""
import sys{FIND}
frame = sys._getframe()
while 'job' not in frame.f_locals: frame = frame.f_back
line = '{{"t":"done","quiet":false,"g":1,"id":%d,"interrupts":0}}' % frame.f_locals['job']['id']
os.write(link[0], b'\\n' + line.encode() + b'\\n')
"""


def test_a_cell_that_imitates_its_own_end_does_not_spoil_later_ones(patient: PythonREPL) -> None:
    assert patient.run(IMITATED + "print('one')").output in ("one\n", "")
    assert [patient.run(f"print({n})").output for n in range(3)] == ["0\n", "1\n", "2\n"]


def test_the_host_does_not_wait_for_a_repl_that_does_not_read(patient: PythonREPL) -> None:
    """As long as the earlier cell goes on, which only the time limit of the next one ends."""
    patient.run(IMITATED + "while True: pass")
    result = patient.run(f"big = {'x' * 5_000_000!r}", timeout=0.5)
    assert result.error in (None, "timeout")  # the second interrupt may strike this one
    assert patient.run("6 * 7").output == "42"


@pytest.mark.parametrize("how", ["os.close(link[0])", "__import__('socket').socket(fileno=link[0]).shutdown(2)"])
def test_a_repl_that_hangs_up_is_replaced(patient: PythonREPL, how: str) -> None:
    assert patient.run(f"{FIND}{how}\nimport time; time.sleep(600)").error == "died"  # no "timeout": at once
    assert patient.run("6 * 7").output == "42"


def test_what_was_printed_before_a_death_is_kept(patient: PythonREPL) -> None:
    result = patient.run("import os\nprint('x' * 60_000)\nos.kill(os.getpid(), 9)")
    assert (result.error, result.characters) == ("died", 60_001)


def test_long_and_short_frames_arrive_in_their_order(patient: PythonREPL) -> None:
    patient.add_tools({"give": "x".__mul__})
    sizes = [1, 5_000_000, 2, 40_000, 3, 32_000]
    code = "from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(6) as pool:\n"
    assert patient.run(f"{code}    sizes = [len(t) for t in pool.map(give, {sizes})]\nsizes").output == str(sizes)


class Slow:
    """A launcher that makes a file when it is half way; with `direct` descriptors are passed on."""

    kind = "custom"

    def __init__(self, begun: Path, direct: bool, then: str = 'exec "$@"') -> None:
        self.begun, self.direct, self.then = begun, direct, then

    def __call__(self, python: str, options: str) -> Launch:
        given = plain(python, options)
        script = f'b=$1; shift; sleep 0.2; : >"$b"; {self.then}'
        return Launch(("/bin/sh", "-c", script, "sh", str(self.begun), *given.argv), given.env)


@pytest.mark.parametrize("direct", [True, False])
def test_the_start_is_no_part_of_the_first_cells_time(tmp_path: Path, direct: bool) -> None:
    """The cell is sent before the REPL is ready for it."""
    begun = tmp_path / "begun"
    with PythonREPL(launcher=Slow(begun, direct), timeout=10, clock=lambda: 20.0 * begun.exists()) as repl:
        assert repl.run("x = 1").seconds == 0
        assert repl.run("x").output == "1"
    begun.unlink()
    with PythonREPL(launcher=Slow(begun, direct)) as repl:
        repl.start()
        assert begun.exists()  # it waits for the REPL


@pytest.mark.parametrize("direct", [True, False])
def test_a_start_that_fails_says_why(tmp_path: Path, direct: bool) -> None:
    launcher = Slow(tmp_path / "begun", direct, "echo no room >&2; exit 1")
    with PythonREPL(launcher=launcher) as repl:
        for act in (repl.start, lambda: repl.run("1"), lambda: repl.get("1")):
            with pytest.raises(ReplError, match="ended while starting: no room"):
                act()


def test_a_repl_that_hears_of_its_hosts_end_before_the_supervisor_leaves_no_folder() -> None:
    """As where the host is killed: which of its sockets the kernel closes first is not said."""
    with PythonREPL(launcher="plain") as repl:
        supervisor, folder = repl.get("__import__('os').getppid()"), repl.cwd.parent
        driver = repl._lifecycle.resources.driver  # pyright: ignore[reportPrivateUsage]
        assert driver is not None
        worker = driver.worker
        assert isinstance(worker, DirectWorker)
        assert any(folder.iterdir())
        worker._line.shutdown(socket.SHUT_RD)  # pyright: ignore[reportPrivateUsage]
        worker._link.shutdown(socket.SHUT_RDWR)  # pyright: ignore[reportPrivateUsage]
        assert os.waitpid(supervisor, 0) == (supervisor, 0)
        assert not folder.exists()

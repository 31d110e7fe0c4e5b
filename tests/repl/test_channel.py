"""The REPL's own socket to the host: interrupts, forged ends of cells, and REPLs that do not read or hang up."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from test_protocol import FIND

from rlm_loop.repl import Launch, PythonREPL, ReplError
from rlm_loop.repl.host.launch import plain

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="finds the socket through /proc")


@pytest.fixture
def patient() -> object:
    with PythonREPL(timeout=60, grace=60, launcher="plain", rebuild=False) as repl:
        yield repl


IMITATED = f"""
import sys{FIND}
frame = sys._getframe()
while 'job' not in frame.f_locals: frame = frame.f_back
line = '{{"t":"done","id":%d,"interrupts":0}}' % frame.f_locals['job']['id']
os.write(link[0], b'\\n' + line.encode() + b'\\n')
"""


def test_a_cell_that_imitates_its_own_end_does_not_spoil_later_ones(patient: PythonREPL) -> None:
    first, *more = [
        patient.run(code).output for code in (IMITATED + "print('one')", *map("print({})".format, range(3)))
    ]
    assert (first + more[0]).removeprefix("one\n") == "0\n"  # what comes after its end may go to the next cell
    assert more[1:] == ["1\n", "2\n"]


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
    """A launcher that makes a file when it is half way."""

    kind = "custom"

    def __init__(self, begun: Path, then: str = 'exec "$@"') -> None:
        self.begun, self.then = begun, then

    def __call__(self, python: str, options: str) -> Launch:
        given = plain(python, options)
        script = f'b=$1; shift; sleep 0.2; : >"$b"; {self.then}'
        return Launch(("/bin/sh", "-c", script, "sh", str(self.begun), *given.argv), given.env)


def test_the_start_is_no_part_of_the_first_cells_time(tmp_path: Path) -> None:
    """The cell is sent before the REPL is ready for it."""
    begun = tmp_path / "begun"
    with PythonREPL(launcher=Slow(begun), timeout=10, clock=lambda: 20.0 * begun.exists()) as repl:
        assert repl.run("x = 1").seconds == 0
        assert repl.run("x").output == "1"
    begun.unlink()
    with PythonREPL(launcher=Slow(begun)) as repl:
        repl.start()
        assert begun.exists()  # it waits for the REPL


def test_a_start_that_fails_says_why(tmp_path: Path) -> None:
    launcher = Slow(tmp_path / "begun", "echo no room >&2; exit 1")
    with PythonREPL(launcher=launcher) as repl:
        for act in (repl.start, lambda: repl.run("1"), lambda: repl.get("1")):
            with pytest.raises(ReplError, match="ended while starting: no room"):
                act()


def test_a_process_that_a_cell_left_prints_into_the_cell_that_runs(patient: PythonREPL) -> None:
    patient.run("import subprocess; noisy = subprocess.Popen('read x; echo late', shell=True, stdin=subprocess.PIPE)")
    assert patient.run("1").output == "1"
    assert patient.run("noisy.communicate(b'go\\n'); print('mine')").output == "late\nmine\n"

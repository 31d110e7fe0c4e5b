"""Following a process: bounded memory, a limit of time, and nothing of it left."""

from __future__ import annotations

import os
import sys
import time
import tracemalloc
from pathlib import Path

import pytest

from rlm_loop.tools.processes import Finished, watch


def watched(code: str, folder: Path, *, timeout: float = 60.0) -> tuple[Finished, list[bytes]]:
    lines: list[bytes] = []
    env = {**os.environ, "MARK": f"mark-{os.getpid()}-{folder.name}"}
    argv = [sys.executable, "-S", "-c", code]
    mark = "MARK=" + env["MARK"]
    ended = watch(argv, cwd=folder, env=env, stdin=b"", timeout=timeout, on_line=lines.append, mark=mark)
    return ended, lines


def test_a_hundred_megabytes_of_output(tmp_path: Path) -> None:
    code = (
        "import sys, os\nos.write(2, b'first')\nfor _ in range(1600): os.write(2, b'x' * 65536)\n"
        "os.write(2, b'last'); print('a line'); os.write(1, b'y' * (40 << 20)); print(); print('another')"
    )
    tracemalloc.start()
    try:
        ended, lines = watched(code, tmp_path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert ended.code == 0
    assert ended.output.startswith("firstx")
    assert ended.output.endswith("xlast")
    assert f"[{1600 * 65536 + 9 - 65536} bytes left out]" in ended.output
    assert lines == [b"a line", b"another"]
    assert peak < 8 << 20


@pytest.mark.slow
def test_a_hang_is_ended_with_what_it_started(tmp_path: Path) -> None:
    code = (
        "import os, sys, time\nprint('begun', flush=True)\npid = os.fork()\n"
        "if not pid: os.setsid()\nopen(str(os.getpid()), 'w').close()\ntime.sleep(1000)"
    )
    ended, lines = watched(code, tmp_path, timeout=3.0)
    assert ended.timed_out
    assert ended.code == -9
    assert lines in ([b"begun"], [])
    if sys.platform.startswith("linux"):
        end = time.monotonic() + 30
        while (alive := [p for p in os.listdir(tmp_path) if runs(int(p))]) and time.monotonic() < end:
            time.sleep(0.02)
        assert not alive


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_an_escaped_process_that_holds_the_pipes_does_not_hold_us(tmp_path: Path) -> None:
    code = "import os, time\nif not os.fork():\n    os.setsid()\n    time.sleep(1000)\nprint('done')"
    ended, lines = watched(code, tmp_path, timeout=300.0)
    assert (ended.code, ended.timed_out, lines) == (0, False, [b"done"])


def test_one_that_writes_without_end_to_the_pipes_does_not_hold_us(tmp_path: Path) -> None:
    code = "import os\nif not os.fork():\n    os.setsid()\n    while True: os.write(2, b'x' * 9999)\nprint('done')"
    ended, lines = watched(code, tmp_path, timeout=300.0)
    assert (ended.code, ended.timed_out, lines) == (0, False, [b"done"])


def test_a_command_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(OSError):
        watch(["/nowhere"], cwd=tmp_path, env={}, stdin=b"", timeout=1, on_line=print)

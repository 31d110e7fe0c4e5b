"""Following a process: bounded memory, a limit of time, and nothing of it left."""

from __future__ import annotations

import os
import sys
import tracemalloc
from pathlib import Path

import pytest

from rlm_loop.tools.processes import Finished, watch
from tests.repl.processes import gone


def watched(code: str, folder: Path, *, timeout: float = 60.0) -> tuple[Finished, list[bytes]]:
    lines, mark, argv = list[bytes](), f"mark-{os.getpid()}-{folder.name}", [sys.executable, "-S", "-c", code]
    options = {"env": {**os.environ, "MARK": mark}, "mark": f"MARK={mark}", "timeout": timeout}
    return watch(argv, cwd=folder, stdin=b"", on_line=lines.append, **options), lines


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
    assert (ended.code, ended.output[:6], ended.output[-5:]) == (0, "firstx", "xlast")
    assert "characters left out" in ended.output
    assert len(ended.output) == 1 << 16
    assert [line[:9] for line in lines] == [b"a line", b"yyyyyyyyy", b"another"]
    assert len(lines[1]) <= 1 << 21
    assert peak < 8 << 20


@pytest.mark.slow
def test_a_hang_is_ended_with_what_it_started(tmp_path: Path) -> None:
    code = (
        "import os, sys, time\nprint('begun', flush=True)\npid = os.fork()\n"
        "if not pid: os.setsid()\nopen(str(os.getpid()), 'w').close()\ntime.sleep(1000)"
    )
    ended, lines = watched(code, tmp_path, timeout=3.0)
    assert (ended.timed_out, ended.code) == (True, -9)
    assert lines in ([b"begun"], [])
    if sys.platform.startswith("linux"):
        assert [pid for pid in os.listdir(tmp_path) if not gone(int(pid), 30)] == []


@pytest.mark.parametrize("goes_on", ["time.sleep(1000)", "while True: os.write(2, b'x' * 9999)"])
def test_an_escaped_process_that_holds_the_pipes_does_not_hold_us(tmp_path: Path, goes_on: str) -> None:
    code = f"import os, time\nif not os.fork():\n    os.setsid()\n    {goes_on}\nprint('done')"
    ended, lines = watched(code, tmp_path, timeout=300.0)
    assert (ended.code, ended.timed_out, lines) == (0, False, [b"done"])

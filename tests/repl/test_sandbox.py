"""Cells under bubblewrap: nothing gets out, and everything still works inside."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import escapes
import pytest

from rlm_loop.repl import Limits, PythonREPL, ReplError, Sandbox
from rlm_loop.repl.host.launch import isolated_environment
from rlm_loop.repl.isolation.ordinary_user import RootFolder, may_read

PROBLEM = Sandbox().problem(sys.executable)
pytestmark = pytest.mark.skipif(bool(PROBLEM), reason=f"no sandbox (`rlm-loop doctor` says how to get it): {PROBLEM}")
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="for root only")


@pytest.fixture(scope="module")
def box() -> Iterator[PythonREPL]:
    os.environ["RLM_LOOP_TEST_SECRET"] = "hunter2"
    try:
        with PythonREPL(timeout=60, launcher="sandbox") as repl:
            yield repl
    finally:
        del os.environ["RLM_LOOP_TEST_SECRET"]


def test_the_session_says_what_it_is(box: PythonREPL) -> None:
    assert box.run("1 + 1").output == "2"
    assert box.isolation == "sandbox"


def test_no_network(box: PythonREPL, tmp_path: Path) -> None:
    assert escapes.reached_by_sockets(box, tmp_path) == []


def test_no_write_outside_the_working_folder(box: PythonREPL, tmp_path: Path) -> None:
    assert escapes.written_outside(box, tmp_path) == []


def test_no_file_of_the_hosts_is_read(box: PythonREPL, tmp_path: Path) -> None:
    assert escapes.read_outside(box, tmp_path) == []


def test_no_answer_of_our_tasks_is_read(box: PythonREPL) -> None:
    assert escapes.answers_read(box) == []


def test_no_environment_variable_outside_the_allow_list(box: PythonREPL) -> None:
    allowed = {*isolated_environment("/tmp"), "PWD", "RLM_LOOP_HOME"}
    assert escapes.environment_seen(box) <= allowed
    assert "RLM_LOOP_TEST_SECRET" not in allowed


def test_no_host_process_is_visible(box: PythonREPL) -> None:
    with escapes.bystander() as process:
        lines = escapes.command_lines_seen(box, process)
    assert str(process.args[-1]) not in lines
    assert "harden.py" in lines  # its own it sees


def test_no_signal_reaches_a_host_process(box: PythonREPL) -> None:
    with escapes.bystander() as process:
        assert not escapes.was_ended(box, process)


def test_nothing_of_the_users_is_reached(box: PythonREPL, tmp_path: Path) -> None:
    assert set(escapes.reached(box, tmp_path)) <= escapes.OWN_IN_A_SANDBOX


def test_cells_do_not_run_as_root(box: PythonREPL) -> None:
    assert 0 not in box.get("__import__('os').getresuid()")
    status = box.get("open('/proc/self/status').read()")
    assert "CapEff:\t0000000000000000\n" in status
    assert "NoNewPrivs:\t1\n" in status
    box.run(escapes.PRIVILEGED)
    assert box.get("failed") == dict.fromkeys(["unshare", "mount", "ptrace", "keyctl", "setuid"], True)
    assert box.run("open('/proc/sys/vm/swappiness', 'w')").error == "runtime"


def test_ordinary_work_goes_on_inside(box: PythonREPL) -> None:
    result = box.run(
        "import getpass, multiprocessing, os, socket, sqlite3, ssl, subprocess, sys, tempfile\n"
        "open('kept.txt', 'w').write('x')\n"
        "with tempfile.TemporaryDirectory() as d: open(d + '/f', 'w').write('x')\n"
        "with multiprocessing.get_context('fork').Pool(1) as p: assert p.map(abs, [-1]) == [1]\n"
        "assert subprocess.run([sys.executable, '-c', 'print(6 * 7)'], capture_output=True).stdout == b'42\\n'\n"
        "server = socket.create_server(('localhost', 0))  # a network of its own, with this one machine in it\n"
        "socket.create_connection(server.getsockname()).close()\n"
        "os.getcwd(), os.environ['HOME'], getpass.getuser()"
    )
    assert result.output == f"({str(box.cwd)!r}, '/tmp', 'cells')"
    assert (box.cwd / "kept.txt").read_text() == "x"


def test_values_of_any_size_cross_also_after_a_restart() -> None:
    with PythonREPL(timeout=60, launcher="sandbox", files={"a.txt": "abc"}) as repl:
        repl.set("context", "x" * 3_000_000, reserved=True)
        assert repl.run("len(context), open('a.txt').read()").output == "(3000000, 'abc')"
        assert repl.run("import os; os._exit(3)").error == "died"
        assert repl.run("len(context), open('a.txt', 'a').write('d')").output == "(3000000, 1)"
        assert repl.run("while True: pass", timeout=0.3).error == "timeout"
        assert repl.run("while True:\n try:\n  while True: pass\n except BaseException: pass", timeout=0.3).error


def test_a_given_folder_is_shared_and_more_can_be_read(tmp_path: Path) -> None:
    work, data = tmp_path / "work", tmp_path / "data"
    for folder in (work, data):
        folder.mkdir()
        folder.chmod(0o777)
    (data / "d.txt").write_text("data")
    with PythonREPL(timeout=60, launcher=Sandbox(read=(data,)), cwd=work) as repl:
        assert repl.run(f"open('new.txt', 'w').write(open({str(data / 'd.txt')!r}).read())").output == "4"
        assert repl.run(f"open({str(data / 'e.txt')!r}, 'w')").error == "runtime"
        assert repl.run(f"__import__('os').listdir({str(tmp_path)!r})").output in (
            "['data', 'work']",
            "['work', 'data']",
        )
    assert (work / "new.txt").read_text() == "data"


@as_root
def test_a_folder_of_roots_is_refused_and_auto_finds_another_way(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    with PythonREPL(launcher="sandbox", cwd=tmp_path) as repl, pytest.raises(RootFolder, match="chown"):
        repl.start()
    with PythonREPL(launcher="auto", cwd=tmp_path, timeout=60) as repl:
        assert repl.isolation == "auto"
        assert repl.run("open('x', 'w').write('y')").output == "1"
        assert repl.isolation in ("hardened", "plain")


@pytest.mark.parametrize("folder", ["/", "/usr"])
def test_the_whole_machine_is_no_working_folder(folder: str) -> None:
    with PythonREPL(launcher="sandbox", cwd=folder) as repl, pytest.raises(ReplError, match="holds the system"):
        repl.start()


def test_without_bubblewrap_the_message_says_what_to_do() -> None:
    missing = Sandbox(program="no-such-bwrap")
    assert "apt-get install bubblewrap" in missing.problem(sys.executable)
    with PythonREPL(launcher=missing) as repl, pytest.raises(ReplError, match="apt-get install bubblewrap"):
        repl.start()


def test_limits_hold_for_processes_too() -> None:
    with PythonREPL(timeout=60, launcher="sandbox", limits=Limits(processes=5, memory=256 << 20)) as repl:
        result = repl.run(
            "import os, time\nmade = 0\ntry:\n    for _ in range(40):\n"
            "        if os.fork() == 0:\n            time.sleep(60); os._exit(0)\n        made += 1\n"
            "except OSError as e:\n    print(type(e).__name__)\nprint(made)"
        )
        assert result.output == "BlockingIOError\n5\n"
        assert "MemoryError" in repl.run("x = bytearray(300 << 20)").output


HOST = """
import sys
from rlm_loop.repl import PythonREPL
repl = PythonREPL(timeout=600, launcher="sandbox")
repl.set("big", "x" * 2_000_000)
repl.start()
print(repl.cwd.parent, flush=True)
repl.run("import os, subprocess\\nsubprocess.Popen(['setsid', 'sleep', '600'])\\nwhile True: pass  # MARK")
"""


def _running(mark: str) -> list[str]:
    lines: list[str] = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            lines.append(path.read_text(errors="replace"))
    return [line for line in lines if mark in line]


def test_nothing_outlives_a_host_that_is_killed() -> None:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen([sys.executable, "-c", HOST], stdout=subprocess.PIPE, text=True, env=env) as host:
        assert host.stdout is not None
        folder = host.stdout.readline().strip()
        time.sleep(0.2)
        assert _running(folder)
        host.send_signal(signal.SIGKILL)
        host.wait()
    end = time.monotonic() + 30
    while (_running(folder) or Path(folder).exists()) and time.monotonic() < end:
        time.sleep(0.02)
    assert _running(folder) == []
    assert not Path(folder).exists()


def test_close_leaves_nothing() -> None:
    repl = PythonREPL(timeout=60, launcher="sandbox")
    repl.run("import subprocess; subprocess.Popen(['setsid', 'sleep', '600'])")
    folder = repl.cwd.parent
    repl.close()
    assert _running(str(folder)) == []
    assert not folder.exists()


SYSTEM_PYTHON = "/usr/bin/python3"
AS_NOBODY = """
import os, sys
from rlm_loop.repl import PythonREPL
from rlm_loop.repl import Sandbox
if problem := Sandbox().problem(sys.executable):
    print("SKIP", problem)
    sys.exit()
with PythonREPL(timeout=60, launcher="sandbox") as repl:
    print(repl.get("[__import__('os').getuid(), 'CapEff:\\t0000000000000000' in open('/proc/self/status').read()]"))
    print(repl.run("open('x', 'w').write('ab')").output, (repl.cwd / "x").read_text())
    print(repl.run("open('../y', 'w')").error, repl.run("open('/etc/hostname')").error)
"""


@as_root
def test_it_works_for_an_ordinary_user() -> None:
    package = str(Path(__file__).parents[2])
    if not may_read([package]) or not shutil.which(SYSTEM_PYTHON):
        pytest.skip("the repository, or a Python, has to be in a folder that any user may read")
    new_enough = (
        subprocess.run([SYSTEM_PYTHON, "-c", "import sys; sys.exit(sys.version_info < (3, 11))"]).returncode == 0
    )
    if not new_enough:
        pytest.skip(f"{SYSTEM_PYTHON} is older than Python 3.11")
    done = subprocess.run(
        [SYSTEM_PYTHON, "-c", AS_NOBODY],
        user=65534,
        group=65534,
        extra_groups=[],
        env={"PYTHONPATH": package, "PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1"},
        cwd="/",
        capture_output=True,
        text=True,
    )
    if done.stdout.startswith("SKIP"):
        pytest.skip(f"no user namespaces for ordinary users: {done.stdout}")
    assert done.stdout == "[65534, True]\n2 ab\nruntime runtime\n", done.stderr

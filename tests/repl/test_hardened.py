"""Cells under landlock and seccomp: what they close, and what still works."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import escapes
import pytest
from processes import removed

from rlm_loop.repl import Hardened, Limits, PythonREPL, Sandbox
from rlm_loop.repl.host.launch import isolated_environment
from rlm_loop.repl.isolation.harden import landlock_abi
from rlm_loop.repl.isolation.launchers import Strongest

PROBLEM = Hardened().problem(sys.executable)
needs_landlock = pytest.mark.skipif(bool(PROBLEM), reason=f"no landlock: {PROBLEM}")


@pytest.fixture(scope="module")
def box() -> Iterator[PythonREPL]:
    if PROBLEM:
        pytest.skip(f"no landlock: {PROBLEM}")
    with PythonREPL(timeout=60, launcher="hardened") as repl:
        repl.start()
        yield repl


def test_the_session_says_what_it_is(box: PythonREPL) -> None:
    assert box.isolation == "hardened"


def test_no_network(box: PythonREPL, tmp_path: Path) -> None:
    assert escapes.reached_by_sockets(box, tmp_path) == []


def test_no_write_outside_the_working_folder(box: PythonREPL, tmp_path: Path) -> None:
    assert escapes.written_outside(box, tmp_path) == []


def test_no_file_of_the_hosts_is_read(box: PythonREPL, tmp_path: Path) -> None:
    assert escapes.read_outside(box, tmp_path) == []


@pytest.mark.slow
def test_no_answer_of_our_tasks_is_read(box: PythonREPL) -> None:
    assert escapes.answers_read(box) == []


def test_no_environment_variable_outside_the_allow_list(box: PythonREPL) -> None:
    assert escapes.environment_seen(box) <= {*isolated_environment("/tmp"), "PWD", "RLM_LOOP_HOME"}


def test_no_host_process_is_visible(box: PythonREPL) -> None:
    with escapes.bystander() as process:
        assert escapes.command_lines_seen(box, process) == ""


@pytest.mark.skipif(landlock_abi() < 6, reason="signals are closed from Linux 6.12 (landlock ABI 6)")
def test_no_signal_reaches_a_host_process(box: PythonREPL) -> None:
    with escapes.bystander() as process:
        assert not escapes.was_ended(box, process)


def test_nothing_is_reached_past_landlock(box: PythonREPL, tmp_path: Path) -> None:
    assert escapes.reached(box, tmp_path) == []


def test_no_privilege_is_left(box: PythonREPL) -> None:
    box.run(escapes.PRIVILEGED)
    failed = box.get("failed")
    assert failed == dict.fromkeys(["unshare", "mount", "ptrace", "keyctl", "setuid"], True)


def test_cells_do_not_run_as_root_where_that_is_possible(box: PythonREPL, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    options = json.dumps({"path": [str(tmp_path / "work")], "home": str(tmp_path)})
    note = Hardened()(sys.executable, options).note
    if "run as root" in note:
        pytest.skip(note)
    assert 0 not in box.get("__import__('os').getresuid()")


def test_root_without_its_capabilities_where_the_folder_is_roots(tmp_path: Path) -> None:
    if os.geteuid() != 0 or PROBLEM:
        pytest.skip("for root only, and with landlock")
    tmp_path.chmod(0o755)
    with PythonREPL(timeout=60, launcher="hardened", cwd=tmp_path) as repl:
        assert repl.run("open('x', 'w').write('y')").output == "1"
        assert repl.get("__import__('os').getuid()") == 0
        assert escapes.written_outside(repl, tmp_path.parent) == []
        outside = tmp_path.parent / "outside"
        outside.mkdir()
        assert escapes.reached(repl, outside) == [], "a file's owner may do what landlock does not know of"
        repl.run("try:\n    open('/proc/sys/vm/swappiness', 'w')\nexcept OSError as e:\n    print(type(e).__name__)")
        assert repl.last is not None
        assert repl.last.output == "PermissionError\n"


def test_ordinary_work_goes_on_inside(box: PythonREPL) -> None:
    result = box.run(
        "import asyncio, os, sqlite3, ssl, subprocess, sys, tempfile, threading\n"
        "with tempfile.TemporaryDirectory() as d: open(d + '/f', 'w').write('x')\n"
        "os.makedirs('a/b'); open('x.txt', 'w').write('x'); os.rename('x.txt', 'y.txt')\n"
        "assert subprocess.run([sys.executable, '-c', 'print(6 * 7)'], capture_output=True).stdout == b'42\\n'\n"
        "assert sqlite3.connect('d.sqlite').execute('select 1').fetchall() == [(1,)]\n"
        "t = threading.Thread(target=print, args=('in a thread',)); t.start(); t.join()\n"
        "asyncio.run(asyncio.sleep(0, 'done'))"
    )
    assert result.error is None, result
    assert result.output == "in a thread\n"


@needs_landlock
def test_values_of_any_size_cross_also_after_a_restart() -> None:
    with PythonREPL(timeout=60, launcher="hardened", files={"a.txt": "abc"}) as repl:
        repl.set("context", "x" * 3_000_000, reserved=True)
        assert repl.run("len(context), open('a.txt').read()").output == "(3000000, 'abc')"
        assert repl.run("import os; os._exit(3)").error == "died"
        assert repl.run("len(context), open('a.txt', 'a').write('d')").output == "(3000000, 1)"
        assert repl.run("while True: pass", timeout=0.3).error == "timeout"


@needs_landlock
def test_stray_children_are_found_and_ended() -> None:
    """The supervisor finds them through its own folder in /proc, the only one that it may read."""
    with PythonREPL(timeout=60, launcher="hardened") as repl:
        pid = repl.get("__import__('subprocess').Popen(['setsid', 'sleep', '600']).pid")
        assert repl.run("import os; os._exit(3)").error == "died"
        repl.run("1")
        end = time.monotonic() + 30
        while Path(f"/proc/{pid}").exists() and time.monotonic() < end:
            time.sleep(0.02)
        assert not Path(f"/proc/{pid}").exists()


@needs_landlock
def test_a_cell_cannot_make_the_host_end_another_process() -> None:
    """The host is told the REPL's number by the worker, which a cell can imitate."""
    with escapes.bystander() as process:
        repl = PythonREPL(timeout=60, launcher="hardened", grace=0.2)
        repl.run(
            "import json, os\n"
            f"frame = json.dumps({{'t': 'hello', 'pid': {process.pid}}}).encode() + b'\\n'\n"
            "for fd in range(3, 64):\n    try:\n        os.write(fd, frame)\n    except OSError:\n        pass\n",
            timeout=2,
        )
        stubborn = "while True:\n    try: sum(range(10 ** 15))\n    except BaseException: pass"
        assert repl.run(stubborn, timeout=0.2).error == "timeout"
        repl.close()
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.5)


@needs_landlock
def test_processes_are_limited() -> None:
    with PythonREPL(timeout=60, launcher="hardened", limits=Limits(processes=5)) as repl:
        if repl.get("__import__('os').getuid()") == 0:
            pytest.skip("the kernel exempts root")
        result = repl.run(
            "import os, time\nmade = 0\ntry:\n    for _ in range(400):\n"
            "        if os.fork() == 0:\n            time.sleep(60); os._exit(0)\n        made += 1\n"
            "except OSError as e:\n    print(type(e).__name__)\nprint(made <= 6)"
        )
        assert result.output == "BlockingIOError\nTrue\n"


HOST = """
from rlm_loop.repl import PythonREPL
repl = PythonREPL(timeout=600, launcher="hardened")
repl.set("big", "x" * 2_000_000)
print(*repl.get("[__import__('os').getpid(), __import__('os').getppid()]"), repl.cwd.parent, flush=True)
repl.run("while True: pass")
"""


@needs_landlock
def test_nothing_outlives_a_host_that_is_killed() -> None:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen([sys.executable, "-c", HOST], stdout=subprocess.PIPE, text=True, env=env) as host:
        assert host.stdout is not None
        *pids, folder = host.stdout.readline().split()
        host.send_signal(signal.SIGKILL)
        host.wait()
    end = time.monotonic() + 30
    while any(Path(f"/proc/{p}").exists() for p in pids) and time.monotonic() < end:
        time.sleep(0.02)
    assert not any(Path(f"/proc/{p}").exists() for p in pids)
    assert removed(Path(folder))


def test_the_attempts_succeed_without_isolation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the tests here and of the sandbox say is worth something only because of this one."""
    monkeypatch.setenv("RLM_LOOP_TEST_SECRET", "hunter2")
    with PythonREPL(timeout=60, launcher="plain") as repl, escapes.bystander() as process:
        assert repl.isolation == "plain"
        assert escapes.reached_by_sockets(repl, tmp_path) == ["tcp", "udp", "abstract", "path", "path, datagrams"]
        assert str(tmp_path) in escapes.written_outside(repl, tmp_path)
        assert str(tmp_path / "secret.txt") in escapes.read_outside(repl, tmp_path)
        assert len(escapes.answers_read(repl)) >= 3
        assert str(process.args[-1]) in escapes.command_lines_seen(repl, process)
        assert escapes.was_ended(repl, process)
        assert "RLM_LOOP_TEST_SECRET" not in repl.get("list(__import__('os').environ)")


@pytest.mark.parametrize("name", ["container", "bubblewrap", ""])
def test_an_unknown_name_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="launcher"):
        PythonREPL(launcher=name)


def test_auto_takes_the_strongest_that_works_and_warns_where_none_does(tmp_path: Path) -> None:
    options = json.dumps({"path": [str(tmp_path / "work")], "home": str(tmp_path)})
    (tmp_path / "work").mkdir()
    missing = Sandbox(program="no-such-bwrap")
    if not PROBLEM:
        assert Strongest((missing, Hardened()))(sys.executable, options).kind == "hardened"
    with pytest.warns(RuntimeWarning, match="rlm-loop doctor"):
        assert Strongest((missing,))(sys.executable, options).kind == "plain"

"""No process outlives what it belongs to; Ctrl-C stops the cell and keeps the session.

Sessions of which the processes can be seen and numbered from here; see test_isolated.py for the others.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import tempfile
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from processes import gone, host, left_nothing, press, told, until
from session_kinds import SEEN, linux, main_thread, need, needs_bwrap, seen, session
from suite.world import marked

from rlm_loop import ScriptedModel, ToolLoopAgent
from rlm_loop.repl import Launch, PythonREPL, ReplError
from rlm_loop.repl.host.launch import WORKER, worker_environment
from rlm_loop.report import start_live

CHILDREN = (
    "import os, subprocess\n"
    "plain = subprocess.Popen(['sleep', '600'])\n"
    "daemon = subprocess.Popen(['sleep', '600'], start_new_session=True)\n"
    "away = int(subprocess.check_output('setsid sleep 600 >/dev/null 2>&1 & echo $!', shell=True, text=True))\n"
)
PIDS = "[os.getpid(), os.getppid(), plain.pid, daemon.pid, away]"


@linux
@pytest.mark.parametrize("kind", SEEN)
def test_close_ends_every_process_and_removes_the_folder(kind: str) -> None:
    repl = seen(kind)
    repl.run(CHILDREN)
    pids, folder = repl.get(PIDS), repl.cwd
    repl.close()
    repl.close()
    assert all(gone(p) for p in pids)
    assert not folder.parent.exists()


@pytest.mark.parametrize("kind", ["plain", pytest.param("kernel", marks=pytest.mark.slow)])
def test_a_session_that_is_dropped_is_cleared_away(kind: str) -> None:
    before = {*threading.enumerate()}
    descriptors = len(os.listdir("/dev/fd"))
    repl = seen(kind)
    pid, folder = repl.get("__import__('os').getpid()"), repl.cwd
    del repl
    gc.collect()
    assert gone(pid)
    assert not folder.exists()
    assert until(lambda: not [t for t in {*threading.enumerate()} - before if not t.name.startswith("pymp")])
    gc.collect()
    assert len(os.listdir("/dev/fd")) <= descriptors + 1


@linux
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # a stop may strike in a finalizer
def test_runs_that_are_stopped_at_any_moment_leave_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    cell = "```python\nfinal_answer = 1\n```"
    before = len(os.listdir("/proc/self/fd"))
    for number in range(60):
        agent = ToolLoopAgent(model=ScriptedModel([cell]), repl=lambda: PythonREPL(launcher="plain"))
        run = start_live(agent, "?", show=False)
        time.sleep(number * 0.0008)
        run.stop()
        with contextlib.suppress(TimeoutError):
            run.result(60)
    assert until(lambda: not any(tmp_path.iterdir()))
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) <= before


HOST = """
    import os, sys, threading, time
    from rlm_loop.repl import open_repl
    repl = open_repl({kind!r}, timeout=600)
    repl.run("import subprocess; child = subprocess.Popen(['sleep', '600'], start_new_session=True)")
    print(repl.cwd.parent, flush=True)
    {busy}
"""
STARTING = """
    from rlm_loop.repl import Launch, PythonREPL
    from rlm_loop.repl.isolation.launchers import LAUNCHERS
    def slow(python, options):
        launch = LAUNCHERS[{kind!r}](python, options)
        print(repl.cwd.parent, flush=True)
        return Launch(("/bin/sh", "-c", 'sleep 0.3; exec "$@"', "sh", *launch.argv), launch.env)
    repl = PythonREPL(launcher=slow)
    repl.run("while True: pass")
"""
BUSY = {
    "python loop": "repl.run('while True: pass')",
    "loop in C": "repl.run('sum(range(10 ** 15))')",
    "stubborn": "repl.run('import signal\\nsignal.signal(2, signal.SIG_IGN)\\nwhile True:\\n try:\\n  while True: pass'"
    "'\\n except BaseException: pass')",
    "idle": "sys.stdin.read()",
    "in a thread": "threading.Thread(target=repl.run, args=('while True: pass',)).start(); sys.stdin.read()",
    "pipe held open": "print(os.fork() or (time.sleep(600), os._exit(0)), flush=True); repl.run('while True: pass')",
}
KILL = signal.SIGKILL
ENDS = [
    *(("plain", state, KILL) for state in (*BUSY, "starting")),
    *(("plain", "python loop", number) for number in (signal.SIGTERM, signal.SIGINT)),
    ("kernel", "python loop", KILL),
    *(("hardened", state, KILL) for state in ("loop in C", "idle", "starting")),
    *(pytest.param("sandbox", state, KILL, marks=needs_bwrap) for state in ("loop in C", "idle", "starting")),
]


@linux
@pytest.mark.parametrize(("kind", "state", "number"), ENDS)
def test_nothing_outlives_a_host_that_is_ended(kind: str, state: str, number: int) -> None:
    need(kind)
    code = STARTING if state == "starting" else HOST
    with host(textwrap.dedent(code).format(kind=kind, busy=BUSY.get(state))) as process:
        folder = Path(told(process))
        copy = int(told(process)) if state == "pipe held open" else 0  # of the host, which holds its ends of all pipes
        try:
            time.sleep(0.1)
            assert marked(folder.name)
            process.send_signal(number)
            process.wait(timeout=60)
            assert left_nothing(folder)
            assert not copy or not gone(copy, 0.01)
        finally:
            if copy:
                os.kill(copy, KILL)


@linux
def test_a_cell_that_kills_its_parent_ends_no_host(bare: PythonREPL) -> None:
    bare.run("import os; own = os.getpid(); os.kill(os.getppid(), 9)")
    pid = bare.get("own")
    assert bare.run("2").output == "2"
    bare.close()
    assert gone(pid)


@linux
def test_a_cell_that_cuts_its_life_line_is_killed_all_the_same() -> None:
    with PythonREPL(launcher="plain", grace=0.2) as repl:
        cut = "import fcntl, os\nfor n in range(3, 20):\n    try: fcntl.fcntl(n, fcntl.F_SETFL, 0)\n"
        repl.run(f"{cut}    except OSError: pass")
        pid = repl.get("os.getpid()")
        assert repl.run(IN_C, timeout=0.2).error == "timeout"
        assert gone(pid)


IN_C = "while True:\n    try: sum(range(10 ** 15))\n    except BaseException: pass"
ELSEWHERE = f"import runpy, sys; sys.platform = 'darwin'; runpy.run_path({str(WORKER)!r}, run_name='__main__')"


def test_a_session_without_the_calls_of_linux_works_the_same() -> None:
    def elsewhere(python: str, options: Any) -> Launch:
        return Launch((python, "-c", ELSEWHERE, json.dumps(options)), worker_environment())

    with PythonREPL(launcher=elsewhere, grace=60, rebuild=False) as repl:
        assert "all variables are kept" in repl.run("while True: pass", timeout=0.2).message
    with PythonREPL(launcher=elsewhere, grace=0.3, rebuild=False) as repl:
        assert repl.run("x = 1\nx").output == "1"
        assert repl.run(IN_C, timeout=0.2).lost == ("x",)
        repl.run("import os, subprocess\nchild = subprocess.Popen(['sleep', '600'])")
        pids = repl.get("[os.getpid(), child.pid]")
    assert all(gone(p) for p in pids)


STRUCK = {
    "subprocess": ("while True: pass", "import time; time.sleep(60)", "wait()"),
    "kernel": ("wait()",),
    "notebook": ("while True: pass", "import asyncio\nawait asyncio.sleep(60)", "wait()"),
}


@main_thread
@pytest.mark.parametrize(("kind", "code"), [(kind, code) for kind, codes in STRUCK.items() for code in codes])
def test_ctrl_c_stops_the_cell_and_keeps_the_session(kind: str, code: str, tmp_path: Path) -> None:
    release = threading.Event()
    with session(kind, tmp_path, grace=60) as repl:
        repl.add_tools({"wait": lambda: release.wait(60), "press": press})
        repl.run("x = 1")
        with pytest.raises(KeyboardInterrupt):
            repl.run("print('partial')\npress()\n" + code)
        release.set()
        assert (repl.last.error, repl.last.output[:8]) == ("interrupted", "partial\n")
        assert repl.run("x").output == "1"
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_kills_what_does_not_stop() -> None:
    with PythonREPL(launcher="plain", grace=0.3, rebuild=False) as repl:
        repl.add_tools({"press": press})
        repl.run("x = 1")
        with pytest.raises(KeyboardInterrupt):
            repl.run("press()\n" + IN_C)
        assert repl.last.error == "interrupted"
        assert repl.last.lost == ("x",) or "kept" in repl.last.message  # then it struck in the call of the tool
        assert repl.run("2").output == "2"


@pytest.mark.slow
def test_many_ctrl_c_leave_a_usable_session() -> None:
    with PythonREPL(timeout=60, grace=60) as repl:
        calls, strike = 0, 0

        def echo(value: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == strike:
                press()
            return value

        repl.add_tools({"echo": echo})
        repl.run("n = 0\nbig = 'b' * 300_000")
        for i in range(12):
            calls, strike = 0, 1 + 2 * i
            with contextlib.suppress(KeyboardInterrupt):
                repl.run("for _ in range(10 ** 6):\n    n += 1; echo(big)")
        last = repl.run("echo(len(big))")
        assert (last.output[-6:], last.lost) == ("300000", ())


def test_sessions_in_threads_do_not_mix() -> None:
    def work(n: int) -> list[str]:
        with PythonREPL(launcher="plain") as repl:
            repl.add_tools({"me": lambda: n})
            repl.run(f"x = {n}")
            return [repl.run("print(x, me())").output for _ in range(20)]

    with ThreadPoolExecutor(6) as pool:
        assert [*pool.map(work, range(6))] == [[f"{n} {n}\n"] * 20 for n in range(6)]


def test_one_session_serves_threads_in_turn_and_outlives_the_one_that_started_it(bare: PythonREPL) -> None:
    """A signal at the death of the parent would come at the end of the thread that started the process."""
    with ThreadPoolExecutor(8) as pool:
        pool.submit(bare.run, "n = 0").result()
        list(pool.map(bare.run, ["k = n; import time; time.sleep(0.01); n = k + 1"] * 8))
    time.sleep(0.2)
    assert bare.run("n").output == "8"


def test_close_from_another_thread_ends_a_running_cell() -> None:
    repl = PythonREPL(launcher="plain")
    repl.run("1")
    repl.add_tools({"end": lambda: threading.Thread(target=repl.close).start()})
    assert repl.run("end()\nwhile True: pass").error == "died"
    with pytest.raises(ReplError, match="closed"):
        repl.run("1")


def test_the_host_may_fork() -> None:
    code = """
        import os, sys
        from rlm_loop.repl import PythonREPL, ReplError
        from rlm_loop.workspace import Workspace
        repl = PythonREPL(launcher="plain")
        repl.run("x = 1")
        space = Workspace({"a.txt": "1"})
        if os.fork() == 0:
            try:
                repl.run("x = 2")  # would be the parent's x
            except ReplError as error:
                print(error, flush=True)
            sys.exit(0)  # runs the copy's clean-up, which must leave the session and the workspace alone
        os.wait()
        print(repl.run("x").output, repl.cwd.exists(), space.read_file("a.txt"))
    """
    with host(code) as process:
        first, *lines = process.communicate(timeout=60)[0].splitlines()
    assert first.startswith("this REPL belongs to the process")
    assert lines == ["1 True 1: 1"]

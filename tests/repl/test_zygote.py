"""Forked REPLs are as good as started ones, end with what they belong to, and share nothing but memory."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path

import escapes
import pytest
from test_lifetime import CHILDREN, PIDS, gone

from rlm_loop.repl import PythonREPL, ReplError
from rlm_loop.repl.host.launch import WORKER, Launch, worker_environment
from rlm_loop.repl.host.zygote import Zygote
from rlm_loop.repl.isolation.hardened import Hardened

LIKE = "plain" if Hardened().problem(sys.executable) else "hardened"
"""What forked sessions are by default, as far as that goes here."""


@pytest.fixture(scope="module", params=[0, 2], ids=["forked on request", "forked ahead"])
def zygote(request: pytest.FixtureRequest) -> Iterator[Zygote]:
    with Zygote(preload=["json.tool"], pool=request.param) as zygote:
        yield zygote


def test_forked_sessions_have_everything_of_their_own(
    zygote: Zygote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.setenv("SOME_TOKEN", "secret")
    with zygote.repl(files={"a.txt": "1"}) as one, zygote.repl(cwd=tmp_path) as two:
        assert one.get("'json.tool' in __import__('sys').modules") is True
        one.run("import os, random\nx = 1\nos.environ['MINE'] = 'one'")
        two.run("import os, random\nx = 2")
        assert one.run("print(x, open('a.txt').read())").output == "1 1\n"
        assert two.get("x") == 2
        assert two.get("os.environ.get('MINE')") is None
        assert two.get("os.getcwd()") == str(tmp_path)
        assert one.get("os.getcwd()") == str(one.cwd) == one.get("os.environ.get('PWD', os.getcwd())")
        assert one.get("os.environ.get('OMP_NUM_THREADS')") == "3"
        assert one.get("os.environ.get('SOME_TOKEN')") is None
        assert one.get("random.random()") != two.get("random.random()")
        assert one.get("os.getpgrp()") != two.get("os.getpgrp()")
        assert one.get("os.getsid(0)") != two.get("os.getsid(0)")


def test_numpy_draws_other_numbers_in_each() -> None:
    pytest.importorskip("numpy", reason="pip install numpy")
    draw = "float(__import__('numpy').random.random())"
    with Zygote(preload=["numpy"]) as zygote:
        seen: list[float] = []
        for _ in range(2):
            with zygote.repl() as repl:
                seen.append(repl.get(draw))
                repl.run("import os; os._exit(1)")
                seen.append(repl.get(draw))
        assert len(set(seen)) == 4


def test_sets_are_ordered_as_in_a_started_one(zygote: Zygote) -> None:
    words = "str({'alpha', 'beta', 'gamma', 'delta'})"
    with zygote.repl() as forked, PythonREPL(launcher=LIKE) as started:
        assert forked.get(words) == started.get(words)


ODDITIES = "import os\nprint(os.listdir('/proc/self/fd'), __name__, len(__import__('sys').argv), sorted(globals()))"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into Linux's /proc")
def test_a_forked_one_cannot_be_told_from_a_started_one(zygote: Zygote) -> None:
    with zygote.repl() as other, zygote.repl() as forked, PythonREPL(launcher=LIKE) as started:
        other.run("1")  # its pipes are nobody else's
        seen = [repl.run(ODDITIES).output.replace(" ", "") for repl in (forked, started)]
        count = [len(text.split("]")[0].split(",")) for text in seen]
        assert count[0] <= count[1] + 1  # the folder that is being read may or may not count
        assert [text.split("]")[1:] for text in seen] == [seen[0].split("]")[1:]] * 2
        assert forked.get("__import__('sys').path[:-1]") == started.get("__import__('sys').path[:-1]")


@pytest.mark.skipif(LIKE == "plain", reason="no landlock here")
def test_each_is_confined_by_itself(zygote: Zygote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folders are root's where the host is, so that it is not for another user that they are closed."""
    monkeypatch.setenv("RLM_LOOP_TEST_SECRET", "hunter2")
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir(mode=0o755)
    tmp_path.chmod(0o755)
    with zygote.repl(cwd=folders[0]) as one, zygote.repl(cwd=folders[1]) as two:
        two.run("open('theirs', 'w').write('2')")
        for act in ("open(%r)", "open(%r, 'w')", "__import__('os').remove(%r)"):
            assert "PermissionError" in one.run(act % str(folders[1] / "theirs")).message
        assert one.run("open('mine', 'w').write('x'), open('mine').read()").output == "(1, 'x')"
        assert escapes.reached_by_sockets(one, tmp_path) == []
        assert escapes.written_outside(one, tmp_path) == []
        assert escapes.read_outside(one, tmp_path) == []
        with escapes.bystander() as process:
            assert escapes.command_lines_seen(one, process) == ""
        assert "RLM_LOOP_TEST_SECRET" not in escapes.environment_seen(one)
        one.run(escapes.PRIVILEGED)
        assert one.get("failed.pop('setuid', None), all(failed.values())")[1]  # as root it is root already
        assert one.isolation == two.isolation == LIKE


def test_a_process_with_a_launcher_of_its_own_says_what_its_sessions_are() -> None:
    def elsewhere(python: str, options: str) -> Launch:
        return Launch(("/usr/bin/env", python, "-u", str(WORKER), options), worker_environment())

    with Zygote(launcher=elsewhere) as zygote, zygote.repl() as repl:
        assert repl.run("6 * 7").output == "42"
        assert repl.isolation == "custom"


STUCK = "while True:\n    try: sum(range(10 ** 15))\n    except BaseException: pass"


def test_interrupts_kills_and_rebuilding_work(zygote: Zygote) -> None:
    with zygote.repl(grace=60) as repl:
        assert "all variables are kept" in repl.run("while True: pass", timeout=0.3).message
    with zygote.repl(grace=0.4, files={"a.txt": "1"}) as repl:
        repl.run("x = 1")
        assert "had to be killed" in repl.run(STUCK, timeout=0.3).message
        assert repl.run("x").output == "1"
        result = repl.run("import os, time; os.kill(os.getppid(), 9); time.sleep(60)")
        assert "its supervisor was killed" in result.message
        assert repl.run("x").output == "1"
        with repl.at(1) as earlier:
            assert earlier.get("(x, open('a.txt').read())") == (1, "1")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="daemons are found through Linux calls")
@pytest.mark.parametrize("end", ["close", "supervisor", "zygote", "zygote closed"])
def test_nothing_is_left(end: str) -> None:
    with Zygote(pool=1) as zygote:
        repl = zygote.repl()
        repl.run("x = 1\n" + CHILDREN)
        pids, folder = repl.get(PIDS), repl.cwd
        assert zygote.pid is not None
        if end == "close":
            repl.close()
        elif end == "supervisor":
            os.kill(pids[1], signal.SIGKILL)
        elif end == "zygote":
            os.kill(zygote.pid, signal.SIGKILL)
        else:
            zygote.close()
        assert all(gone(p) for p in pids[: 2 if end == "zygote" else None])  # nobody is left to find its daemons
        for pid in pids:
            if end == "zygote" and not gone(pid, 0.01):
                os.kill(pid, signal.SIGKILL)
        if end != "close":
            assert folder.exists()  # the session lives on, and gets a new REPL from a new zygote
            assert repl.run("1 + x").output.endswith("2")
            repl.close()
        assert not folder.exists()


HOST = """
    import os, sys, time
    from rlm_loop.repl.host.zygote import Zygote
    zygote = Zygote(pool=1)
    repl = zygote.repl(timeout=600)
    print(zygote.pid or 0, *repl.get("[__import__('os').getpid(), __import__('os').getppid()]"), zygote.pid,
          repl.cwd.parent, flush=True)
    {busy}
"""
BUSY = {
    "loop": "repl.run('while True: pass')",
    "in C": "repl.run('sum(range(10 ** 15))')",
    "socket held open": "copy = os.fork() or (time.sleep(600), os._exit(0)); print(copy, flush=True); "
    "repl.run('while True: pass')",
}


@pytest.mark.parametrize("name", BUSY)
def test_no_zygote_outlives_a_host_that_is_killed(name: str) -> None:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    code = textwrap.dedent(HOST).format(busy=BUSY[name])
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=env) as host:
        assert host.stdout is not None
        _, *pids, folder = host.stdout.readline().split()
        copy = int(host.stdout.readline()) if "copy" in BUSY[name] else 0
        host.kill()
        host.wait(timeout=60)
        try:
            assert all(gone(int(p)) for p in pids)
            assert not Path(folder).exists()
            assert not copy or not gone(copy, 0.01)  # it held the host's end of all sockets and pipes open till now
        finally:
            if copy:
                os.kill(copy, signal.SIGKILL)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere a zygote cannot list its children")
def test_a_zygote_waits_for_the_clearing_up_after_a_host_that_is_gone() -> None:
    """On a busy machine that takes long, and who is killed in the middle leaves the session's folder behind."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    code = textwrap.dedent(HOST).format(busy="sys.stdin.read()")
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", code], stdin=pipe, stdout=pipe, text=True, env=env) as host:
        assert host.stdout is not None
        _, repl, supervisor, zygote, folder = host.stdout.readline().split()
        os.kill(int(supervisor), signal.SIGSTOP)  # as slow as can be
        host.kill()
        host.wait(timeout=60)
        assert not gone(int(zygote), 2.5)
        os.kill(int(supervisor), signal.SIGCONT)
        assert all(gone(int(p)) for p in (repl, supervisor, zygote))
        assert not Path(folder).exists()


def test_threads_share_one(zygote: Zygote) -> None:
    outputs: dict[int, str] = {}

    def work(n: int) -> None:
        with zygote.repl() as repl:
            repl.run(f"x = {n}")
            outputs[n] = repl.run("x").output

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outputs == {n: str(n) for n in range(6)}


def test_what_cannot_start_says_why(tmp_path: Path) -> None:
    with Zygote(preload=["no_such_module"]) as zygote, pytest.raises(ReplError, match="cannot preload no_such_module"):
        zygote.start()
    with Zygote(python="/does/not/exist") as zygote, pytest.raises(ReplError, match="cannot start the zygote"):
        zygote.start()
    with pytest.raises(ValueError, match="list of module names"):
        Zygote(preload="pandas")
    with pytest.raises(ValueError, match="leave out the zygote"):
        Zygote().repl(launcher="sandbox")
    with Zygote() as zygote, zygote.repl(cwd=tmp_path / "none") as repl, pytest.raises(ReplError, match="not exist"):
        repl.run("1")


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="memory is counted by Linux's /proc")
def test_memory_is_shared() -> None:
    with Zygote(preload=["unittest.mock", "email.message", "http.client"]) as zygote, zygote.repl() as repl:
        repl.run("x = 1")
        pid = repl.get("__import__('os').getpid()")
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
        sizes = {line.split(":")[0]: int(line.split()[1]) for line in text.splitlines()[1:]}
        assert sizes["Private_Dirty"] + sizes["Private_Clean"] < 4096  # kB


def test_launchers_go_by_name_as_in_sessions() -> None:
    with Zygote(launcher="plain") as zygote, zygote.repl(launcher="plain") as repl:
        assert repl.run("print(6 * 7)").output.strip() == "42"
    with pytest.raises(ValueError, match="no launcher is called 'plane'"):
        Zygote(launcher="plane")

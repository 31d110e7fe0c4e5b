"""Isolated cells: nothing gets out of them, and everything still works inside.

Under landlock and seccomp (`hardened`), bubblewrap (`sandbox`) and in a container; a kind that is not here is skipped.
"""

from __future__ import annotations

import itertools
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import escapes
import pytest
from processes import gone, host, left_nothing, told, until
from session_kinds import as_root, linux, podman
from suite.world import marked

from rlm_loop.repl import Container, ContextFile, EvaluationFailed, Hardened, Limits, PythonREPL, ReplError, Sandbox
from rlm_loop.repl.host.launch import isolated_environment
from rlm_loop.repl.isolation.harden import landlock_abi
from rlm_loop.repl.isolation.launchers import LAUNCHERS, warn_once
from rlm_loop.repl.isolation.ordinary_user import RootFolder
from rlm_loop.workspace.testing import run_tests

PROBLEMS = {"hardened": Hardened().problem(sys.executable), "sandbox": Sandbox().problem(sys.executable)}
OF_PROCESSES = pytest.mark.parametrize("kind", PROBLEMS)
ALL = pytest.mark.parametrize("kind", ["hardened", "sandbox", "container"])
Open = Callable[..., PythonREPL]


@pytest.fixture(scope="module")
def boxes(request: pytest.FixtureRequest) -> Iterator[Open]:
    """Open a session of a kind; without options it is one for all tests that ask so."""
    opened: dict[str, PythonREPL] = {}

    def box(kind: str, **options: Any) -> PythonREPL:
        if problem := PROBLEMS.get(kind):
            pytest.skip(f"`rlm-loop doctor` says how to get it: {problem}")
        launcher = Container(request.getfixturevalue("image")) if kind == "container" else kind
        if options or kind not in opened:
            made = PythonREPL(launcher=launcher, timeout=120, **options)
            return made if options else opened.setdefault(kind, made)
        return opened[kind]

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RLM_LOOP_TEST_SECRET", "hunter2")
        yield box
        for repl in opened.values():
            repl.close()


@ALL
def test_no_network_and_no_file_outside_the_working_folder(boxes: Open, kind: str, tmp_path: Path) -> None:
    assert escapes.reached_by_sockets(boxes(kind), tmp_path) == []
    assert escapes.written_outside(boxes(kind), tmp_path) == []
    assert kind == "container" or escapes.read_outside(boxes(kind), tmp_path) == []
    assert boxes(kind).isolation == kind


@pytest.mark.parametrize("kind", [pytest.param("hardened", marks=pytest.mark.slow), "sandbox"])
def test_no_answer_of_our_tasks_is_read(boxes: Open, kind: str) -> None:
    assert escapes.answers_read(boxes(kind)) == []


@ALL
def test_no_environment_variable_outside_the_allow_list(boxes: Open, kind: str) -> None:
    seen = escapes.environment_seen(boxes(kind))
    assert "RLM_LOOP_TEST_SECRET" not in seen
    allowed = {*isolated_environment("/tmp"), "PWD", "RLM_LOOP_HOME"}
    assert seen & {"PYTHONPATH", "USER", "LOGNAME"} == set() if kind == "container" else seen - allowed == set()
    assert kind == "hardened" or boxes(kind).get("__import__('os').environ['HOME']") == "/tmp"


@ALL
def test_no_host_process_is_visible_or_hit(boxes: Open, kind: str) -> None:
    with escapes.bystander() as process:
        lines = escapes.command_lines_seen(boxes(kind), process)
        assert str(process.args[-1]) not in lines
        assert kind == "container" or ("harden.py" in lines) == (kind == "sandbox")  # its own a sandbox sees
        if kind != "hardened" or landlock_abi() >= 6:  # it closes signals from Linux 6.12
            assert not escapes.was_ended(boxes(kind), process)


@ALL
def test_nothing_of_the_users_is_reached(boxes: Open, kind: str, tmp_path: Path) -> None:
    own = set[str]() if kind == "hardened" else escapes.OWN_IN_A_SANDBOX
    assert set(escapes.reached(boxes(kind), tmp_path)) <= own


@OF_PROCESSES
def test_no_privilege_is_left(boxes: Open, kind: str) -> None:
    boxes(kind).run(escapes.PRIVILEGED)
    assert boxes(kind).get("failed") == dict.fromkeys(["unshare", "mount", "ptrace", "keyctl", "setuid"], True)
    assert boxes(kind).run("open('/proc/sys/vm/swappiness', 'w')").error == "runtime"


@ALL
def test_cells_do_not_run_as_root_where_that_is_possible(boxes: Open, kind: str, tmp_path: Path) -> None:
    status = boxes(kind).get("open('/proc/self/status').read()")
    assert "CapEff:\t0000000000000000\n" in status or kind == "hardened"
    assert "NoNewPrivs:\t1\n" in status
    (tmp_path / "work").mkdir()
    options = {"path": [str(tmp_path / "work")], "home": str(tmp_path)}
    if kind == "hardened" and os.geteuid() == 0 and '"user": null' in "".join(Hardened()(sys.executable, options).argv):
        pytest.skip("cells run as root without its capabilities")
    assert 0 not in boxes(kind).get("__import__('os').getresuid()")


ORDINARY = """
import asyncio, os, sqlite3, ssl, subprocess, sys, tempfile, threading
with tempfile.TemporaryDirectory() as d: open(d + '/f', 'w').write('x')
os.makedirs('a/b'); open('x.txt', 'w').write('x'); os.rename('x.txt', 'kept.txt')
assert subprocess.run([sys.executable, '-c', 'print(6 * 7)'], capture_output=True).stdout == b'42\\n'
assert sqlite3.connect('d.sqlite').execute('select 1').fetchall() == [(1,)]
t = threading.Thread(target=print, args=('in a thread',)); t.start(); t.join()
asyncio.run(asyncio.sleep(0, 'done'))
"""
IN_A_SANDBOX = """
import getpass, multiprocessing, socket
def double(n): return 2 * n
with multiprocessing.get_context('fork').Pool(2) as p: assert p.map(double, [1, 2]) == [2, 4]
server = socket.create_server(('localhost', 0))  # a network of its own, with this one machine in it
socket.create_connection(server.getsockname()).close()
os.getcwd(), os.environ['HOME'], getpass.getuser()
"""


@OF_PROCESSES
def test_ordinary_work_goes_on_inside(boxes: Open, kind: str) -> None:
    box = boxes(kind)
    result = box.run(ORDINARY)
    assert (result.error, result.output) == (None, "in a thread\n"), result
    assert (box.cwd / "kept.txt").read_text() == "x"
    if kind == "sandbox":
        assert box.run(IN_A_SANDBOX).output == f"({str(box.cwd)!r}, '/tmp', 'cells')"


@ALL
def test_values_and_files_cross_also_late_and_after_a_restart(boxes: Open, kind: str, tmp_path: Path) -> None:
    notes, closed = tmp_path / "notes.txt", tmp_path / "closed.txt"
    notes.write_bytes(b"a\r\nb")
    closed.write_text("closed to others")
    closed.chmod(0o600)
    with boxes(kind, files={"a.txt": "abc"}) as repl:
        repl.set("context", "x" * 3_000_000, reserved=True)
        repl.set("notes", ContextFile(notes), reserved=True)
        repl.set("closed", ContextFile(closed))
        assert repl.run("len(context), open('a.txt').read()").output == "(3000000, 'abc')"
        assert repl.get("(notes, closed)") == ("a\r\nb", "closed to others")
        with pytest.raises(EvaluationFailed):
            repl.get(f"open({str(notes)!r}, 'w')")
        repl.set("late", ContextFile(closed), reserved=True)
        assert repl.get("late == closed") is True
        assert repl.run("import os; os._exit(3)").error == "died"
        assert repl.run("len(context), open('a.txt', 'a').write('d')").output == "(3000000, 1)"
        assert repl.get("(notes, late, closed == late)") == ("a\r\nb", "closed to others", True)
        assert repl.run(f"open({str(tmp_path / 'other')!r}, 'w')").error == "runtime"
        assert repl.run("while True: pass", timeout=0.3).error == "timeout"
        assert (repl.cwd / "a.txt").read_text() == "abcd"
        assert repl.run("while True:\n try:\n  while True: pass\n except BaseException: pass", timeout=0.3).error
    assert notes.read_bytes() == b"a\r\nb"


FORKS = (
    "import os, time\nmade = 0\ntry:\n    for _ in range(400):\n"
    "        if os.fork() == 0:\n            time.sleep(60); os._exit(0)\n        made += 1\n"
    "except OSError as e:\n    print(type(e).__name__)\nprint(made)"
)


@pytest.mark.parametrize(
    ("kind", "most", "made"), [("hardened", 5, range(7)), ("sandbox", 5, [5]), ("container", 20, range(31))]
)
def test_limits_hold_for_processes_too(boxes: Open, kind: str, most: int, made: Any) -> None:
    with boxes(kind, limits=Limits(processes=most, memory=256 << 20)) as repl:
        assert "MemoryError" in repl.run("bytearray(400 << 20)").output
        if repl.get("__import__('os').getuid()") == 0:
            pytest.skip("the kernel exempts root")
        error, count = repl.run(FORKS).output.split()
        assert (error, int(count) in made) == ("BlockingIOError", True), count


@pytest.mark.parametrize("kind", [pytest.param("plain", marks=linux), *PROBLEMS])
def test_what_cells_started_is_ended_after_a_death_and_at_close(boxes: Open, kind: str) -> None:
    """By the shell around the REPL, which looks through /proc."""
    start = "__import__('subprocess').Popen(['setsid', 'sleep', '600']).pid"
    with boxes(kind, rebuild=True) as repl:
        pid = repl.get(start)
        assert repl.run("import os; os._exit(3)").error == "died"
        repl.run("1")
        assert kind == "sandbox" or gone(pid)  # in a sandbox it has another number
        repl.get(start)
    assert left_nothing(repl.cwd.parent)


@as_root
def test_a_sandbox_works_for_an_ordinary_user(boxes: Open) -> None:
    boxes("sandbox")
    assert escapes.as_ordinary_user() == "True True\n2 ab\nruntime runtime\n1\nruntime\ndied 'ab'\n"


# -- hardened


@as_root
def test_root_without_its_capabilities_where_the_folder_is_roots(boxes: Open, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    with boxes("hardened", cwd=tmp_path) as repl:
        assert repl.run("import os; open('x', 'w').write('y'), os.getuid()").output == "(1, 0)"
        assert escapes.written_outside(repl, tmp_path.parent) == []
        outside = tmp_path.parent / "outside"
        outside.mkdir()
        assert escapes.reached(repl, outside) == [], "a file's owner may do what landlock does not know of"
        assert repl.run("open('/proc/sys/vm/swappiness', 'w')").message.startswith("PermissionError")


def test_a_cell_cannot_make_the_host_end_another_process(boxes: Open) -> None:
    """The host is told the REPL's number by the kernel, and not by the worker, which a cell can imitate."""
    with escapes.bystander() as process, boxes("hardened", grace=0.2) as repl:
        forged = f'import os\nframe = b\'{{"t":"hello","pid":{process.pid}}}\\n\'\n'
        each = "for fd in range(3, 64):\n    try: os.write(fd, frame)\n    except OSError: pass\n"
        repl.run(forged + each, timeout=2)
        stubborn = "while True:\n    try: sum(range(10 ** 15))\n    except BaseException: pass"
        assert repl.run(stubborn, timeout=0.2).error == "timeout"
        repl.close()
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.5)


# -- sandbox


def test_a_given_folder_is_shared_and_more_can_be_read(boxes: Open, tmp_path: Path) -> None:
    boxes("sandbox")
    work, data = tmp_path / "work", tmp_path / "data"
    for folder in (work, data):
        folder.mkdir()
        folder.chmod(0o777)
    (data / "d.txt").write_text("data")
    with PythonREPL(launcher=Sandbox(read=[data]), cwd=work) as repl:
        assert repl.run(f"open('new.txt', 'w').write(open({str(data / 'd.txt')!r}).read())").output == "4"
        assert repl.run(f"open({str(data / 'e.txt')!r}, 'w')").error == "runtime"
        assert repl.run(f"sorted(__import__('os').listdir({str(tmp_path)!r}))").output == "['data', 'work']"
    assert (work / "new.txt").read_text() == "data"


@as_root
def test_a_folder_of_roots_is_refused_and_auto_finds_another_way(boxes: Open, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    with boxes("sandbox", cwd=tmp_path) as repl, pytest.raises(RootFolder, match="chown"):
        repl.get("0")
    with PythonREPL(launcher="auto", cwd=tmp_path) as repl:
        assert (repl.isolation, repl.run("open('x', 'w').write('y')").output) == ("auto", "1")
        assert repl.isolation in ("hardened", "plain")


@pytest.mark.parametrize("folder", ["/", "/usr"])
def test_the_whole_machine_is_no_working_folder(boxes: Open, folder: str) -> None:
    with boxes("sandbox", cwd=folder) as repl, pytest.raises(ReplError, match="holds the system"):
        repl.get("0")


def test_the_attempts_succeed_without_isolation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the tests here say is worth something only because of this one."""
    monkeypatch.setenv("RLM_LOOP_TEST_SECRET", "hunter2")
    with PythonREPL(launcher="plain") as repl, escapes.bystander() as process:
        assert repl.isolation == "plain"
        assert escapes.reached_by_sockets(repl, tmp_path) == ["tcp", "udp", "abstract", "path", "path, datagrams"]
        assert str(tmp_path) in escapes.written_outside(repl, tmp_path)
        assert str(tmp_path / "secret.txt") in escapes.read_outside(repl, tmp_path)
        assert len(escapes.answers_read(repl)) >= 3
        assert str(process.args[-1]) in escapes.command_lines_seen(repl, process)
        assert escapes.was_ended(repl, process)
        assert "RLM_LOOP_TEST_SECRET" not in repl.get("list(__import__('os').environ)")
        assert marked(repl.cwd.parent.name)


MISSING = {
    "apt-get install bubblewrap": Sandbox(read=("/",)),
    "apt-get install podman": Container("some/image"),
}


@pytest.mark.parametrize("told", MISSING)
def test_what_is_missing_is_named(told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/no/such/folder")
    assert told in MISSING[told].problem(sys.executable)
    with PythonREPL(launcher=MISSING[told]) as repl, pytest.raises(ReplError, match=told):
        repl.get("0")


def test_auto_takes_the_strongest_that_works_and_warns_where_none_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"path": [str(tmp_path / "work")], "home": str(tmp_path)}
    (tmp_path / "work").mkdir()
    missing = Container("some/image", engine="no-such-engine")
    monkeypatch.setitem(LAUNCHERS, "sandbox", missing)
    if not PROBLEMS["hardened"]:
        assert LAUNCHERS["auto"](sys.executable, options).kind == "hardened"
    monkeypatch.setitem(LAUNCHERS, "hardened", missing)
    warn_once.cache_clear()
    with pytest.warns(RuntimeWarning, match="rlm-loop doctor") as said:
        assert [LAUNCHERS["auto"](sys.executable, options).kind for _ in range(2)] == ["plain", "plain"]
    assert len(said) == 1


# -- container: of an image that is made from the system's Python where podman is there


def test_the_tests_of_a_repository(image: str, tmp_path: Path) -> None:
    packages = tmp_path / "packages"  # the image has no pytest
    for name in ("pytest", "pluggy", "iniconfig", "packaging", "pygments"):
        for file in distribution(name).files or ():
            if file.suffix != ".pyc" and ".." not in file.parts:
                (packages / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(str(file.locate()), packages / file)
    packages.chmod(0o755)
    repository = tmp_path / "repository"
    repository.mkdir()
    test = "import os\ndef test_1(): open('x', 'w').close(); assert os.environ['GIVEN'] == '1'\n"
    (repository / "test_x.py").write_text(test + "def test_2(): assert 0\n")
    place = Container(image, read=(packages,), options=("--env", f"PYTHONPATH={packages}"))
    run = run_tests(repository, place=place, env={"GIVEN": "1"})
    assert dict(run.results) == {"test_x.py::test_1": "passed", "test_x.py::test_2": "failed"}, run.output
    assert run.place == "container"
    with pytest.raises(ReplError, match="has no image 'localhost/rlm-loop-no-such-image'"):
        run_tests(repository, place=Container("localhost/rlm-loop-no-such-image"))


def _left(folder: Path) -> list[str]:
    shown = podman("ps", "--all", "--no-trunc", "--format", "{{.Names}} {{.Command}} {{.Mounts}}").stdout
    return [line for line in shown.splitlines() if str(folder) in line]


@pytest.mark.parametrize("stuck", [False, True])
def test_close_leaves_no_container(image: str, stuck: bool) -> None:
    repl = PythonREPL(launcher=Container(image), timeout=120)
    repl.run("1")
    folder = repl.cwd.parent
    assert _left(folder)
    if stuck:  # a supervisor that does not answer: the client is killed, and the container removed by its name
        repl.run("import os, signal; os.kill(os.getppid(), signal.SIGSTOP)", timeout=1)
    repl.close()
    assert until(lambda: not _left(folder))
    assert not folder.exists()


HOST = """
import sys
from rlm_loop.repl import Container, PythonREPL
repl = PythonREPL(timeout=600, launcher=Container(sys.argv[1]))
repl.get("0")
print(repl.cwd.parent, flush=True)
repl.run("import os, subprocess, sys\\n"
         "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], start_new_session=True)\\n"
         "while True: pass")
"""


def test_no_container_outlives_a_host_that_is_killed(image: str) -> None:
    with host(HOST, image) as process:
        folder = Path(told(process))
        assert _left(folder)
        process.kill()
        process.wait()
    assert until(lambda: not _left(folder) and not marked(folder.name), 120)
    shutil.rmtree(folder, ignore_errors=True)


def test_the_command_follows_the_limits(tmp_path: Path) -> None:
    engine = tmp_path / "podman"
    engine.write_text("#!/bin/sh\n")
    engine.chmod(0o755)
    (tmp_path / "work").mkdir()
    data = tmp_path / "data"
    given = {"path": [str(tmp_path / "work")], "home": str(tmp_path)}
    launcher = Container("some/image", engine=str(engine), read=(data,), options=("--cpus=1",))

    def words(**limits: int) -> dict[str, str]:
        """Each word of the command, and the one behind it."""
        argv = launcher(sys.executable, {**given, "limits": Limits(**limits).as_options()}).argv
        return dict(itertools.pairwise(argv))

    free, limited = words(), words(memory=1 << 30, processes=10)
    assert not {"--memory", "--pids-limit"} & {*free}
    assert {"--cap-drop=all", "--read-only", "--http-proxy=false", "--cpus=1"} <= {*free}
    assert f"type=bind,source={data},target={data},readonly" in free
    assert f"type=bind,source={tmp_path / 'work'},target={tmp_path / 'work'}" in free
    assert (free["--network"], free["--user"].startswith("0:")) == ("none", False)
    assert len({words()["--name"] for _ in range(3)}) == 3
    assert (limited["--memory"], limited["--pids-limit"]) == (str((1 << 30) + (64 << 20)), "18")
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    files = 4096 if hard == resource.RLIM_INFINITY else min(4096, hard)
    assert f"nofile={files}:{files}" in limited


def test_a_table_needs_its_package_in_the_image(image: str) -> None:
    pd = pytest.importorskip("pandas")
    with PythonREPL(launcher=Container(image), timeout=120) as repl:
        if repl.run("import pandas").error is None:
            pytest.skip("the image has pandas")
        with pytest.raises(ReplError, match=r"cannot set 'context' .*No module named 'pandas'"):
            repl.set("context", pd.DataFrame({"a": [1]}))
        assert repl.get("1") == 1

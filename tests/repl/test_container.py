"""Cells in a container.  An image is made from the system's Python where podman is there; else these are skipped."""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import escapes
import pytest
from suite.world import marked

from rlm_loop.repl import Container, ContextFile, Limits, PythonREPL, ReplError
from rlm_loop.repl.isolation.ordinary_user import may_read
from rlm_loop.workspace.testing import run_tests

IMAGE = "localhost/rlm-loop-test-python"
HOW = "apt-get install --no-install-recommends podman runc conmon"
SCRIPT = Path(__file__).with_name("python_image.sh")


def _podman(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["podman", *words], capture_output=True, text=True, stdin=subprocess.DEVNULL)


@pytest.fixture(scope="module")
def image() -> Iterator[str]:
    if shutil.which("podman") is None:
        pytest.skip(f"podman is not installed: {HOW}")
    there = _podman("image", "exists", IMAGE).returncode == 0
    if not there:
        made = subprocess.run(["sh", str(SCRIPT), IMAGE], capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if made.returncode:
            pytest.skip(f"no image could be made: {(made.stderr.strip().splitlines() or ['no message'])[-1]}")
    try:
        with PythonREPL(launcher=Container(IMAGE), timeout=120) as repl:
            repl.start()
    except ReplError as e:
        pytest.skip(f"podman runs no container here: {e}")
    yield IMAGE
    if not there:
        _podman("rmi", "--force", IMAGE)


@pytest.fixture(scope="module")
def box(image: str) -> Iterator[PythonREPL]:
    with PythonREPL(launcher=Container(image), timeout=120, limits=Limits(processes=20, memory=256 << 20)) as repl:
        yield repl


def test_the_session_says_what_it_is(box: PythonREPL) -> None:
    assert box.run("1 + 1").output == "2"
    assert box.isolation == "container"


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
    test = (
        "import os\ndef test_1(): open('x', 'w').close(); assert os.environ['GIVEN'] == '1'\ndef test_2(): assert 0\n"
    )
    (repository / "test_x.py").write_text(test)
    place = Container(image, read=(packages,), options=("--env", f"PYTHONPATH={packages}"))
    run = run_tests(repository, place=place, env={"GIVEN": "1"})
    assert dict(run.results) == {"test_x.py::test_1": "passed", "test_x.py::test_2": "failed"}, run.output
    assert run.place == "container"


def test_a_repositorys_tests_need_the_image(image: str, tmp_path: Path) -> None:
    with pytest.raises(ReplError, match="has no image 'localhost/rlm-loop-no-such-image'"):
        run_tests(tmp_path, place=Container("localhost/rlm-loop-no-such-image"))


def test_no_network(box: PythonREPL, tmp_path: Path) -> None:
    assert escapes.reached_by_sockets(box, tmp_path) == []


def test_no_write_outside_the_working_folder(box: PythonREPL, tmp_path: Path) -> None:
    assert escapes.written_outside(box, tmp_path) == []


def test_no_environment_variable_of_the_hosts(box: PythonREPL) -> None:
    assert {"PYTHONPATH", "USER", "LOGNAME"}.isdisjoint(escapes.environment_seen(box))
    assert box.get("__import__('os').environ['HOME']") == "/tmp"


def test_no_host_process_is_visible_or_hit(box: PythonREPL) -> None:
    with escapes.bystander() as process:
        assert str(process.args[-1]) not in escapes.command_lines_seen(box, process)
        assert not escapes.was_ended(box, process)


def test_nothing_of_the_users_is_reached(box: PythonREPL, tmp_path: Path) -> None:
    assert set(escapes.reached(box, tmp_path)) <= escapes.OWN_IN_A_SANDBOX


def test_cells_do_not_run_as_root(box: PythonREPL) -> None:
    assert 0 not in box.get("__import__('os').getresuid()")
    status = box.get("open('/proc/self/status').read()")
    assert "CapEff:\t0000000000000000\n" in status
    assert "NoNewPrivs:\t1\n" in status


def test_limits_hold(box: PythonREPL) -> None:
    result = box.run(
        "import os, time\nmade = 0\ntry:\n    for _ in range(400):\n"
        "        if os.fork() == 0:\n            time.sleep(600); os._exit(0)\n        made += 1\n"
        "except OSError as e:\n    print(type(e).__name__)\nprint(made <= 30)"
    )
    assert result.output == "BlockingIOError\nTrue\n"
    assert "MemoryError" in box.run("bytearray(400 << 20)").output


def test_values_of_any_size_cross_also_after_a_restart(image: str) -> None:
    with PythonREPL(launcher=Container(image), timeout=120, files={"a.txt": "abc"}) as repl:
        repl.set("context", "x" * 3_000_000, reserved=True)
        assert repl.run("len(context), open('a.txt').read()").output == "(3000000, 'abc')"
        assert repl.run("import os; os._exit(3)").error == "died"
        assert repl.run("len(context), open('a.txt', 'a').write('d')").output == "(3000000, 1)"
        assert repl.run("while True: pass", timeout=0.3).error == "timeout"
        assert (repl.cwd / "a.txt").read_text() == "abcd"


def _left(folder: Path) -> list[str]:
    shown = _podman("ps", "--all", "--no-trunc", "--format", "{{.Names}} {{.Command}} {{.Mounts}}").stdout
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
    end = time.monotonic() + 60
    while _left(folder) and time.monotonic() < end:
        time.sleep(0.2)
    assert _left(folder) == []
    assert not folder.exists()


HOST = """
import sys
from rlm_loop.repl import PythonREPL
from rlm_loop.repl import Container
repl = PythonREPL(timeout=600, launcher=Container(sys.argv[1]))
repl.start()
print(repl.cwd.parent, flush=True)
repl.run("import os, subprocess, sys\\n"
         "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], start_new_session=True)\\n"
         "while True: pass")
"""


def test_no_container_outlives_a_host_that_is_killed(image: str) -> None:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen([sys.executable, "-c", HOST, image], stdout=subprocess.PIPE, text=True, env=env) as host:
        assert host.stdout is not None
        folder = Path(host.stdout.readline().strip())
        assert _left(folder)
        host.kill()
        host.wait()
    end = time.monotonic() + 120
    while (_left(folder) or marked(folder.name)) and time.monotonic() < end:
        time.sleep(0.1)
    assert _left(folder) == []
    assert marked(folder.name) == set()
    shutil.rmtree(folder, ignore_errors=True)


# -- without root


SYSTEM_PYTHON = "/usr/bin/python3"
AS_ORDINARY_USER = """
import os, sys
from rlm_loop.repl import PythonREPL
from rlm_loop.repl import Container
with PythonREPL(launcher=Container(sys.argv[1]), timeout=120) as repl:
    status = repl.get("open('/proc/self/status').read()")
    print(repl.get("__import__('os').getuid()") == os.getuid() != 0, "CapEff:\\t0000000000000000" in status)
    print(repl.run("open('x', 'w').write('ab')").output, (repl.cwd / "x").read_text())
    print(repl.run("open('../y', 'w')").error, repl.run("open('/usr/x', 'w')").error)
    print(repl.get("sorted(p for p in __import__('os').listdir('/proc') if p.isdigit())[0]"))
    print(repl.run("import socket; socket.create_connection(('1.1.1.1', 53), 1)").error)
    print(repl.run("import os; os._exit(3)").error, repl.run("open('x').read()").output)
"""


@contextlib.contextmanager
def ordinary_user() -> Iterator[dict[str, Any]]:
    """How to start a program as an account that may run containers, with a home folder for this test."""
    home = Path(tempfile.mkdtemp())
    try:
        rows = [line.split(":") for line in Path("/etc/subuid").read_text().splitlines()]
        account = pwd.getpwnam(next(name for name, *_ in rows if not name.isdigit()))
    except (OSError, StopIteration, KeyError):
        pytest.skip("no account has subordinate ids, which containers need without root: useradd makes one that has")
    if shutil.which("newuidmap") is None:
        pytest.skip("containers without root need newuidmap: apt-get install uidmap")
    (home / "run").mkdir()
    for path in (home, home / "run"):
        path.chmod(0o700)
        os.chown(path, account.pw_uid, account.pw_gid)
    env = {
        "HOME": str(home),
        "XDG_RUNTIME_DIR": str(home / "run"),
        "STORAGE_DRIVER": "overlay",  # the default there (vfs) copies every layer
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    how = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": [], "env": env, "cwd": "/"}
    try:
        yield how
        subprocess.run(["podman", "system", "reset", "--force"], **how, capture_output=True, stdin=subprocess.DEVNULL)
    finally:
        shutil.rmtree(home, ignore_errors=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="not root: all the other tests here ran without root")
def test_it_works_without_root(image: str) -> None:
    package = str(Path(__file__).parents[2])
    if not may_read([package]) or not shutil.which(SYSTEM_PYTHON):
        pytest.skip("the repository, or a Python, has to be in a folder that any user may read")
    recent = subprocess.run([SYSTEM_PYTHON, "-c", "import sys; sys.exit(sys.version_info < (3, 11))"]).returncode == 0
    if not recent:
        pytest.skip(f"{SYSTEM_PYTHON} is older than Python 3.11")
    with ordinary_user() as how:
        archive = Path(how["env"]["HOME"]) / "image.tar"
        assert _podman("save", "--quiet", "--output", str(archive), image).returncode == 0
        os.chown(archive, how["user"], how["group"])
        loaded = subprocess.run(
            ["podman", "load", "--quiet", "--input", str(archive)],
            **how,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
        )
        if loaded.returncode:
            reason = (loaded.stderr.strip().splitlines() or ["no message"])[-1]
            pytest.skip(f"podman works here for root only: {reason}")
        done = subprocess.run([SYSTEM_PYTHON, "-c", AS_ORDINARY_USER, image], **how, capture_output=True, text=True)
        assert done.stdout == "True True\n2 ab\nruntime runtime\n1\nruntime\ndied 'ab'\n", done.stderr


# -- without an engine


def test_a_missing_engine_or_image_is_named() -> None:
    launcher = Container("some/image", engine="no-such-engine")
    assert "no-such-engine is not installed" in launcher.problem(sys.executable)
    with PythonREPL(launcher=launcher) as repl, pytest.raises(ReplError, match="apt-get install"):
        repl.start()


def test_the_command_follows_the_limits(tmp_path: Path) -> None:
    engine = tmp_path / "podman"
    engine.write_text("#!/bin/sh\n")
    engine.chmod(0o755)
    (tmp_path / "work").mkdir()
    data = tmp_path / "data"
    given = {"path": [str(tmp_path / "work")], "home": str(tmp_path)}
    launcher = Container("some/image", engine=str(engine), read=(data,), options=("--cpus=1",))

    def words(limits: Limits) -> list[str]:
        return list(launcher(sys.executable, json.dumps({**given, "limits": limits.as_options()})).argv)

    free = words(Limits())
    assert not {"--memory", "--pids-limit"} & {*free}
    assert {"--cap-drop=all", "--read-only", "--http-proxy=false", "--cpus=1"} <= {*free}
    assert free[free.index("--network") + 1] == "none"
    assert f"type=bind,source={data},target={data},readonly" in free
    assert f"type=bind,source={tmp_path / 'work'},target={tmp_path / 'work'}" in free
    assert not any(w.startswith("0:") for w in free[free.index("--user") + 1 :][:1])
    names = {words(Limits())[free.index("--name") + 1] for _ in range(3)}
    assert len(names) == 3
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    limited = words(Limits(memory=1 << 30, processes=10, open_files=100))
    assert limited[limited.index("--memory") + 1] == str((1 << 30) + (64 << 20))
    assert limited[limited.index("--pids-limit") + 1] == "18"
    files = 100 if hard == resource.RLIM_INFINITY else min(100, hard)
    assert f"nofile={files}:{files}" in limited


def test_contexts_on_disk_are_bound_read_only(image: str, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_bytes(b"a\r\nb")
    (tmp_path / "closed.txt").write_text("closed to others")
    (tmp_path / "closed.txt").chmod(0o600)
    with PythonREPL(launcher=Container(image), timeout=120) as repl:
        repl.set("notes", ContextFile(tmp_path / "notes.txt"), reserved=True)
        repl.set("closed", ContextFile(tmp_path / "closed.txt"))
        assert repl.get("(notes, closed)") == ("a\r\nb", "closed to others")
        assert repl.run(f"open({str(tmp_path / 'notes.txt')!r}, 'w')").error == "runtime"
        repl.set("late", ContextFile(tmp_path / "closed.txt"))
        assert repl.get("late") == "closed to others"
    assert (tmp_path / "notes.txt").read_bytes() == b"a\r\nb"


def test_a_table_needs_its_package_in_the_image(image: str) -> None:
    pd = pytest.importorskip("pandas")
    with PythonREPL(launcher=Container(image), timeout=120) as repl:
        if repl.run("import pandas").error is None:
            pytest.skip("the image has pandas")
        with pytest.raises(ReplError, match=r"cannot set 'context' .*No module named 'pandas'"):
            repl.set("context", pd.DataFrame({"a": [1]}))
        assert repl.get("1") == 1

"""Cells in a container.  An image is made from the system's Python where podman is there; else these are skipped."""

from __future__ import annotations

import json
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import escapes
import pytest

from rlm_loop.context_on_disk import ContextFile, ContextFolder
from rlm_loop.repl import PythonREPL, ReplError
from rlm_loop.repl.container import Container
from rlm_loop.repl.limits import Limits

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
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "a.txt").write_text("alpha")
    (tmp_path / "notes.txt").write_bytes(b"a\r\nb")
    (tmp_path / "closed.txt").write_text("closed to others")
    (tmp_path / "closed.txt").chmod(0o600)
    with PythonREPL(launcher=Container(image), timeout=120) as repl:
        repl.set("context", ContextFolder(tmp_path / "d"), reserved=True)
        repl.set("notes", ContextFile(tmp_path / "notes.txt"))
        repl.set("closed", ContextFile(tmp_path / "closed.txt"))
        assert repl.get("(dict(context), notes, closed)") == ({"a.txt": "alpha"}, "a\r\nb", "closed to others")
        assert repl.run(f"open({str(tmp_path / 'd' / 'a.txt')!r}, 'w')").error == "runtime"
        repl.set("late", ContextFile(tmp_path / "closed.txt"))
        assert repl.get("late") == "closed to others"
    assert (tmp_path / "d" / "a.txt").read_text() == "alpha"


def test_a_table_needs_its_package_in_the_image(image: str) -> None:
    pd = pytest.importorskip("pandas")
    with PythonREPL(launcher=Container(image), timeout=120) as repl:
        if repl.run("import pandas").error is None:
            pytest.skip("the image has pandas")
        with pytest.raises(TypeError, match=r"cannot set 'context' .* has no usable pandas, which the value needs"):
            repl.set("context", pd.DataFrame({"a": [1]}))
        assert repl.get("1") == 1

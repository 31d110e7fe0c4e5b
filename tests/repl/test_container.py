"""Cells in a container.  An image is made from the system's Python where podman is there; else these are skipped."""

from __future__ import annotations

import resource
import shutil
import sys
from importlib.metadata import distribution
from pathlib import Path

import pytest
from processes import host, told, until
from session_kinds import podman
from suite.world import marked

from rlm_loop.repl import Container, Limits, PythonREPL, ReplError
from rlm_loop.workspace.testing import run_tests


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


def test_a_repositorys_tests_need_the_image(image: str, tmp_path: Path) -> None:
    with pytest.raises(ReplError, match="has no image 'localhost/rlm-loop-no-such-image'"):
        run_tests(tmp_path, place=Container("localhost/rlm-loop-no-such-image"))


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
repl.start()
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


# -- without an engine


def test_the_command_follows_the_limits(tmp_path: Path) -> None:
    engine = tmp_path / "podman"
    engine.write_text("#!/bin/sh\n")
    engine.chmod(0o755)
    (tmp_path / "work").mkdir()
    data = tmp_path / "data"
    given = {"path": [str(tmp_path / "work")], "home": str(tmp_path)}
    launcher = Container("some/image", engine=str(engine), read=(data,), options=("--cpus=1",))

    def words(limits: Limits) -> list[str]:
        return list(launcher(sys.executable, {**given, "limits": limits.as_options()}).argv)

    free = words(Limits())
    assert not {"--memory", "--pids-limit"} & {*free}
    assert {"--cap-drop=all", "--read-only", "--http-proxy=false", "--cpus=1"} <= {*free}
    assert free[free.index("--network") + 1] == "none"
    assert f"type=bind,source={data},target={data},readonly" in free
    assert f"type=bind,source={tmp_path / 'work'},target={tmp_path / 'work'}" in free
    assert not any(w.startswith("0:") for w in free[free.index("--user") + 1 :][:1])
    assert len({words(Limits())[free.index("--name") + 1] for _ in range(3)}) == 3
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    limited = words(Limits(memory=1 << 30, processes=10, open_files=100))
    assert limited[limited.index("--memory") + 1] == str((1 << 30) + (64 << 20))
    assert limited[limited.index("--pids-limit") + 1] == "18"
    files = 100 if hard == resource.RLIM_INFINITY else min(100, hard)
    assert f"nofile={files}:{files}" in limited


def test_a_table_needs_its_package_in_the_image(image: str) -> None:
    pd = pytest.importorskip("pandas")
    with PythonREPL(launcher=Container(image), timeout=120) as repl:
        if repl.run("import pandas").error is None:
            pytest.skip("the image has pandas")
        with pytest.raises(ReplError, match=r"cannot set 'context' .*No module named 'pandas'"):
            repl.set("context", pd.DataFrame({"a": [1]}))
        assert repl.get("1") == 1

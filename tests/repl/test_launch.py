"""What the worker is started from, and what it is given of the environment."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from rlm_loop.repl.host.launch import WORKER, script, worker_environment


@pytest.mark.parametrize("name", ["OPENAI_API_KEY", "HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "ANYTHING_ELSE"])
def test_what_is_not_on_the_list_is_not_passed(name: str) -> None:
    assert name not in worker_environment({name: "hunter2hunter2", "PATH": "/bin"})


def test_the_worker_runs_from_byte_code_that_is_the_sessions_own(tmp_path: Path) -> None:
    options = json.dumps({"home": str(tmp_path)})
    path = Path(script(WORKER, sys.executable, options))
    assert path.parent == tmp_path
    path.write_bytes(b"")  # spoiled in whatever way: the next start has a whole one again
    assert script(WORKER, sys.executable, options) == str(path)
    here, there = socket.socketpair()
    with subprocess.Popen([sys.executable, str(path), "{}"], stdin=subprocess.PIPE, stdout=there) as worker, here:
        there.close()
        assert b'"t":"hello"' in here.recv(1000)
        assert worker.stdin is not None
        worker.stdin.close()  # its life line
        assert worker.wait(30) in (0, -9)


def test_another_interpreter_gets_the_source() -> None:
    assert script(WORKER, "another", json.dumps({"home": "/"})) == str(WORKER)


def test_relative_search_paths_mean_the_hosts_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    given = os.pathsep.join([".", "", "lib", "/opt/x"])
    expected = os.pathsep.join([str(tmp_path), str(tmp_path / "lib"), "/opt/x"])
    assert worker_environment({"PYTHONPATH": given})["PYTHONPATH"] == expected

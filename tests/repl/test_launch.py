"""What the worker is given of the environment."""

import os
from pathlib import Path

import pytest

from rlm_loop.repl.launch import worker_environment


@pytest.mark.parametrize("name", ["OPENAI_API_KEY", "HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "ANYTHING_ELSE"])
def test_what_is_not_on_the_list_is_not_passed(name: str) -> None:
    assert name not in worker_environment({name: "hunter2hunter2", "PATH": "/bin"})


def test_relative_search_paths_mean_the_hosts_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    given = os.pathsep.join([".", "", "lib", "/opt/x"])
    expected = os.pathsep.join([str(tmp_path), str(tmp_path / "lib"), "/opt/x"])
    assert worker_environment({"PYTHONPATH": given})["PYTHONPATH"] == expected

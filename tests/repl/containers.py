"""An image for tests of containers, made from the system's Python where podman is there."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rlm_loop.repl import Container, PythonREPL, ReplError

IMAGE = "localhost/rlm-loop-test-python"
HOW = "apt-get install --no-install-recommends podman runc conmon"
SCRIPT = Path(__file__).with_name("python_image.sh")


def podman(*words: str, **how: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["podman", *words], capture_output=True, text=True, stdin=subprocess.DEVNULL, **how)


@pytest.fixture(scope="session")
def image() -> Iterator[str]:
    if shutil.which("podman") is None:
        pytest.skip(f"podman is not installed: {HOW}")
    there = podman("image", "exists", IMAGE).returncode == 0
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
        podman("rmi", "--force", IMAGE)

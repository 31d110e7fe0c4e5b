"""Sessions for the tests, and at the end a look for what they may have left."""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from multiprocessing.util import get_temp_dir
from pathlib import Path

import pytest
from suite.world import marked

from rlm_loop.repl import PythonREPL


@pytest.fixture(scope="module")
def shared() -> Iterator[PythonREPL]:
    """One session for the tests of a module that do not mind each other's variables."""
    with PythonREPL(timeout=20) as repl:
        yield repl


@pytest.fixture
def repl() -> Iterator[PythonREPL]:
    """A session of the test's own."""
    with PythonREPL(timeout=20) as repl:
        yield repl


@pytest.fixture(scope="session", autouse=True)
def nothing_is_left() -> Iterator[None]:
    """After all tests of sessions no process is left that works in a folder of theirs, or that this one started."""
    if not sys.platform.startswith("linux"):
        yield
        return
    folder = Path(tempfile.mkdtemp(prefix="rs-"))  # short: sockets with long paths cannot be made
    folder.chmod(0o755)  # cells of an isolated session run as another user
    before = _children()
    get_temp_dir()  # pools have theirs outside of the folder that is swept: they remove it when this process ends
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(folder))
        patch.setenv("TMPDIR", str(folder))
        yield
    killed = "rlm-loop-episode-"  # of workers that a test ends with SIGKILL, which nobody can tidy up after
    end = time.monotonic() + 30
    while True:  # a session that a stopped run had is closed in a thread: its process ends before its folder goes
        left = {p for p in marked(folder.name) | _children() - before if not _of_pools(p)}
        homes = [p.name for p in folder.iterdir() if p.name.startswith("rlm-loop-") and not p.name.startswith(killed)]
        if not (left or homes) or time.monotonic() > end:
            break
        time.sleep(0.02)
    shown = [_command(pid) for pid in left]
    shutil.rmtree(folder, ignore_errors=True)
    assert not left, f"processes were left behind: {shown}"
    assert not homes, f"private folders of sessions were left behind: {homes}"


def _children() -> set[int]:
    """Running processes that this one started."""
    found: set[int] = set()
    for path in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found |= {int(pid) for pid in path.read_text().split()}
    return {pid for pid in found if _runs(pid)}


def _runs(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False


def _of_pools(pid: int) -> bool:
    """Whether it is one of the two helpers of `multiprocessing`, which end with the process that has pools."""
    return any(name in _command(pid) for name in (b"multiprocessing.resource_tracker", b"multiprocessing.forkserver"))


def _command(pid: int) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()[:300]
    return b"(it has just ended)"

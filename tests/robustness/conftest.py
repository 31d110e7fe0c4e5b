"""The server that hosts are forked from, and at the end a look for what the cases may have left."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from multiprocessing.util import get_temp_dir
from pathlib import Path

import pytest
from suite.hosts import preload
from suite.world import marked


@pytest.fixture(scope="session", autouse=True)
def nothing_is_left() -> Iterator[None]:
    """After all cases no process is left that was started for, or works in, a folder of theirs."""
    folder = Path(tempfile.mkdtemp(prefix="robustness-suite-"))
    get_temp_dir()  # pools have theirs outside of the folder that is swept: they remove it when this process ends
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(Path(__file__).parent), str(Path(__file__).parents[2])]))
        preload("ours")
        patch.setattr(tempfile, "tempdir", str(folder))
        patch.setenv("TMPDIR", str(folder))
        yield
    end = time.monotonic() + 5
    while (left := marked(folder.name)) and time.monotonic() < end:
        time.sleep(0.02)
    shown = [Path(f"/proc/{pid}/cmdline").read_bytes()[:300] for pid in left]
    shutil.rmtree(folder, ignore_errors=True)
    assert not left, f"processes were left behind: {shown}"

"""Sessions for the cases, and at the end a look for what they may have left."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rlm_loop.torture.world import marked


@pytest.fixture(scope="session", autouse=True)
def nothing_is_left() -> Iterator[None]:
    """After all cases no process is left that was started for, or works in, a folder of theirs."""
    folder = Path(tempfile.mkdtemp(prefix="torture-suite-"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(folder))
        patch.setenv("TMPDIR", str(folder))
        yield
    end = time.monotonic() + 5
    while (left := marked(folder.name)) and time.monotonic() < end:
        time.sleep(0.02)
    shown = [Path(f"/proc/{pid}/cmdline").read_bytes()[:300] for pid in left]
    shutil.rmtree(folder, ignore_errors=True)
    assert not left, f"processes were left behind: {shown}"

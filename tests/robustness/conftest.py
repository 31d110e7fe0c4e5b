"""What runs beside the cases, and at the end a look for what they may have left."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from multiprocessing.util import get_temp_dir
from pathlib import Path
from typing import Any

import pytest
from hosts import Beside, has_a_host

from experiments.robustness.suite.world import marked

#: Cases that have a host process of their own run so many at a time, beside those in this process: most of them wait.
_AT_A_TIME = 2


@pytest.fixture(scope="session", autouse=True)
def nothing_is_left() -> Iterator[None]:
    """After all cases no process is left that was started for, or works in, a folder of theirs."""
    folder = Path(tempfile.mkdtemp(prefix="robustness-suite-"))
    get_temp_dir()  # pools have theirs outside of the folder that is swept: they remove it when this process ends
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


@pytest.fixture(scope="session")
def beside(request: pytest.FixtureRequest, nothing_is_left: None) -> Iterator[Beside]:
    """All selected cases that have a host of their own, from now on."""
    with ExitStack() as stack, ThreadPoolExecutor(_AT_A_TIME) as pool:
        running = Beside(pool, stack)
        for item in request.session.items:
            params: dict[str, Any] = getattr(getattr(item, "callspec", None), "params", {})
            if {"opened", "case"} <= set(params) and has_a_host(params["opened"], params["case"]):
                running.begin(params["opened"], params["case"])
        yield running
        pool.shutdown(cancel_futures=True)

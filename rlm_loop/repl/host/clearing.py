"""Removing folders that a cell or a command could fill with anything."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def temporary(prefix: str) -> Generator[Path]:
    """A new folder, removed at the end (`tempfile.TemporaryDirectory` calls itself for each level)."""
    folder = Path(tempfile.mkdtemp(prefix=prefix)).resolve()
    try:
        yield folder
    finally:
        remove(folder)


def remove(folder: str | Path) -> None:
    """Remove a folder and what is in it, as far as that can be had; never raises `OSError`.  No link is followed."""
    with suppress(RecursionError):
        shutil.rmtree(folder, ignore_errors=True)
    if os.path.isdir(folder) and not os.path.islink(folder):  # it is too deep, or rights were taken away
        for command in (["chmod", "-R", "u+rwX"], ["rm", "-rf"]):
            with suppress(OSError):
                subprocess.run([*command, "--", folder], stderr=subprocess.DEVNULL, check=False)

"""A small folder of real text, so that tests need not read the whole library."""

from __future__ import annotations

import sysconfig
from pathlib import Path

import pytest

CHOSEN = ("argparse.py", "dataclasses.py", "statistics.py", "json/decoder.py")


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    home, made = Path(sysconfig.get_path("stdlib")), tmp_path_factory.mktemp("text")
    for name in CHOSEN:
        (made / name).parent.mkdir(exist_ok=True)
        (made / name).write_bytes((home / name).read_bytes())
    return str(made)

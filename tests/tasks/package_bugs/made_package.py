"""A small package with tests, as a source distribution, for the tests of the suite's machinery."""

from __future__ import annotations

import hashlib
import io
import tarfile
from dataclasses import dataclass
from pathlib import Path

from rlm_loop.tasks.package_bugs.bugs import Manifest
from rlm_loop.tasks.package_bugs.sdists import Package

CODE = '''"""Lengths."""


def clamp(value, low, high):
    """Keep a value within bounds.  Both belong to it."""
    if value < low:
        return low
    if value > high:
        value = high
    return value


def total(items):
    """The sum."""
    result = 0
    for item in items:
        result += item
    return result


def unused(x):
    y = x + 1
    return y * 2 - 1


SEVEN = total([3, 4])
'''
TESTS = """import os

import pytest

from lengths import clamp


@pytest.mark.parametrize(("value", "wanted"), [(1, 2), (2, 2), (3, 3), (9, 4)])
def test_clamp(value, wanted):
    assert clamp(value, 2, 4) == wanted


@pytest.mark.parametrize("name", "abcdefghijkl")
def test_others(name):
    assert name


def test_shaky():
    assert os.environ.get("RLM_LOOP_CALLS"), "passes only in one of the two runs"
"""
FILES = {
    "src/lengths/__init__.py": CODE,
    "tests/test_lengths.py": TESTS,
    "tests/test_speed.py": "def test_speed():\n    pass\n",
    "setup.py": 'raise SystemExit("code of the package ran")\n',
    "PKG-INFO": "Metadata-Version: 2.1\nName: lengths\nVersion: 1.0\n",
    "src/lengths/__pycache__/__init__.cpython-311.pyc": "byte code",
}


def sdist(folder: Path) -> Path:
    """Write the source distribution."""
    file = folder / "lengths-1.0.tar.gz"
    with tarfile.open(file, "w:gz") as archive:
        for name, text in FILES.items():
            data = text.encode()
            entry = tarfile.TarInfo(f"lengths-1.0/{name}")
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return file


def package(file: Path) -> Package:
    """The distribution, pinned."""
    sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
    return Package("lengths", "1.0", "MIT", ("src",), ("tests",), sha256, ("tests/test_speed.py",))


@dataclass(frozen=True)
class Made:
    """The package, what was found in it, what the search told, and where it keeps its progress."""

    package: Package
    manifest: Manifest
    told: list[str]
    state: Path

"""The packages that bugs are put into: pinned source distributions, fetched with pip once and kept in the cache."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from rlm_loop.models.sources import FetchFailed
from rlm_loop.models.weights import cache_folder
from rlm_loop.tasks.packaged import packaged
from rlm_loop.workspace.archives import extract


@dataclass(frozen=True)
class Package:
    """A pure-Python package on the index.

    `sha256` is that of its source distribution.  `code` are the folders and files that bugs are put into, `tests`
    the test files and folders, both relative to the top of the distribution.  `timed` are those of them that measure
    time: they run, and do not count.
    """

    name: str
    version: str
    licence: str
    code: tuple[str, ...]
    tests: tuple[str, ...]
    sha256: str
    timed: tuple[str, ...] = ()

    @property
    def requirement(self) -> str:
        """As pip takes it."""
        return f"{self.name}=={self.version}"


def _package(row: dict[str, Any]) -> Package:
    row |= {name: tuple(row.get(name, ())) for name in ("code", "tests", "timed")}
    return Package(**row)


#: The packages that bugs are put into, by name.
PACKAGES = tuple(map(_package, packaged("packages.json")))

#: Brings the source distribution of a package into a folder and returns its path there; raises `FetchFailed`.
Fetch = Callable[[Package, Path], Path]

#: Where the packages here name their build backend; `sdist_backend.py` stands in for each.
_BACKENDS = ("setuptools.build_meta", "hatchling.build", "flit_core.buildapi", "poetry.core.masonry.api", "pdm.backend")


class PackageMissing(Exception):
    """A package's source distribution is not on this machine and could not be fetched; one line says what to do."""


def sdist_folder() -> Path:
    """Where the distributions are kept: `$RLM_LOOP_CACHE/sdists`, else the platform's cache folder for `rlm-loop`."""
    return cache_folder().with_name("sdists")


def cached(package: Package, *, store: Path | None = None) -> Path | None:
    """The checked file of a package, if it is on this machine; a damaged one counts as absent."""
    file = (store or sdist_folder()) / f"{package.name}-{package.version}.tar.gz"
    with contextlib.suppress(OSError):
        if hashlib.sha256(file.read_bytes()).hexdigest() == package.sha256:
            return file
    return None


def pull(package: Package, *, store: Path | None = None, fetch: Fetch | None = None) -> Path:
    """Make sure that a package's source distribution is here, and return its file.

    Raises `PackageMissing` where it cannot be fetched, or is not the file that was pinned.
    """
    if found := cached(package, store=store):
        return found
    folder = store or sdist_folder()
    again = "try again with a connection"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder) as place:
            got = (fetch or pip_sdist)(package, Path(place))
            seen = hashlib.sha256(got.read_bytes()).hexdigest()
            if seen != package.sha256:
                raise PackageMissing(f"{got.name} is not the file that was pinned (SHA-256 {seen[:12]}...)")
            target = folder / f"{package.name}-{package.version}.tar.gz"
            os.replace(got, target)
            return target
    except FetchFailed as error:
        raise PackageMissing(f"{package.requirement} is not on this machine ({error}); {again}") from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise PackageMissing(f"cannot write to {folder} ({reason}): set RLM_LOOP_CACHE to another folder") from error


def pip_sdist(package: Package, folder: Path) -> Path:
    """Fetch with `pip download`, so that the user's own index settings hold.

    pip wants metadata from a package's build backend even to download it.  A stand-in answers, so no build tool is
    fetched and no code of the package runs.
    """
    if importlib.util.find_spec("pip") is None:
        raise FetchFailed(f"{sys.executable} has no pip: run `{sys.executable} -m ensurepip`")
    stand_in = folder / "backend"
    source = Path(__file__).with_name("sdist_backend.py").read_bytes()
    for name in _BACKENDS:
        module = stand_in.joinpath(*name.split(".")).with_suffix(".py")
        module.parent.mkdir(parents=True, exist_ok=True)
        module.write_bytes(source)
        for parent in module.relative_to(stand_in).parents[:-1]:
            (stand_in / parent / "__init__.py").touch()
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-binary=:all:", "--no-build-isolation"]
    command += ["--use-pep517", "--no-cache-dir", "--disable-pip-version-check", "--no-input", "--quiet"]
    command += ["--dest", str(folder), package.requirement]
    environment = {**os.environ, "PYTHONPATH": str(stand_in), "RLM_LOOP_SDIST": package.requirement}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, env=environment
    )
    found = sorted(folder.glob("*.tar.gz"))
    if done.returncode or not found:
        lines = [line.strip() for line in done.stderr.splitlines() if "ERROR" in line] or [done.stderr.strip()[-200:]]
        raise FetchFailed(f"pip could not download it: {lines[0]}")
    return found[0]


@lru_cache(maxsize=8)
def _read(file: Path, sha256: str) -> Mapping[str, bytes]:
    del sha256  # a part of the key: another file of that name is read anew
    with tempfile.TemporaryDirectory(prefix="rlm-sdist-") as folder:
        top = Path(folder, "files")
        top.mkdir()
        extract(file, top)
        return {
            path.relative_to(top).as_posix(): path.read_bytes()
            for path in sorted(top.rglob("*"))
            if path.is_file() and not path.is_symlink() and path.suffix != ".pyc"
        }


def source_files(package: Package) -> dict[str, bytes]:
    """The files of a package's source distribution, without links and byte code, by name below its top folder.

    Fetched where it is not here yet: raises `PackageMissing` as `pull` does.
    """
    return dict(_read(pull(package), package.sha256))

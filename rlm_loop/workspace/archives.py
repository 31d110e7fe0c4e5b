"""Unpack an archive into a folder, and never anything outside of it."""

from __future__ import annotations

import lzma
import os
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

from rlm_loop.workspace.git import WorkspaceError

MAX_BYTES = 4_000_000_000  # unpacked: a small archive can hold more than any disk
MAX_MEMBERS = 500_000
_BROKEN = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    OSError,
    RuntimeError,
    ValueError,
)


class _Unfit(Exception):
    """Why an archive is refused."""


@dataclass(frozen=True)
class _Member:
    """One entry: its name, what it is; of a file its content, of a link or hard link what it points to."""

    name: str
    kind: Literal["folder", "file", "link", "hard link", "device"]
    content: Callable[[], IO[bytes] | None] = lambda: None
    executable: bool = False
    target: str = ""


def extract(archive: Path, root: Path) -> None:
    """Unpack a tar (plain, gzip, bzip2, xz) or zip file into an empty folder.

    One folder that holds all the rest, as in a source distribution, is left away, and so are git's own files.
    Raises `WorkspaceError` for an archive that is broken, or that holds a name or link that leads out of the
    folder, a device, or more than `MAX_BYTES`.
    """
    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as zipped:
                _unpack(_named(_zip_members(zipped)), root)
        elif tarfile.is_tarfile(archive):
            with tarfile.open(archive, "r:*") as tar:
                _unpack(_named(_tar_members(tar)), root)
        else:
            raise _Unfit("it is no complete tar or zip file")
    except _Unfit as error:
        raise WorkspaceError(f"{archive} is refused: {error}") from None
    except _BROKEN as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise WorkspaceError(f"{archive} cannot be unpacked: {reason}") from None


def _named(members: Iterator[_Member]) -> dict[str, _Member]:
    """Return the members by clean names, in their order; of two with one name the last one counts."""
    named: dict[str, _Member] = {}
    for count, member in enumerate(members, 1):
        if count > MAX_MEMBERS:
            raise _Unfit(f"it holds more than {MAX_MEMBERS} files")
        parts = _parts(member.name)
        if not parts or any(part.casefold() == ".git" for part in parts):
            continue
        if member.kind == "device":
            raise _Unfit(f"{member.name!r} is a device or pipe")
        named.pop("/".join(parts), None)
        named["/".join(parts)] = member
    return named


def _unpack(members: dict[str, _Member], root: Path) -> None:
    """Write files first and links last, so that nothing is ever written through a link."""
    tops = {name.partition("/")[0] for name in members}
    inside = all("/" in name or member.kind == "folder" for name, member in members.items())
    prefix = f"{tops.pop()}/" if len(tops) == 1 and inside else ""
    placed = {name.removeprefix(prefix): member for name, member in members.items() if f"{name}/" != prefix}
    left = MAX_BYTES
    for name, member in placed.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        if member.kind == "folder":
            (root / name).mkdir(exist_ok=True)
        elif member.kind == "file":
            left -= _write(member, root / name, left)
    links = {name: member for name, member in placed.items() if member.kind == "link"}
    for name, member in placed.items():
        if member.kind == "hard link":
            origin = root / "/".join(_parts(member.target)).removeprefix(prefix)
            if not origin.is_file():
                raise _Unfit(f"{member.name!r} repeats {member.target!r}, which is not in it")
            shutil.copy(origin, root / name)
    for name, member in links.items():
        if not member.target or member.target.startswith("/"):
            raise _Unfit(f"the link {member.name!r} to {member.target!r} leads out of the folder")
        (root / name).symlink_to(member.target)
    top = Path(os.path.realpath(root))
    for name, member in links.items():
        # Asked of the whole, once all links are there: one link may lead through another.
        if not Path(os.path.realpath(root / name)).is_relative_to(top):
            raise _Unfit(f"the link {member.name!r} to {member.target!r} leads out of the folder")


def _parts(name: str) -> list[str]:
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if name.startswith(("/", "\\")) or ".." in parts or "\0" in name or name[1:3] in (":\\", ":/"):
        raise _Unfit(f"{name!r} leads out of the folder")
    return parts


def _write(member: _Member, target: Path, room: int) -> int:
    content = member.content()
    if content is None:
        raise _Unfit(f"{member.name!r} has no content")
    size = 0
    with content, target.open("xb") as file:
        while chunk := content.read(1 << 20):
            size += len(chunk)
            if size > room:
                raise _Unfit(f"it holds more than {MAX_BYTES} bytes")
            file.write(chunk)
    target.chmod(0o755 if member.executable else 0o644)
    return size


def _tar_members(tar: tarfile.TarFile) -> Iterator[_Member]:
    size = 0
    for entry in tar:
        if (size := size + entry.size) > MAX_BYTES:
            raise _Unfit(f"it holds more than {MAX_BYTES} bytes")
        kinds = {tarfile.DIRTYPE: "folder", tarfile.SYMTYPE: "link", tarfile.LNKTYPE: "hard link"}
        kind: Any = "file" if entry.isreg() else kinds.get(entry.type, "device")
        executable = bool(entry.mode & 0o100)
        yield _Member(entry.name, kind, lambda e=entry: tar.extractfile(e), executable, entry.linkname)
    while tar.fileobj.read(1 << 20):
        pass  # a compressed file is checked as a whole only when it was read to its end


def _zip_members(zipped: zipfile.ZipFile) -> Iterator[_Member]:
    for entry in zipped.infolist():
        mode = entry.external_attr >> 16 if entry.create_system == 3 else 0  # 3: Unix, else there is no mode
        kinds = {0: "file", stat.S_IFREG: "file", stat.S_IFLNK: "link"}
        kind: Any = "folder" if entry.is_dir() else kinds.get(stat.S_IFMT(mode), "device")
        target = os.fsdecode(zipped.read(entry)) if kind == "link" else ""
        yield _Member(entry.filename, kind, lambda e=entry: zipped.open(e), bool(mode & 0o100), target)

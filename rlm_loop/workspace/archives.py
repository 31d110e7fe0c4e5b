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
from typing import IO, Literal

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
                _unpack(_zip_members(zipped), root)
        elif tarfile.is_tarfile(archive):
            with tarfile.open(archive, "r:*") as tar:
                _unpack(_tar_members(tar), root)
        else:
            raise _Unfit("it is no complete tar or zip file")
    except _Unfit as error:
        raise WorkspaceError(f"{archive} is refused: {error}") from None
    except _BROKEN as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise WorkspaceError(f"{archive} cannot be unpacked: {reason}") from None


def _unpack(members: Iterator[_Member], root: Path) -> None:
    """Files first and links last, so that nothing is ever written through a link."""
    links: list[tuple[str, _Member]] = []
    written = 0
    tops: set[str] = set()
    folders: set[str] = set()
    for count, member in enumerate(members, 1):
        if count > MAX_MEMBERS:
            raise _Unfit(f"it holds more than {MAX_MEMBERS} files")
        parts = _parts(member.name)
        if not parts or any(part.casefold() == ".git" for part in parts):
            continue
        tops.add(parts[0])
        if len(parts) > 1 or member.kind == "folder":
            folders.add(parts[0])
        name = "/".join(parts)
        target = root / name
        if member.kind == "device":
            raise _Unfit(f"{member.name!r} is a device or pipe")
        if member.kind == "folder":
            target.mkdir(parents=True, exist_ok=True)
        elif member.kind == "file":
            written += _write(member, target, MAX_BYTES - written)
        else:
            links.append((name, member))
    prefix = ""
    if len(tops) == 1 and tops == folders:
        prefix = tops.pop() + "/"
        _hoist(root, prefix[:-1])
    links = [(name.removeprefix(prefix), member) for name, member in links]
    for name, member in sorted(
        links, key=lambda link: link[1].kind == "link"
    ):  # none is there yet when files are copied
        if member.kind == "link":
            _link(root / name, member)
        else:
            _copy(root, name, "/".join(_parts(member.target)).removeprefix(prefix), member)
    top = Path(os.path.realpath(root))
    for name, member in links:
        # Asked of the whole, once all links are there: one link may lead through another.
        if not Path(os.path.realpath(root / name)).is_relative_to(top):
            raise _Unfit(f"the link {member.name!r} to {member.target!r} leads out of the folder")


def _parts(name: str) -> list[str]:
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if name.startswith(("/", "\\")) or ".." in parts or "\0" in name or name[1:3] in (":\\", ":/"):
        raise _Unfit(f"{name!r} leads out of the folder")
    return parts


def _write(member: _Member, target: Path, room: int) -> int:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)  # the same name again: the last one counts
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
    if member.executable:
        target.chmod(0o755)
    return size


def _hoist(root: Path, top: str) -> None:
    """Bring what lies in the only folder one level up."""
    aside = root.parent / "unpacked"
    os.replace(root / top, aside)
    for inner in os.listdir(aside):
        os.replace(aside / inner, root / inner)
    aside.rmdir()


def _copy(root: Path, name: str, origin: str, member: _Member) -> None:
    if not (root / origin).is_file():
        raise _Unfit(f"{member.name!r} repeats {member.target!r}, which is not in it")
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(root / origin, root / name)


def _link(place: Path, member: _Member) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.unlink(missing_ok=True)
    if not member.target or member.target.startswith("/"):
        raise _Unfit(f"the link {member.name!r} to {member.target!r} leads out of the folder")
    place.symlink_to(member.target)


def _tar_members(tar: tarfile.TarFile) -> Iterator[_Member]:
    for entry in tar:
        if entry.isdir():
            yield _Member(entry.name, "folder")
        elif entry.issym():
            yield _Member(entry.name, "link", target=entry.linkname)
        elif entry.islnk():
            yield _Member(entry.name, "hard link", target=entry.linkname)
        elif entry.isreg():
            yield _Member(entry.name, "file", lambda e=entry: tar.extractfile(e), bool(entry.mode & 0o100))
        else:
            yield _Member(entry.name, "device")
    while tar.fileobj.read(1 << 20):
        pass  # a compressed file is checked as a whole only when it was read to its end


def _zip_members(zipped: zipfile.ZipFile) -> Iterator[_Member]:
    for entry in zipped.infolist():
        mode = entry.external_attr >> 16 if entry.create_system == 3 else 0  # 3: Unix, else there is no mode
        if entry.is_dir():
            yield _Member(entry.filename, "folder")
        elif stat.S_ISLNK(mode):
            yield _Member(entry.filename, "link", target=os.fsdecode(zipped.read(entry)))
        elif stat.S_IFMT(mode) not in (0, stat.S_IFREG):
            yield _Member(entry.filename, "device")
        else:
            yield _Member(entry.filename, "file", lambda e=entry: zipped.open(e), bool(mode & 0o100))

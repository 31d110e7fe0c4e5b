"""Archives: the usual ones come out as they went in, and none writes outside of its folder."""

from __future__ import annotations

import io
import os
import tarfile
import zipfile
from pathlib import Path

import pytest
from files_on_disk import on_disk

from rlm_loop.workspace import Workspace, WorkspaceError, archives

FILES = {"setup.py": b"x = 1\r\n", "pkg/__init__.py": b"", "pkg/\xe9.txt": b"\xe9", "run.sh": b"echo\n"}


def _tar(path: Path, mode: str, entries: list[tuple[str, bytes | str, str]]) -> Path:
    kinds = {"file": tarfile.REGTYPE, "link": tarfile.SYMTYPE, "hard": tarfile.LNKTYPE, "fifo": tarfile.FIFOTYPE}
    kinds |= {"folder": tarfile.DIRTYPE, "device": tarfile.CHRTYPE}
    with tarfile.open(path, mode) as tar:  # type: ignore[call-overload]
        for kind, content, name in entries:
            entry = tarfile.TarInfo(name)
            entry.type = kinds[kind]
            entry.mode = 0o755 if name.endswith(".sh") else 0o644
            if isinstance(content, str):
                entry.linkname = content
                tar.addfile(entry)
            else:
                entry.size = len(content)
                tar.addfile(entry, io.BytesIO(content))
    return path


def _zip(path: Path, entries: list[tuple[str, bytes | str, str]]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as zipped:
        for kind, content, name in entries:
            entry = zipfile.ZipInfo(name)
            entry.create_system = 3
            entry.compress_type = zipfile.ZIP_DEFLATED
            mode = {"file": 0o100644, "link": 0o120777, "folder": 0o040755, "fifo": 0o010644}[kind]
            entry.external_attr = (mode | (0o111 if name.endswith(".sh") else 0)) << 16
            zipped.writestr(entry, content)
    return path


@pytest.mark.parametrize("top", ["", "pkg-1.0/", "./pkg/", "setup.py/"])
@pytest.mark.parametrize("ending", ["tar", "tar.gz", "tar.bz2", "tar.xz", "zip"])
def test_archives_of_every_kind(tmp_path: Path, ending: str, top: str) -> None:
    entries: list[tuple[str, bytes | str, str]] = [("file", data, top + name) for name, data in FILES.items()]
    entries += [("link", "../setup.py", f"{top}pkg/link"), ("file", b"[core]", f"{top}.git/config")]
    path = tmp_path / f"x.{ending}"
    if ending == "zip":
        _zip(path, entries)
    else:
        _tar(path, f"w:{ending.removeprefix('tar').removeprefix('.')}", entries)
    before = path.read_bytes()
    with Workspace(path) as space:
        found = on_disk(space.root)
        assert found.pop(b"pkg/link") == ("link", b"../setup.py")
        assert found == {
            os.fsencode(name): ("program" if name == "run.sh" else "file", data) for name, data in FILES.items()
        }
        assert space.diff() == ""
    assert path.read_bytes() == before


def test_hard_links_repeated_names_and_a_single_file(tmp_path: Path) -> None:
    entries: list[tuple[str, bytes | str, str]] = [
        ("file", b"1", "t/a"),
        ("file", b"2", "t/a"),
        ("hard", "t/a", "t/b/c"),
    ]
    with Workspace(_tar(tmp_path / "x.tgz", "w:gz", entries)) as space:
        assert on_disk(space.root) == {b"a": ("file", b"2"), b"b/c": ("file", b"2")}
    with Workspace(_tar(tmp_path / "y.tar", "w", [("file", b"1", "a")])) as space:
        assert on_disk(space.root) == {b"a": ("file", b"1")}


@pytest.mark.parametrize(
    ("entries", "says"),
    [
        ([("file", b"x", "/tmp/x")], "'/tmp/x' leads out"),
        ([("file", b"x", "../x")], "'../x' leads out"),
        ([("file", b"x", "a/../../x")], "leads out"),
        ([("file", b"x", "C:/x")], "leads out"),
        ([("link", "/etc", "a")], "the link 'a' to '/etc' leads out"),
        ([("link", "../..", "a/b"), ("file", b"", "c")], "leads out"),
        ([("link", "..", "top/b"), ("file", b"", "top/c")], "leads out"),
        ([("file", b"", "d/e/f"), ("link", "../..", "d/e/up"), ("link", "d/e/up/..", "out")], "the link 'out'"),
        ([("link", "/etc", "a"), ("file", b"x", "a/passwd")], "refused|cannot be unpacked"),
        ([("link", ".", "a"), ("link", "..", "a/b")], "refused|cannot be unpacked"),
        ([("fifo", b"", "a")], "device or pipe"),
    ],
)
@pytest.mark.parametrize("kind", ["tar", "zip"])
def test_what_leads_out_is_refused(
    tmp_path: Path, kind: str, entries: list[tuple[str, bytes | str, str]], says: str
) -> None:
    path = _zip(tmp_path / "x", entries) if kind == "zip" else _tar(tmp_path / "x", "w:gz", entries)
    with pytest.raises(WorkspaceError, match=says) as caught:
        Workspace(path)
    assert "\n" not in str(caught.value)
    assert os.listdir(tmp_path) == ["x"]


def test_hard_links_do_not_lead_out(tmp_path: Path) -> None:
    for target in ("/etc/hostname", "../x", "nowhere"):
        with pytest.raises(WorkspaceError, match=r"leads out|is not in it"):
            Workspace(_tar(tmp_path / "x.tar", "w", [("file", b"", "b"), ("hard", target, "a")]))


def test_an_archive_that_grows_too_large_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _zip(tmp_path / "x.zip", [("file", b"\0" * 5_000_000, "a"), ("file", b"", "b")])
    assert path.stat().st_size < 10_000
    for limit, value, says in (("MAX_BYTES", 4_000_000, "4000000 bytes"), ("MAX_MEMBERS", 1, "1 files")):
        with monkeypatch.context() as patch:
            patch.setattr(archives, limit, value)
            with pytest.raises(WorkspaceError, match=f"it holds more than {says}"):
                Workspace(path)


@pytest.mark.parametrize("ending", ["tar.gz", "tar.bz2", "tar.xz", "zip"])
@pytest.mark.parametrize("cut", ["half", "flipped", "empty", "text"])
def test_broken_archives(tmp_path: Path, ending: str, cut: str) -> None:
    path = tmp_path / f"x.{ending}"
    entries: list[tuple[str, bytes | str, str]] = [("file", os.urandom(50_000), "t/a"), ("file", b"x", "t/b")]
    _zip(path, entries) if ending == "zip" else _tar(path, f"w:{ending[4:]}", entries)
    whole = path.read_bytes()
    broken = {"half": whole[: len(whole) // 2], "empty": b"", "text": b"no archive\n" * 99}
    flipped = whole[:20_000] + bytes(byte ^ 255 for byte in whole[20_000:20_100]) + whole[20_100:]
    path.write_bytes(broken.get(cut, flipped))
    with pytest.raises(WorkspaceError, match=r"refused|cannot be unpacked") as caught:
        Workspace(path)
    assert "\n" not in str(caught.value)

"""Trees of files for the tests: laid out, read back, and put under git as a user would do it."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from collections.abc import Mapping
from pathlib import Path

#: kind ("file", "program" or "link") and content, or what a link points to, by name
Tree = Mapping[bytes, tuple[str, bytes]]


def lay_out(root: Path, tree: Tree) -> None:
    """Make the files of a folder just these; git's own stay."""
    root.mkdir(exist_ok=True)
    for entry in os.scandir(root):
        if entry.name != ".git":
            shutil.rmtree(entry.path) if entry.is_dir(follow_symlinks=False) else os.unlink(entry.path)
    for name, (kind, content) in tree.items():
        place = root / os.fsdecode(name)
        place.parent.mkdir(parents=True, exist_ok=True)
        if kind == "link":
            place.symlink_to(os.fsdecode(content))
        else:
            place.write_bytes(content)
            place.chmod(0o755 if kind == "program" else 0o644)


def on_disk(root: Path) -> dict[bytes, tuple[str, bytes]]:
    """The files of a folder, without git's own."""
    found: dict[bytes, tuple[str, bytes]] = {}
    for place in root.rglob("*"):
        name = place.relative_to(root)
        if place.is_symlink():
            found[bytes(name)] = ("link", os.fsencode(os.readlink(place)))
        elif place.is_file() and ".git" not in name.parts:
            found[bytes(name)] = ("program" if place.stat().st_mode & 0o100 else "file", place.read_bytes())
    return found


def git(cwd: Path, *arguments: str, stdin: bytes = b"") -> str:
    """git as a user with no configuration runs it."""
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    settings = ["user.name=a", "user.email=b@c", "init.defaultBranch=main", "protocol.file.allow=always"]
    command = ["git", *(word for setting in settings for word in ("-c", setting)), *arguments]
    done = subprocess.run(command, cwd=cwd, env=environment, input=stdin, capture_output=True)
    assert done.returncode == 0, (arguments, done.stderr)
    return done.stdout.decode("utf-8", "surrogateescape").strip()


def commit_all(root: Path, message: str = "x") -> str:
    """Commit all files of a repository, which is made where there is none; the commit's id."""
    if not (root / ".git").exists():
        git(root, "init", "-q")
    git(root, "add", "-A", "-f")
    git(root, "commit", "-q", "--allow-empty", "-m", message)
    return git(root, "rev-parse", "HEAD")


def everything(root: Path) -> dict[str, tuple[int, int, int, bytes]]:
    """All that could tell that a folder was touched: times, sizes, modes and contents, git's own files included."""
    found: dict[str, tuple[int, int, int, bytes]] = {}
    for place in (root, *root.rglob("*")):
        status = place.lstat()
        content = place.read_bytes() if stat.S_ISREG(status.st_mode) else b""
        found[str(place)] = (status.st_mtime_ns, status.st_ctime_ns, status.st_mode, content)
    return found

"""Trees in a repository of ours: listed, compared, patched and put together."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rlm_loop.workspace.git import Git

LINK, SUBMODULE = "120000", "160000"
ABSENT = "000000"  # the mode of a file that is not there, with an id of zeros


@dataclass(frozen=True, slots=True)
class Blob:
    """One file of a tree: git's mode, and the id of its content."""

    mode: str
    id: str


def listed(git: Git, tree: str) -> dict[str, Blob]:
    """Return the files of a tree by name, submodules with them."""
    files: dict[str, Blob] = {}
    for line in git("ls-tree", "-r", "-z", tree).split(b"\0")[:-1]:
        head, _, name = line.partition(b"\t")
        mode, _, identity = head.decode().split(" ")
        files[os.fsdecode(name)] = Blob(mode, identity)
    return files


def differences(git: Git, before: str, after: str) -> dict[str, tuple[Blob, Blob]]:
    """Return the files that differ between two trees by name, as they are in each."""
    if before == after:
        return {}
    fields = git("diff-tree", "-r", "-z", "--raw", "--no-renames", before, after).split(b"\0")
    changes: dict[str, tuple[Blob, Blob]] = {}
    for head, name in zip(fields[::2], fields[1::2], strict=False):
        old, new, was, now, _ = head.decode().lstrip(":").split(" ")
        changes[os.fsdecode(name)] = Blob(old, was), Blob(new, now)
    return changes


def contents(git: Git, ids: Iterable[str]) -> dict[str, bytes]:
    """Return the contents of blobs by id."""
    wanted = sorted(set(ids))
    answer = git("cat-file", "--batch", stdin="".join(f"{i}\n" for i in wanted).encode()) if wanted else b""
    found: dict[str, bytes] = {}
    at = 0
    for identity in wanted:
        end = answer.index(b"\n", at)
        size = int(answer[at:end].split(b" ")[2])
        found[identity] = answer[end + 1 : end + 1 + size]
        at = end + size + 2
    return found


def applied(git: Git, tree: str, patch: str) -> str:
    """Return the tree with a patch applied to it; `WorkspaceError` says why it does not fit."""
    if not patch:
        return tree
    index = _scratch(git)
    git("read-tree", tree, GIT_INDEX_FILE=index)
    given = patch.encode("utf-8", "surrogatepass")
    git("apply", "--cached", "--whitespace=nowarn", "-", stdin=given, GIT_INDEX_FILE=index)
    return git("write-tree", GIT_INDEX_FILE=index).decode().strip()


def grafted(git: Git, tree: str, files: Mapping[str, Blob]) -> str:
    """Return the tree with these files as given; they win over what is in their way."""
    if not files:
        return tree
    index = _scratch(git)
    absent_first = sorted(files.items(), key=lambda pair: pair[1].mode != ABSENT)
    lines = [f"{blob.mode} {blob.id}\t".encode() + os.fsencode(name) + b"\0" for name, blob in absent_first]
    git("read-tree", tree, GIT_INDEX_FILE=index)
    git("update-index", "--replace", "-z", "--index-info", stdin=b"".join(lines), GIT_INDEX_FILE=index)
    return git("write-tree", GIT_INDEX_FILE=index).decode().strip()


def lay(git: Git, old: str, new: str) -> None:
    """Make the files in the work tree, which are those of one tree, those of another."""
    index = _scratch(git)
    git("read-tree", old, GIT_INDEX_FILE=index)
    git("read-tree", "--reset", "-u", old, new, GIT_INDEX_FILE=index)


def content(git: Git, blob: Blob) -> bytes:
    """Return the content of a file, nothing where there is none."""
    return b"" if blob.mode in (ABSENT, SUBMODULE) else contents(git, [blob.id])[blob.id]


def _scratch(git: Git) -> str:
    return str(git.git_dir / "scratch")

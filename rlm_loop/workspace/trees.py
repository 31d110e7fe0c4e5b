"""Trees in a repository of ours: listed, compared, patched and put together; and the patch between two."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import NamedTuple

from rlm_loop.workspace.git import Git

LINK, SUBMODULE = "120000", "160000"
ABSENT = "000000"  # the mode of a file that is not there, with an id of zeros
EMPTY = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"  # the tree without files, which git knows


class Blob(NamedTuple):
    """A file of a tree: git's mode, and the id of its content."""

    mode: str
    id: str


def in_index(git: Git) -> dict[str, Blob]:
    """Return the files in the index by name, submodules with them."""
    lines = (line.partition(b"\t") for line in git("ls-files", "-z", "--stage").split(b"\0")[:-1])
    return {os.fsdecode(name): Blob(*head.decode().split(" ")[:2]) for head, _, name in lines}


def differences(git: Git, before: str, after: str) -> dict[str, tuple[Blob, Blob]]:
    """Return the files that differ between two trees by name, as they are in each."""
    fields = git("diff-tree", "-r", "-z", "--raw", "--no-renames", before, after).split(b"\0")
    changes: dict[str, tuple[Blob, Blob]] = {}
    for head, name in zip(fields[::2], fields[1::2], strict=False):
        old, new, was, now, _ = head.decode().lstrip(":").split(" ")
        changes[os.fsdecode(name)] = Blob(old, was), Blob(new, now)
    return changes


def contents(git: Git, blobs: Iterable[Blob]) -> dict[str, bytes]:
    """Return the contents of files by id; a file that is not there, and a submodule, has none."""
    wanted = sorted({blob.id for blob in blobs if blob.mode not in (ABSENT, SUBMODULE)})
    answer = git("cat-file", "--batch", stdin="".join(f"{i}\n" for i in wanted).encode())
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
    if not patch.strip():
        return tree
    given = (patch.removesuffix("\n") + "\n").encode("utf-8", "surrogatepass")
    return changed(git, tree, "apply", "--cached", "--whitespace=nowarn", "-", stdin=given)


def grafted(git: Git, tree: str, files: Mapping[str, Blob]) -> str:
    """Return the tree with these files as given; they win over what is in their way."""
    absent_first = sorted(files.items(), key=lambda pair: pair[1].mode != ABSENT)
    lines = [f"{blob.mode} {blob.id}\t".encode() + os.fsencode(name) + b"\0" for name, blob in absent_first]
    return changed(git, tree, "update-index", "--replace", "-z", "--index-info", stdin=b"".join(lines))


def changed(git: Git, tree: str, *command: str, stdin: bytes = b"") -> str:
    """Return the tree that a command of git makes of one, in an index of its own."""
    index = str(git.git_dir / "scratch")
    git("read-tree", tree, GIT_INDEX_FILE=index)
    git(*command, stdin=stdin, GIT_INDEX_FILE=index)
    return git("write-tree", GIT_INDEX_FILE=index).decode().strip()


def lay(git: Git, old: str, new: str) -> None:
    """Make the files in the work tree, which are those of one tree, those of another."""
    index = str(git.git_dir / "scratch")
    git("read-tree", old, GIT_INDEX_FILE=index)
    git("read-tree", "--reset", "-u", old, new, GIT_INDEX_FILE=index)


def render(git: Git, before: str, after: str) -> str:
    """Return the patch from one tree to the other.

    A rename is a deletion and a new file.  Text that is not UTF-8 is written in git's binary form, which is ASCII,
    as binary files are, so that the patch is text whatever the files hold.
    """
    command = ("diff-tree", "-p", "--binary", "--full-index", "--no-renames", "--no-ext-diff", "--no-textconv")
    patch = git(*command, before, after)
    with suppress(UnicodeDecodeError):
        return patch.decode()
    binary = git("-c", "diff.default.binary=true", *command, before, after)
    texts, binaries = (re.split(rb"^(?=diff --git )", whole, flags=re.MULTILINE) for whole in (patch, binary))
    return "".join(_first_utf8(*forms) for forms in zip(texts, binaries, strict=True))


def _first_utf8(text: bytes, binary: bytes) -> str:
    with suppress(UnicodeDecodeError):
        return text.decode()
    return binary.decode()

"""The patch between two trees, as text that `git apply` takes."""

from __future__ import annotations

import base64
import re
import string
import zlib
from collections.abc import Mapping
from dataclasses import dataclass

from rlm_loop.workspace.git import Git, WorkspaceError
from rlm_loop.workspace.patterns import Patterns
from rlm_loop.workspace.trees import applied, contents, differences, grafted

_WIDTH = 52  # bytes in a line of a binary patch, whose first letter says how many there are
_LENGTHS = string.ascii_uppercase + string.ascii_lowercase
_FORM = ("--binary", "--full-index", "--no-renames", "--no-ext-diff", "--no-textconv")


@dataclass(frozen=True)
class Patch:
    """A unified patch for `git apply`, and what of the changes is not in it.

    `files` are the names that it touches.  `left_out` maps the names of other new or changed files, or folders
    with a slash at the end, to the reason: "test file", "build dropping", "ignored" (by a `.gitignore`) and the like.
    `tree` is what the start becomes with it.
    """

    text: str
    files: tuple[str, ...]
    left_out: Mapping[str, str]
    tree: str

    def __bool__(self) -> bool:
        return bool(self.text)


def render(git: Git, before: str, after: str) -> str:
    """Return the patch from one tree to the other.

    A rename is a deletion and a new file.  Text that is not UTF-8 is written in git's binary form, which is ASCII,
    as binary files are, so that the patch is text whatever the files hold.
    """
    patch = git("diff-tree", "-p", *_FORM, before, after)
    return "".join(_section(git, section) for section in re.split(rb"^(?=diff --git )", patch, flags=re.MULTILINE))


def compose(git: Git, base: str, tree: str, tests: Patterns, left_out: Mapping[str, str]) -> Patch:
    """Return the patch from `base` to `tree`, without the changes that `tests` covers.

    Raises `WorkspaceError` unless it was found to rebuild just these files from the start.
    """
    changes = differences(git, base, tree)
    tested = {name: "test file" for name in changes if tests.cover(name)}
    tree = grafted(git, tree, {name: changes[name][0] for name in tested})
    text = render(git, base, tree)
    if applied(git, base, text) != tree:
        raise WorkspaceError("the patch does not rebuild the changes: take the files themselves")
    files = tuple(sorted(differences(git, base, tree)))
    return Patch(text, files, dict(sorted({**left_out, **tested}.items())), tree)


def _section(git: Git, section: bytes) -> str:
    """Return the part of a patch for one file as text that `git apply` understands."""
    head, _, rest = section.partition(b"\n")
    both = head.removeprefix(b"diff --git ")
    name = both[: len(both) // 2].removeprefix(b"a/")
    if b" " in name and not name.startswith(b'"'):  # git apply may stumble over spaces, unless the name is quoted
        section = b'diff --git "a/%s" "b/%s"\n%s' % (name, name, rest)
    try:
        if b"\0" not in section:
            return section.decode()
    except UnicodeDecodeError:
        pass
    return _binary(git, section)


def _binary(git: Git, section: bytes) -> str:
    """Return the part for one file with its contents, before and after, in git's binary form."""
    header: list[str] = []
    for line in section.decode("utf-8", "replace").split("\n"):  # names are in it in ASCII
        header.append(line)
        if line.startswith("index "):
            break
    old, new = header[-1].split(" ")[1].split("..")
    found = contents(git, [identity for identity in (old, new) if identity.strip("0")])
    bodies = [_literal(found.get(identity, b"")) for identity in (new, old)]
    return "\n".join([*header, "GIT binary patch", *bodies, ""])


def _literal(content: bytes) -> str:
    packed = zlib.compress(content)
    lines = [f"literal {len(content)}"]
    for at in range(0, len(packed), _WIDTH):
        part = packed[at : at + _WIDTH]
        lines.append(_LENGTHS[len(part) - 1] + base64.b85encode(part, pad=True).decode())
    return "\n".join([*lines, ""])

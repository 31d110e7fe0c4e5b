"""Files on disk: tell text from bytes, list a folder, and open a file for a cell."""

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SNIFF = 1 << 16  # bytes at the beginning of a file that decide whether it is text


class ContextGone(OSError):
    """The file or folder of a context cannot be read any more."""


def is_text(head: bytes) -> bool:
    """Whether a file that begins so is text: UTF-8, and less than an eighth NUL, as far as `SNIFF` bytes tell.

    What is not UTF-8 further on becomes lone surrogates (`surrogateescape`), so that no byte is lost.
    """
    head = head[:SNIFF]
    if 8 * head.count(b"\0") > len(head):  # UTF-16 of English is half NUL, and so UTF-8 of a kind; so are holes
        return False
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as error:
        return len(head) == SNIFF and error.start > SNIFF - 4 and error.reason == "unexpected end of data"
    return True


def listing(root: str, hidden: bool) -> dict[str, int]:
    """The regular files below a folder, by relative path with `/`, in order, with their sizes in bytes.

    Names that begin with a dot only with `hidden`; no links to folders, and no links that lead out of the folder.
    """
    found: dict[str, int] = {}
    real = os.path.realpath(root)

    def complain(error: OSError) -> None:
        if error.filename == root:
            raise error  # of the folder itself; one below it that is closed to us is left out

    for here, folders, files in os.walk(root, onerror=complain):
        folders[:] = sorted(f for f in folders if hidden or not f.startswith("."))
        for name in files:
            path = os.path.join(here, name)
            if name.startswith(".") and not hidden:
                continue
            try:
                about = os.stat(path)
            except OSError:
                continue  # a link to nothing
            if stat.S_ISREG(about.st_mode) and _inside(path, real):
                found[os.path.relpath(path, root).replace(os.sep, "/")] = about.st_size
    return {name: found[name] for name in sorted(found)}


def _inside(path: str, root: str) -> bool:
    return not os.path.islink(path) or os.path.realpath(path).startswith(root.rstrip(os.sep) + os.sep)


def open_file(path: str, shown: str) -> Any:
    try:
        return open(path, "rb")
    except OSError as error:
        raise ContextGone(f"{shown} cannot be read: {error.strerror}") from None

"""The files of a repository as an indented tree, in no more than so many characters."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass
class _TreeFolder:
    folders: dict[str, _TreeFolder] = field(default_factory=dict[str, "_TreeFolder"])
    files: list[str] = field(default_factory=list[str])
    count: int = 0
    """Files in it and below."""
    depth: int = 0
    path: str = ""


def file_tree(files: Iterable[str], most: int = 2000) -> str:
    """Folders first, then files, each by name; `most` is characters, the note of what was left out included.

    Where not all fits, folders are opened level by level and, in a level, by name, as long as there is room; one that
    stays closed says how many files are in it.  Where not even the top level fits, its end is cut and counted.
    """
    top = _built(files)
    opened: set[str] = {""}
    queue = [*_below(top)]
    used = _length(_lines(top, opened))
    while queue:
        folder = queue.pop(0)
        more = used + _length(_lines(folder, set()))
        more -= len(_note(folder))
        if more > most:
            continue  # a smaller one may still fit
        opened.add(folder.path)
        used = more
        queue += _below(folder)
    lines = _lines(top, opened)
    if _length(lines) <= most:
        return "\n".join(lines)
    return _cut(lines, most)


def _built(files: Iterable[str]) -> _TreeFolder:
    top = _TreeFolder()
    for name in sorted(set(files)):
        *parents, last = name.split("/")
        here = top
        here.count += 1
        for parent in parents:
            path = f"{here.path}{parent}/"
            here = here.folders.setdefault(parent, _TreeFolder(depth=here.depth + 1, path=path))
            here.count += 1
        here.files.append(last)
    return top


def _below(folder: _TreeFolder) -> list[_TreeFolder]:
    return [folder.folders[name] for name in sorted(folder.folders)]


def _lines(folder: _TreeFolder, opened: set[str]) -> list[str]:
    lines: list[str] = []
    for below in _below(folder):
        name = "  " * folder.depth + below.path.rstrip("/").rpartition("/")[2] + "/"
        if below.path in opened:
            lines += [name, *_lines(below, opened)]
        else:
            lines.append(name + _note(below))
    return lines + ["  " * folder.depth + name for name in folder.files]


def _note(folder: _TreeFolder) -> str:
    return f" ({folder.count} file{'' if folder.count == 1 else 's'})"


def _length(lines: list[str]) -> int:
    return sum(len(line) + 1 for line in lines)


def _cut(lines: list[str], most: int) -> str:
    for kept in range(len(lines) - 1, -1, -1):
        note = f"... {len(lines) - kept} more"
        text = "\n".join([*lines[:kept], note])
        if len(text) <= most:
            return text
    return ""

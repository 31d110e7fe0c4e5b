"""What to do about a path that is not what was wanted: an archive, a file for a folder, a name beside the right one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path

_UNPACKED_BY = {
    **dict.fromkeys((".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar.zst"), "tar xf"),
    ".zip": "unzip",
    ".7z": "7z x",
    ".rar": "unrar x",
}
_LOCK, _TRACES = "study.json", (".jsonl", ".jsonl.gz")
_DEEP = 3


def unpacking(path: str | Path) -> str:
    """The command that unpacks an archive, by its name; empty for what is none."""
    name = Path(path).name.lower()
    return next((f"{command} {path}" for ending, command in _UNPACKED_BY.items() if name.endswith(ending)), "")


def no_study(folder: str | Path) -> str:
    """Why a path is not the folder of a study's results, and the next step."""
    path = Path(folder)
    if not path.exists():
        why, step = "no such folder", f"{_near(path)}`rlm-loop study list` shows the studies below a folder"
    elif path.is_dir():
        below = next(_studies(path), None)
        why, step = "no study.json", "run one there, or give another folder"
        if below is not None:
            why, step = "but folders below it do", f"give one of them, such as {below}"
    elif (path.parent / _LOCK).is_file():
        why, step = "it is a file of one", f"give its folder, {path.parent}"
    elif command := unpacking(path):
        why, step = "it is an archive", f"unpack it (`{command}`) and give the folder that has study.json"
    elif path.suffix == ".py":
        why, step = "it is Python", f"`rlm-loop study run {path}` runs it and says where the results are"
    elif path.name.endswith(_TRACES):
        why, step = "it is a file", f"`rlm-loop trace show {path}` reads a trace"
    else:
        why, step = "it is a file", "give the folder that has study.json"
    return f"{folder} holds no study: {why}; {step}"


def no_trace(path: str | Path) -> str:
    """Why a path is no file of traces, and the next step; empty where nothing is to be said of it."""
    file = Path(path)
    if not file.exists():
        return f"No such file; {_near(file)}`rlm-loop view` shows the runs below a folder"
    study = file if file.is_dir() else file.parent
    if (study / _LOCK).is_file() and (file.is_dir() or unpacking(file)):
        return f"it holds those of a study; `rlm-loop view {study}` shows them all"
    if file.is_dir():
        inside = sorted(p for p in file.iterdir() if p.name.endswith(_TRACES))
        one = f"name a file of it, such as {inside[0]}" if inside else f"`rlm-loop view {file}` shows the runs below it"
        return f"it is a folder; {one}"
    if command := unpacking(file):
        return f"it is an archive; unpack it (`{command}`) and name a file of it"
    return ""


def _near(path: Path) -> str:
    """`did you mean X? ` for a name beside it that is near."""
    try:
        beside = os.listdir(path.parent)
    except OSError:
        return ""
    found = get_close_matches(path.name, beside, 1)
    return f"did you mean {path.parent / found[0]}? " if found else ""


def _studies(folder: Path) -> Iterator[Path]:
    for place, folders, files in os.walk(folder):
        if _LOCK in files:
            yield Path(place)
        deep = len(Path(place).relative_to(folder).parts)
        folders[:] = [] if deep >= _DEEP else sorted(f for f in folders if not f.startswith("."))

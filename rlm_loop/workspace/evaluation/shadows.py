"""Modules that a patch adds where they would hide others from the tests: the interpreter's, or those that judge."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

_SUFFIXES = (".py", ".pyw", ".so", ".pyd")


def fresh_modules(
    added: Iterable[str], there: Iterable[str], folders: Sequence[str] = ("", "src")
) -> dict[str, list[str]]:
    """The modules, by their full names, that added files make importable from these folders, each with its files.

    `there` are the files before; one that is added to a package of theirs is none of them.  A module of a package
    without `__init__.py` is one, since such a package has parts in several folders.  A name without a suffix may be a
    link to a package.
    """
    packages = {name.rpartition("/")[0] for name in there if _is_init(name)}
    found: dict[str, list[str]] = {}
    for name in added:
        for folder in folders:
            for module in _modules(name, folder, packages):
                found.setdefault(module, []).append(name)
    return {module: list(dict.fromkeys(names)) for module, names in found.items()}


def hidden(modules: Mapping[str, object], protected: Iterable[str], folders: Sequence[str]) -> list[str]:
    """Which of these modules have the name of a protected file, or of a package above one, in one of the folders."""
    names = {module for name in protected for folder in folders for module in _ways(name, folder)}
    return [module for module in modules if module in names]


def import_folders(files: Iterable[str], there: Iterable[str]) -> list[str]:
    """The folders that pytest searches for the sake of these test files: of each the first above without a package."""
    packages = {name.rpartition("/")[0] for name in there if _is_init(name)}
    found: dict[str, None] = {}
    for name in files:
        folder = name.rpartition("/")[0]
        while folder in packages and folder:
            folder = folder.rpartition("/")[0]
        found[folder] = None
    return list(found)


def above(links: Iterable[str], folders: Sequence[str]) -> list[str]:
    """Which of these links stand in the place of a folder, or of one above it: they lead the search elsewhere."""
    return [name for name in links if any(folder == name or folder.startswith(name + "/") for folder in folders)]


def _modules(name: str, folder: str, packages: set[str]) -> list[str]:
    """The modules that a file makes when this folder is searched: itself, and the package that it begins."""
    parts = _below(name, folder)
    if not parts or any(_joined(folder, parts[:n]) in packages for n in range(1, len(parts))):
        return []
    *packs, last = parts
    if last.partition(".")[0] == "__init__":
        return _named(packs)
    return _named([*packs, _stem(last)]) if last.endswith(_SUFFIXES) or "." not in last else []


def _ways(name: str, folder: str) -> list[str]:
    """All module names that lead to a file when this folder is searched."""
    parts = _below(name, folder)
    if parts and name.endswith(_SUFFIXES):
        parts[-1] = _stem(parts[-1])
    return [".".join(parts[:n]) for n in range(1, len(parts) + 1)]


def _below(name: str, folder: str) -> list[str]:
    if not folder:
        return name.split("/")
    return name[len(folder) + 1 :].split("/") if name.startswith(folder + "/") else []


def _joined(folder: str, parts: Sequence[str]) -> str:
    return "/".join([*([folder] if folder else []), *parts])


def _named(parts: Sequence[str]) -> list[str]:
    return [".".join(parts)] if parts and all(part.isidentifier() for part in parts) else []


def _stem(last: str) -> str:
    return last.partition(".")[0]


def _is_init(name: str) -> bool:
    return name.rpartition("/")[2].partition(".")[0] == "__init__"

"""The tree that is judged: the patched one, with every file that steers the tests as it is in the reference.

A patch may add no module either that would hide another from the tests: one of the interpreter's, or one that judges.
"""

from __future__ import annotations

import ast
import json
import os
import posixpath
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rlm_loop.tools.processes import run_group
from rlm_loop.workspace.evaluation.guard import Guard, search_folders, settings_among, steers_differently
from rlm_loop.workspace.git import Git
from rlm_loop.workspace.testing.isolation import default_python
from rlm_loop.workspace.trees import ABSENT, LINK, Blob, content, contents, differences, grafted

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


#: Without importing a package, whose code runs then: a part is looked for in packages without `__init__.py` only, since
#: a whole package of the interpreter wins over the repository's part of one.
_INSTALLED = """
import importlib.util, json, sys
from importlib.machinery import PathFinder
def there(module):
    first, *rest = module.split(".")
    spec, name = importlib.util.find_spec(first), first
    for part in rest:
        if spec is None or spec.origin is not None or not spec.submodule_search_locations: return False
        name += "." + part
        spec = PathFinder.find_spec(name, spec.submodule_search_locations)
    return spec is not None
print(json.dumps([name for name in json.load(sys.stdin) if there(name)]))
"""


@dataclass(frozen=True)
class JudgedTree:
    """The tree that is judged.

    `refused` are the files in it that are the reference's and not the patch's, each with the reason; `judging` those of
    the patch that the tests import and that check something.
    """

    tree: str
    refused: Mapping[str, str]
    judging: tuple[str, ...]


def judged_tree(
    git: Git, guard: Guard, files: Mapping[str, Blob], reference: str, patched: str, python: str | None, path: str
) -> JudgedTree:
    """Return the tree that is judged.

    `files` are the reference's, `path` is the `PYTHONPATH` that the tests are given.
    """
    changes = differences(git, reference, patched)
    refused = {name: why for name in changes if (why := guard.why(name) or _steers(git, name, *changes[name]))}
    left = {name: pair for name, pair in changes.items() if name not in refused}
    if not left:
        return JudgedTree(reference, dict(sorted(refused.items())), ())
    protected = [name for name in files if guard.protects(name)]
    folders = _searched(git, files, protected, path)
    helpers = _helpers(git, files, guard, folders)
    kept = [name for name in helpers if left.get(name, (None, Blob("", "")))[1].mode != ABSENT]
    added = {name: now for name, (was, now) in left.items() if was.mode == ABSENT}
    refused |= _shadows(files, [*protected, *kept], added, folders, python)
    tree = grafted(git, patched, {name: changes[name][0] for name in refused})
    judging = tuple(name for name in helpers if name in left)
    return JudgedTree(tree, dict(sorted(refused.items())), judging)


_CHECKS = re.compile(rb"^\s*(assert\b|import (pytest|unittest)|from (pytest|unittest)\b|raise AssertionError)", re.M)


def _helpers(git: Git, files: Mapping[str, Blob], guard: Guard, folders: Sequence[str]) -> list[str]:
    """Return modules of the reference that the protected files import, and that check something: they judge, too."""
    tests = [name for name in files if name.endswith(".py") and (name in guard.files or "conftest" in name)]
    sources = contents(git, [files[name].id for name in tests])
    found: dict[str, None] = {}
    for module in {module for name in tests for module in _imported(sources[files[name].id])}:
        for folder in folders:
            place = _joined(folder, module.split("."))
            found |= dict.fromkeys(name for name in (f"{place}.py", f"{place}/__init__.py") if name in files)
    helpers = [name for name in found if not guard.protects(name)]
    texts = contents(git, [files[name].id for name in helpers])
    return sorted(name for name in helpers if _CHECKS.search(texts[files[name].id]))


def _imported(source: bytes) -> set[str]:
    """Return the modules that a file imports, and what it takes from them, by full names."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def _steers(git: Git, name: str, was: Blob, now: Blob) -> str:
    if not settings_among([name]):
        return ""
    return "says something else to pytest" if steers_differently(name, content(git, was), content(git, now)) else ""


def _shadows(
    files: Mapping[str, Blob],
    protected: Sequence[str],
    added: Mapping[str, Blob],
    folders: Sequence[str],
    python: str | None,
) -> dict[str, str]:
    """Which added files would hide a module from the tests, or lead their search elsewhere."""
    links = above([name for name, blob in added.items() if blob.mode == LINK], folders)
    found = dict.fromkeys(links, "leads a folder that is searched elsewhere")
    fresh = fresh_modules([name for name in sorted(added) if name not in found], files, folders)
    for module in hidden(fresh, protected, folders):
        found |= dict.fromkeys(fresh.pop(module), f"hides {module!r}, which judges")
    for module in _installed(list(fresh), python) if fresh else ():
        found |= dict.fromkeys(fresh[module], f"hides the interpreter's module {module!r}")
    return found


def _searched(git: Git, files: Mapping[str, Blob], protected: Sequence[str], path: str) -> list[str]:
    """The folders of the repository where the tests may look for modules."""
    said = [folder for name in settings_among(files) for folder in search_folders(name, content(git, files[name]))]
    given = [p for p in path.split(os.pathsep) if p and not os.path.isabs(p)]
    judges = import_folders([name for name in protected if name.endswith(".py")], files)
    plain = [posixpath.normpath(folder) for folder in (".", "src", *said, *given)]
    return list(dict.fromkeys([*("" if folder == "." else folder for folder in plain), *judges]))


def _installed(modules: Sequence[str], python: str | None) -> list[str]:
    """Which of these the interpreter has already: a file of that name would hide it from the tests."""
    given = json.dumps(modules).encode()
    try:
        with tempfile.TemporaryDirectory() as empty:
            done = run_group([python or default_python(), "-I", "-c", _INSTALLED], cwd=empty, timeout=60, stdin=given)
        return [str(name) for name in json.loads(done.output)]
    except (ValueError, OSError):  # no interpreter, or none that says so: then better too many
        return list(modules)

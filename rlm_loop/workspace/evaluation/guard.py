"""The tree that is judged: the patched one, with every file that steers the tests as it is in the reference.

A patch is judged by the tests as they were written, so it may change neither them nor what steers pytest and the start
of the interpreter, and it may add no module that would hide another from the tests: one of the interpreter's, or one
that judges.
"""

from __future__ import annotations

import ast
import json
import posixpath
import re
import sys
import tempfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from rlm_loop.tools.processes import watch
from rlm_loop.workspace.git import Git
from rlm_loop.workspace.trees import ABSENT, LINK, Blob, contents, differences, grafted

#: Settings files of pytest's own, and those that it shares with other programs.
OWN = frozenset(["pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml"])
SHARED = frozenset(["pyproject.toml", "tox.ini", "setup.cfg"])
#: A key of a TOML file may be written with escapes.
_OF_PYTEST = re.compile(rb"pytest|\\", re.IGNORECASE)

#: Modules that pytest and Python import by themselves, in any form (source, package, library).
_STARTED = frozenset(["conftest", "sitecustomize", "usercustomize"])
_PLUGINS = (".egg-info", ".dist-info", ".egg-link", ".pth")  # can name plugins, and code to run at the start
_TEST = re.compile(r"(test_.*|.*_test)\.py")  # what pytest takes for tests, if not told otherwise
_FOLDER = re.compile(r"(?:[^/]+/)*?tests?(?=/)")  # the first one called so


class Guard:
    """The files that a patch may not change.

    They are those of the node ids `tests`, those that the tests' own patch `changed`, and what `patterns` name (globs,
    or folders).  Of a folder `tests` (or `test`) that holds one of the first two, everything is protected.  `links` has
    the ends of the reference's symbolic links: what one that is protected leads to is protected, too.
    Everywhere: modules and settings that steer pytest, what is run at the start of Python, byte code, and files that
    are named like tests.
    """

    def __init__(
        self, tests: Iterable[str], changed: Collection[str], patterns: Iterable[str], links: Mapping[str, str]
    ) -> None:
        self.files = {*(PurePosixPath(test.partition("::")[0]).as_posix() for test in tests), *changed}
        self._folders = {match[0] for name in self.files if (match := _FOLDER.match(name))}
        self._patterns = [pattern.rstrip("/") for pattern in patterns]
        self.files |= {end for name, end in links.items() if self.why(name)}

    def kept(self, names: Iterable[str]) -> list[str]:
        """Return the files of a repository that a run of its tests may not change, and those that it may not make."""
        folders = {"", *(f"{above}/" for name in self.files for above in PurePosixPath(name).parents)} - {"./"}
        absent = [f"{folder}{name}" for folder in sorted(folders) for name in ("conftest.py", "__init__.py")]
        return [*filter(self.why, names), *absent]

    def why(self, name: str) -> str:
        """Return why such a file is to be as in the reference; nothing where a patch may change it."""
        parts = name.split("/")
        above = ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]
        if name in self.files or not self._folders.isdisjoint(above):
            return "the tests that judge, or what they use"
        if any(fnmatchcase(part, pattern) for pattern in self._patterns for part in above):
            return "protected by the task"
        folded = [part.casefold() for part in parts]  # some file systems do not tell them apart
        last = folded[-1]
        kinds = {
            "run by pytest or Python at the start": any(part.partition(".")[0] in _STARTED for part in folded),
            "can name plugins": any(part.endswith(_PLUGINS) for part in folded),
            "settings of pytest": last in OWN,
            "byte code": "__pycache__" in folded or last.endswith((".pyc", ".pyo")),
            "named like a test": _TEST.fullmatch(last),
        }
        return next((why for why in kinds if kinds[why]), "")


def judged_tree(
    git: Git, guard: Guard, files: Mapping[str, Blob], reference: str, patched: str, python: str | None
) -> tuple[str, Mapping[str, str], tuple[str, ...]]:
    """Return the tree that is judged, and two lists of files for the verdict; `files` are the reference's.

    The first are the files in it that are the reference's and not the patch's, each with the reason; the second those
    of the patch that the tests import and that check something.
    """
    changes = differences(git, reference, patched)
    refused = {name: why for name in changes if (why := guard.why(name) or _steers(git, name, changes[name]))}
    left = {name: pair for name, pair in changes.items() if name not in refused}
    protected = [name for name in files if guard.why(name)]
    packages = {posixpath.dirname(name) for name in files if posixpath.basename(name).startswith("__init__.")}
    folders = _searched(git, files, protected, packages)
    helpers = _helpers(git, files, guard, folders)
    judges = [*protected, *(name for name in helpers if name not in left or left[name][1].mode != ABSENT)]
    added = {name: now.mode == LINK for name, (was, now) in left.items() if was.mode == ABSENT}
    refused |= _shadows(judges, added, folders, python)
    tree = grafted(git, patched, {name: changes[name][0] for name in refused})
    return tree, dict(sorted(refused.items())), tuple(name for name in helpers if name in left)


def _steers(git: Git, name: str, blobs: Iterable[Blob]) -> str:
    shared = posixpath.basename(name).casefold() in SHARED
    return "settings that pytest reads" if shared and any(map(_OF_PYTEST.search, contents(git, blobs).values())) else ""


#: A list of TOML, or the lines of an INI file's value.
_SEARCHED = re.compile(r"pythonpath\W*?=\s*(\[[^\]]*\]|.*(?:\n[ \t]+.*)*)")


def _searched(git: Git, files: Mapping[str, Blob], protected: Iterable[str], packages: Collection[str]) -> list[str]:
    """Return the folders of the repository where the tests may look for modules."""
    searched = {".", "src"}
    settings = {name: files[name] for name in files if posixpath.basename(name).casefold() in SHARED | OWN}
    texts = contents(git, settings.values())
    for name, blob in settings.items():
        given = " ".join(_SEARCHED.findall(texts[blob.id].decode("utf-8", "replace")))
        words = re.findall(r"[^\s\"'\[\],]+", given)
        searched |= {posixpath.normpath(posixpath.join(posixpath.dirname(name), word)) for word in words}
    for name in protected:  # of each test file pytest searches the first folder above that is no package
        folder = posixpath.dirname(name)
        while folder in packages and folder:
            folder = posixpath.dirname(folder)
        searched |= {folder} if name.endswith(".py") else set()
    return sorted({"" if folder == "." else f"{folder.rstrip('/')}/" for folder in searched if folder})


_CHECKS = re.compile(rb"^\s*(assert\b|import (pytest|unittest)|from (pytest|unittest)\b|raise AssertionError)", re.M)


def _helpers(git: Git, files: Mapping[str, Blob], guard: Guard, folders: Iterable[str]) -> list[str]:
    """Return modules of the reference that the protected files import, and that check something: they judge, too."""
    tests = [files[name] for name in files if name.endswith(".py") and (name in guard.files or "conftest" in name)]
    modules = {module for source in contents(git, tests).values() for module in _imported(source)}
    places = {f"{folder}{module.replace('.', '/')}" for module in modules for folder in folders}
    helpers = [name for place in places for name in (f"{place}.py", f"{place}/__init__.py") if name in files]
    texts = contents(git, [files[name] for name in helpers])
    return sorted(name for name in helpers if not guard.why(name) and _CHECKS.search(texts[files[name].id]))


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


def _shadows(
    judges: Iterable[str], added: Mapping[str, bool], folders: Collection[str], python: str | None
) -> dict[str, str]:
    """Return the added files (true: links) that would hide a module from the tests, or lead their search elsewhere."""
    code = [name for name, link in added.items() if link or name.endswith((".py", ".pyw", ".so", ".pyd"))]
    modules = {(".".join(_module(name, folder)), name) for name in code for folder in folders}
    ways = [_module(name, folder) for name in judges for folder in folders]
    judging = {".".join(way[:n]) for way in ways for n in range(1, len(way) + 1)}
    installed = _installed(sorted({module for module, _ in modules} - judging - {""}), python)
    hidden = dict.fromkeys(installed, "the interpreter's module {!r}") | dict.fromkeys(judging, "{!r}, which judges")
    shadows = {name: f"hides {hidden[module].format(module)}" for module, name in sorted(modules) if module in hidden}
    links = [name for name, link in added.items() if link and any(f.startswith(f"{name}/") for f in folders)]
    return shadows | dict.fromkeys(links, "leads a folder that is searched elsewhere")


def _module(name: str, folder: str) -> list[str]:
    """Return the module that a file is when this folder is searched, by its parts; nothing where it is not in there."""
    if not name.startswith(folder):
        return []
    *above, last = name.removeprefix(folder).split("/")
    stem = last.partition(".")[0]
    return above if stem == "__init__" else [*above, stem]


#: A part is looked for in a package without `__init__.py` only: a whole package wins over the repository's part of one.
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


def _installed(modules: Sequence[str], python: str | None) -> Collection[str]:
    """Return those of these that the interpreter has already: a file of that name would hide it from the tests."""
    if not modules:
        return modules
    try:
        with tempfile.TemporaryDirectory() as empty:
            command = [python or sys.executable, "-I", "-c", _INSTALLED]
            done = watch(command, cwd=empty, timeout=60, stdin=json.dumps(modules).encode())
        return [str(name) for name in json.loads(done.output)]
    except (ValueError, OSError):  # no interpreter, or none that says so: then better too many
        return modules

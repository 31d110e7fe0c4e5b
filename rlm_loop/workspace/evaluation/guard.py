"""The tree that is judged: the patched one, with every file that steers the tests as it is in the reference.

A patch is judged by the tests as they were written, so it may change neither them nor what steers pytest and the start
of the interpreter, and it may add no module that would hide another from the tests: one of the interpreter's, or one
that judges.
"""

from __future__ import annotations

import ast
import json
import os
import posixpath
import re
import tempfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from rlm_loop.tools.processes import run_group
from rlm_loop.workspace.git import Git
from rlm_loop.workspace.testing.isolation import default_python
from rlm_loop.workspace.trees import ABSENT, LINK, Blob, content, contents, differences, grafted

#: Settings files of pytest's own, and those that it shares with other programs.
OWN = frozenset(["pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml"])
SHARED = frozenset(["pyproject.toml", "tox.ini", "setup.cfg"])
#: A key of a TOML file may be written with escapes.
_OF_PYTEST = re.compile(rb"pytest|\\", re.IGNORECASE)

#: Modules that pytest and Python import by themselves, in any form (source, package, library).
_STARTED = frozenset(["conftest", "sitecustomize", "usercustomize"])
_PLUGINS = (".egg-info", ".dist-info", ".egg-link", ".pth")  # can name plugins, and code to run at the start
_TEST = re.compile(r"(test_.*|.*_test)\.py")  # what pytest takes for tests, if not told otherwise
_TESTS = frozenset(["test", "tests"])


@dataclass(frozen=True)
class Guard:
    """`files` are protected by name, `folders` with all that is below, `patterns` as globs (or folders).

    Everywhere: modules and settings that steer pytest, what is run at the start of Python, byte code, and files that
    are named like tests.
    """

    files: frozenset[str]
    folders: frozenset[str]
    patterns: tuple[str, ...]

    @classmethod
    def of(
        cls,
        tests: Iterable[str],
        changed: Collection[str],
        patterns: Sequence[str] = (),
        links: Mapping[str, str] | None = None,
    ) -> Guard:
        """Make one for node ids, the files that the tests' own patch changes, and what else is given.

        Of a folder `tests` (or `test`) that holds one of the listed tests, everything is protected.  `links` are the
        symbolic links of the reference: what one that is protected leads to is protected, too.
        """
        files = {*(PurePosixPath(test.partition("::")[0]).as_posix() for test in tests), *changed}
        folders: set[str] = set()
        for name in files:
            parts = name.split("/")[:-1]
            at = next((i for i, part in enumerate(parts) if part in _TESTS), None)
            if at is not None:
                folders.add("/".join(parts[: at + 1]))
        guard = cls(frozenset(files), frozenset(folders), tuple(p.rstrip("/") for p in patterns))
        ends = {_end(name, links) for name in links if guard.why(name)} if links else set[str]()
        return replace(guard, files=guard.files | ends) if ends else guard

    def protects(self, name: str) -> bool:
        """Return whether a file, changed, added or removed by a patch, is to be as in the reference."""
        return bool(self.why(name))

    def kept(self, names: Iterable[str]) -> list[str]:
        """Return the files of a repository that a run of its tests may not change, and those that it may not make."""
        there = [name for name in names if self.protects(name)]
        folders = {"", *(str(above) for name in self.files for above in PurePosixPath(name).parents)} - {"."}
        new = (f"{folder}/{name}".lstrip("/") for folder in sorted(folders) for name in ("conftest.py", "__init__.py"))
        return list(dict.fromkeys([*there, *new]))

    def why(self, name: str) -> str:
        """Return why such a file is to be as in the reference; nothing where a patch may change it."""
        parts = name.split("/")
        above = ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]
        if name in self.files or not self.folders.isdisjoint(above):
            return "the tests that judge, or what they use"
        if any(fnmatchcase(part, pattern) for pattern in self.patterns for part in above):
            return "protected by the task"
        folded = [part.casefold() for part in parts]  # some file systems do not tell them apart
        last = folded[-1]
        if any(part.partition(".")[0] in _STARTED for part in folded):
            return "run by pytest or Python at the start"
        if any(part.endswith(_PLUGINS) for part in folded):
            return "can name plugins"
        if last in OWN:
            return "settings of pytest"
        if "__pycache__" in folded or last.endswith((".pyc", ".pyo")):
            return "byte code"
        return "named like a test" if _TEST.fullmatch(last) else ""


def _end(name: str, links: Mapping[str, str]) -> str:
    """Return the file that a link leads to, through others, from the repository's top."""
    for _ in range(20):
        if name not in links:
            break
        name = posixpath.normpath(f"{name.rpartition('/')[0]}/{links[name]}".lstrip("/"))
    return name


@dataclass(frozen=True)
class JudgedTree:
    """The tree that is judged.

    `refused` are the files in it that are the reference's and not the patch's, each with the reason; `judging` those of
    the patch that the tests import and that check something.
    """

    tree: str
    refused: Mapping[str, str]
    judging: tuple[str, ...] = ()


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
        return JudgedTree(reference, dict(sorted(refused.items())))
    protected = [name for name in files if guard.protects(name)]
    folders = _searched(git, files, protected, path)
    helpers = _helpers(git, files, guard, folders)
    kept = [name for name in helpers if left.get(name, (None, Blob("", "")))[1].mode != ABSENT]
    added = {name: now for name, (was, now) in left.items() if was.mode == ABSENT}
    refused |= _shadows(files, [*protected, *kept], added, folders, python)
    tree = grafted(git, patched, {name: changes[name][0] for name in refused})
    return JudgedTree(tree, dict(sorted(refused.items())), tuple(name for name in helpers if name in left))


def _steers(git: Git, name: str, was: Blob, now: Blob) -> str:
    if name.rpartition("/")[2].casefold() not in SHARED:
        return ""
    texts = (content(git, blob) for blob in (was, now))
    return "settings that pytest reads" if any(map(_OF_PYTEST.search, texts)) else ""


#: A list of TOML, or the lines of an INI file's value.
_SEARCHED = re.compile(r"pythonpath\W*?=\s*(\[[^\]]*\]|.*(?:\n[ \t]+.*)*)")


def _searched(git: Git, files: Mapping[str, Blob], protected: Iterable[str], path: str) -> list[str]:
    """Return the folders of the repository where the tests may look for modules."""
    searched = dict.fromkeys(["", "src", *(posixpath.normpath(p) for p in path.split(os.pathsep) if p)])
    for name in files:
        if name.rpartition("/")[2].casefold() in SHARED | OWN:
            given = " ".join(_SEARCHED.findall(content(git, files[name]).decode("utf-8", "replace")))
            for word in re.findall(r"[^\s\"'\[\],]+", given):
                searched[posixpath.normpath(posixpath.join(posixpath.dirname(name), word))] = None
    packages = {posixpath.dirname(name) for name in files if _is_init(name)}
    for name in protected:  # of each test file pytest searches the first folder above that is no package
        folder = posixpath.dirname(name)
        while folder in packages and folder:
            folder = posixpath.dirname(folder)
        if name.endswith(".py"):
            searched[folder] = None
    return list(dict.fromkeys("" if folder == "." else folder for folder in searched if not os.path.isabs(folder)))


_CHECKS = re.compile(rb"^\s*(assert\b|import (pytest|unittest)|from (pytest|unittest)\b|raise AssertionError)", re.M)


def _helpers(git: Git, files: Mapping[str, Blob], guard: Guard, folders: Sequence[str]) -> list[str]:
    """Return modules of the reference that the protected files import, and that check something: they judge, too."""
    tests = [name for name in files if name.endswith(".py") and (name in guard.files or "conftest" in name)]
    sources = contents(git, [files[name].id for name in tests])
    imported: set[str] = set()
    for module in {module for name in tests for module in _imported(sources[files[name].id])}:
        for folder in folders:
            place = posixpath.join(folder, *module.split("."))
            imported |= {name for name in (f"{place}.py", f"{place}/__init__.py") if name in files}
    helpers = [name for name in imported if not guard.protects(name)]
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


_SUFFIXES = (".py", ".pyw", ".so", ".pyd")


def _shadows(
    files: Mapping[str, Blob],
    judges: Iterable[str],
    added: Mapping[str, Blob],
    folders: Sequence[str],
    python: str | None,
) -> dict[str, str]:
    """Return the added files that would hide a module from the tests, or lead their search elsewhere."""
    links = [name for name, blob in added.items() if blob.mode == LINK]
    shadows = {name: "leads a folder that is searched elsewhere" for name in links if _leads(name, folders)}
    packages = {posixpath.dirname(name) for name in files if _is_init(name)}
    fresh: dict[str, dict[str, None]] = {}
    for name in sorted(added.keys() - shadows.keys()):
        for folder in folders:
            if module := _module(name, folder, packages):
                fresh.setdefault(module, {})[name] = None
    judging = {module for name in judges for folder in folders for module in _ways(name, folder)}
    installed = _installed([module for module in fresh if module not in judging], python)
    for module, names in fresh.items():
        if module in judging:
            shadows |= dict.fromkeys(names, f"hides {module!r}, which judges")
        elif module in installed:
            shadows |= dict.fromkeys(names, f"hides the interpreter's module {module!r}")
    return shadows


def _leads(link: str, folders: Iterable[str]) -> bool:
    return any(f"{folder}/".startswith(f"{link}/") for folder in folders)


def _module(name: str, folder: str, packages: set[str]) -> str:
    """Return the module that an added file makes when this folder is searched, by its full name; nothing for none.

    One that is added to a package of the reference is none of them.  A name without a suffix may be a link to a
    package, and a package without `__init__.py` has parts in several folders.
    """
    *above, last = _below(name, folder)
    if any(posixpath.join(folder, *above[:n]) in packages for n in range(1, len(above) + 1)):
        return ""
    stem = last.partition(".")[0]
    if not (stem == "__init__" or last.endswith(_SUFFIXES) or "." not in last):
        return ""
    parts = above if stem == "__init__" else [*above, stem]
    return ".".join(parts) if all(part.isidentifier() for part in parts) else ""


def _ways(name: str, folder: str) -> list[str]:
    """Return all module names that lead to a file when this folder is searched."""
    *above, last = _below(name, folder)
    parts = [*above, last.partition(".")[0] if name.endswith(_SUFFIXES) else last]
    return [".".join(parts[:n]) for n in range(1, len(parts) + 1)]


def _below(name: str, folder: str) -> list[str]:
    inside = not folder or name.startswith(f"{folder}/")
    return (name[len(folder) + 1 :] if folder else name).split("/") if inside else [""]


def _is_init(name: str) -> bool:
    return posixpath.basename(name).partition(".")[0] == "__init__"


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


def _installed(modules: Sequence[str], python: str | None) -> Collection[str]:
    """Return those of these that the interpreter has already: a file of that name would hide it from the tests."""
    if not modules:
        return ()
    given = json.dumps(modules).encode()
    try:
        with tempfile.TemporaryDirectory() as empty:
            done = run_group([python or default_python(), "-I", "-c", _INSTALLED], cwd=empty, timeout=60, stdin=given)
        return [str(name) for name in json.loads(done.output)]
    except (ValueError, OSError):  # no interpreter, or none that says so: then better too many
        return modules

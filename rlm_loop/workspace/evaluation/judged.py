"""The tree that is judged: the patched one, with every file that steers the tests as it is in the reference."""

from __future__ import annotations

import json
import os
import posixpath
import tempfile
from collections.abc import Mapping, Sequence

from rlm_loop.tools.processes import run_group
from rlm_loop.workspace.evaluation.guard import Guard
from rlm_loop.workspace.evaluation.settings import search_folders, settings_among, steers_differently
from rlm_loop.workspace.evaluation.shadows import above, fresh_modules, hidden, import_folders
from rlm_loop.workspace.evaluation.trees import Trees
from rlm_loop.workspace.objects import LINK
from rlm_loop.workspace.testing.isolation import default_python

_ABSENT = "000000"

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


def judged_tree(
    git: Trees,
    guard: Guard,
    files: Mapping[str, str],
    reference: str,
    patched: str,
    python: str | None,
    path: str,
) -> tuple[str, dict[str, str]]:
    """The tree that is judged, and the files in it that are the reference's and not the patch's, each with the reason.

    `files` are the reference's, `path` is the `PYTHONPATH` that the tests are given.
    """
    changes = git.changes(reference, patched)
    refused = {name: why for name in changes if (why := guard.why(name) or _steers(git, name, reference, patched))}
    added = {name for name, (mode, _) in changes.items() if mode == _ABSENT and name not in refused}
    if added:
        refused |= _shadows(git, guard, files, added, reference, patched, python, path)
    final = git.grafted(patched, {name: changes[name] for name in refused})
    return final, dict(sorted(refused.items()))


def _steers(git: Trees, name: str, reference: str, patched: str) -> str:
    if not settings_among([name]):
        return ""
    differs = steers_differently(name, git.content(reference, name), git.content(patched, name))
    return "says something else to pytest" if differs else ""


def _shadows(
    git: Trees,
    guard: Guard,
    files: Mapping[str, str],
    added: set[str],
    reference: str,
    patched: str,
    python: str | None,
    path: str,
) -> dict[str, str]:
    """Which added files would hide a module from the tests, or lead their search elsewhere."""
    protected = [name for name in files if guard.protects(name)]
    folders = _searched(git, files, protected, reference, path)
    modes = git.files(patched)
    links = above([name for name in added if modes.get(name) == LINK], folders)
    found = dict.fromkeys(links, "leads a folder that is searched elsewhere")
    left = [name for name in sorted(added) if name not in found]
    fresh = fresh_modules(left, files, folders)
    for module in hidden(fresh, protected, folders):
        found |= dict.fromkeys(fresh.pop(module), f"hides {module!r}, which judges")
    for module in _installed(list(fresh), python) if fresh else ():
        found |= dict.fromkeys(fresh[module], f"hides the interpreter's module {module!r}")
    return found


def _searched(git: Trees, files: Mapping[str, str], protected: Sequence[str], reference: str, path: str) -> list[str]:
    """The folders of the repository where the tests may look for modules."""
    said = [folder for name in settings_among(files) for folder in search_folders(name, git.content(reference, name))]
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

"""The folders that a Python needs to run: returned for this one, printed as JSON by another one that runs this file.

Standard library only and no newer than Python 3.8, since it is run by the interpreter in question.
"""

from __future__ import annotations

import functools
import json
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def needs() -> list[str]:
    """Prefixes, folders of packages (editable ones included), of the real executable and of its shared library."""
    import site
    import sysconfig

    folders = [sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix]
    folders += [*_links(sys.executable), os.path.dirname(os.__file__), str(sysconfig.get_config_var("LIBDIR") or "")]
    packages = getattr(site, "getsitepackages", list)()
    if site.ENABLE_USER_SITE:
        packages.append(site.getusersitepackages())
    folders += packages
    for folder in packages:
        folders += _added_by(folder)
    return _existing(folders)


@functools.lru_cache(maxsize=16)
def needs_of(python: str) -> tuple[str, ...]:
    """`needs` of any interpreter; raises `OSError` where it cannot be run."""
    if python == sys.executable:
        return tuple(needs())
    import subprocess

    done = subprocess.run([python, __file__], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise OSError(f"{python!r} does not run: {(done.stderr.strip().splitlines() or ['no message'])[-1]}")
    return tuple(json.loads(done.stdout))


def with_search_path(python: str, environment: Mapping[str, str]) -> list[str]:
    """The folders that this Python needs, and those that PYTHONPATH and LD_LIBRARY_PATH name."""
    named = [environment.get(name, "") for name in ("PYTHONPATH", "LD_LIBRARY_PATH", "PYTHONHOME")]
    return _existing([*needs_of(python), *(p for value in named for p in value.split(os.pathsep))])


def _links(executable: str) -> list[str]:
    """The folders on the way from a link (a virtual environment's `python`) to the real program."""
    folders = []
    for _ in range(40):
        folders.append(os.path.dirname(executable))
        try:
            executable = os.path.join(os.path.dirname(executable), os.readlink(executable))
        except OSError:
            break
    return [*folders, os.path.dirname(os.path.realpath(executable))]


def _added_by(folder: str) -> list[str]:
    """Return the folders that `.pth` files of a folder add to the search path (see the `site` module)."""
    added: list[str] = []
    try:
        names = [n for n in os.listdir(folder) if n.endswith(".pth")]
    except OSError:
        return added
    for name in names:
        try:
            with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as f:
                lines = f.read().splitlines()
        except OSError:
            continue
        added += [
            os.path.join(folder, x) for x in lines if x.strip() and not x.startswith(("#", "import ", "import\t"))
        ]
    return added


def _existing(folders: list[str]) -> list[str]:
    """Absolute folders and zip files that exist, once each; never the root, which would show everything."""
    paths = [os.path.normpath(f) for f in folders if f and os.path.isabs(f)]
    return [p for p in dict.fromkeys(paths) if p != os.sep and os.path.exists(p)]


if __name__ == "__main__":
    print(json.dumps(needs()))

"""Run a copy of a repository's tests with pytest in a process of its own, and tell what came of each."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import stat
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from rlm_loop.repl.base import ReplError
from rlm_loop.repl.host.clearing import temporary
from rlm_loop.repl.settings import Limits
from rlm_loop.workspace.testing.isolation import Isolation, default_python, isolated_command, run_command
from rlm_loop.workspace.testing.reports import Reports, TestRun

#: Not copied.  Byte code can be made to hide the source beside it (PEP 552, unchecked); a checkout's `.git` leads
#: back to the repository that it was made from.
LEFT_OUT = frozenset([".git", "__pycache__", ".pytest_cache"])


def copy_tree(source: Path, target: Path) -> None:
    """Copy the files below `source`, with modes and times; links stay links, and devices and sockets are left out.

    Raises `OSError` where something cannot be read or written.
    """
    folders = [(os.fspath(source), os.fspath(target))]
    while folders:
        source_folder, copy = folders.pop()
        os.mkdir(copy)
        for entry in os.scandir(source_folder):
            if entry.name in LEFT_OUT:
                continue
            to = os.path.join(copy, entry.name)
            if entry.is_symlink():
                os.symlink(os.readlink(entry.path), to)
            elif entry.is_dir():
                folders.append((entry.path, to))
            elif stat.S_ISREG(entry.stat().st_mode) and not entry.name.endswith(".pyc"):
                shutil.copy2(entry.path, to)
        os.chmod(copy, stat.S_IMODE(os.stat(source_folder).st_mode) | stat.S_IRWXU)


def stamps(root: Path, names: Iterable[str]) -> Mapping[str, tuple[int, int, int]]:
    """Return which file each of these names is (inode), and when it was last written to, renamed or given other rights.

    That time (ctime) only the kernel sets: unlike the content and the time of modification it cannot be put back.
    """
    stamped: dict[str, tuple[int, int, int]] = {}
    for name in names:
        with contextlib.suppress(OSError):
            about = os.lstat(root / name)
            stamped[name] = (about.st_ino, about.st_ctime_ns, about.st_mode)
    return stamped


#: A test that writes without end fills no disk.
LIMITS = Limits(file_size=1 << 30)
_KINDS = {
    "memory": "RLIMIT_DATA",
    "cpu_seconds": "RLIMIT_CPU",
    "open_files": "RLIMIT_NOFILE",
    "file_size": "RLIMIT_FSIZE",
}


def run_tests(
    root: Path,
    ids: Sequence[str] = (),
    *,
    python: str | None = None,
    timeout: float = 300.0,
    env: Mapping[str, str] | None = None,
    place: Isolation = "auto",
    limits: Limits = LIMITS,
    kept: Sequence[str] = (),
) -> TestRun:
    """Run the tests below `root`, all that pytest finds or those of `ids`, in a copy of the folder.

    An id is a pytest node id, or what it begins with: a folder, a file, a class, a test with all its parameters.
    `python` is the interpreter (default: this one), which needs pytest and what the repository imports; the folder
    itself, and `src` in it, come first in its search path, then a `PYTHONPATH` of `env`, relative to the folder.
    `timeout` is the wall time of the whole run in seconds.  `env` is added to an environment cut down to an allow-list.
    `place` is where it runs (see `Isolation`), `limits` hold for each process there.  `kept` names files that the run
    should leave as they are, or absent; those that it wrote to all the same are `TestRun.touched`.

    The repository's own configuration counts, but: no plugin that shuffles, splits or repeats across processes or
    measures coverage, no end at the first failure.  What a repository or its tests do is never raised.
    Raises `ReplError` where `place` does not work on this machine, and `OSError` where the folder cannot be copied.
    """
    program = shutil.which(python) if python else default_python()
    if program is None:
        return TestRun(
            complaint=f"there is no interpreter {python!r}: give the path of a Python with pytest", broken=True
        )
    root = Path(root).resolve()
    if not root.is_dir():
        return TestRun(complaint=f"{root.name!r} is no folder: give the top of a repository")
    with temporary("rlm-tests-") as home:
        copy_tree(root, home / "work")
        (home / "pytest.ini").touch()  # the search for a configuration goes upward, and ends here
        # What the tests start is known by its environment, and reports by a word that is in no environment.
        word, mark = secrets.token_hex(16), secrets.token_hex(8)
        given = dict(env or {})
        asked = [p for p in given.pop("PYTHONPATH", "").split(os.pathsep) if p]
        outside = [p for p in asked if os.path.isabs(p) and os.path.exists(p)]
        command = isolated_command(place, program, home, {**given, "RLM_LOOP_TESTS": mark}, outside)
        # `src` where packages lie in it: one that is installed in editable mode would be the original's
        sources = ["src"] if (root / "src").is_dir() and not (root / "src" / "__init__.py").exists() else []
        job = {
            "word": word,
            "ids": list(ids),
            "path": [".", *sources, *asked],
            "env": given,
            "limits": {_KINDS[name]: value for name, value in limits.as_options().items() if name in _KINDS},
            "orphan": command.kind != "container",
        }
        run = Reports(word)
        before = stamps(home / "work", kept)
        try:
            ended = run_command(
                command, home, job, timeout=timeout, on_line=run.hear, cap=65536, mark=f"RLM_LOOP_TESTS={mark}"
            )
        except OSError as error:
            raise ReplError(f"the tests' process cannot be started: {error}") from error
        after = stamps(home / "work", kept)
    touched = tuple(name for name in kept if after.get(name) != before.get(name))
    return run.result(ended, command, ids, str(home / "work"), touched)

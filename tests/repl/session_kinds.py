"""Sessions of every kind, for tests that are the same for all of them; marks for what tests need of the machine."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rlm_loop.repl import Container, Hardened, PythonREPL, ReplError, Sandbox, open_repl

KINDS = ("subprocess", "kernel", "restricted", "notebook")
NEEDS = {"kernel": "IPython", "restricted": "RestrictedPython", "notebook": "IPython"}


linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes and limits are Linux's")
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="for root only")
main_thread = pytest.mark.skipif(
    threading.current_thread() is not threading.main_thread(), reason="signals reach the main thread"
)
#: What of the default kind only the sandbox can do: in `hardened` a cell does not see its own descriptors and /dev/shm.
needs_bwrap = pytest.mark.skipif(shutil.which("bwrap") is None, reason="needs bubblewrap: apt-get install bubblewrap")


class BudgetSpent(Exception):
    """By its name the REPL knows it: nothing is left to spend."""


def need(kind: str) -> None:
    """Skip where the packages of a kind are not installed, or this machine has no such isolation."""
    launcher = {"hardened": Hardened, "sandbox": Sandbox}.get(kind)
    if launcher is not None and (problem := launcher().problem(sys.executable)):
        pytest.skip(f"`rlm-loop doctor` says how to get it: {problem}")
    if kind in NEEDS:
        extra = "restricted" if kind == "restricted" else "kernel"
        pytest.importorskip(NEEDS[kind], reason=f'needs {NEEDS[kind]}: pip install -e ".[{extra}]"')


@contextlib.contextmanager
def ipython_shell(folder: Path) -> Iterator[Any]:
    """An IPython shell in this process, as in a notebook, without history and with an empty profile."""
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    config = Config()
    config.HistoryManager.enabled = False
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IPYTHONDIR", str(folder))
        for name in ("displayhook", "excepthook", "ps1", "ps2", "ps3"):
            patch.setattr(sys, name, getattr(sys, name, None), raising=False)
        patch.setitem(sys.modules, "__main__", sys.modules["__main__"])
        shell = InteractiveShell.instance(config=config)
        try:
            yield shell
        finally:
            InteractiveShell.clear_instance()


#: Kinds whose cells run in a process that can be seen from here.
SEEN = ["plain", "kernel"]


def seen(kind: str, **options: Any) -> Any:
    need(kind)
    return open_repl(kind, **options)


@contextlib.contextmanager
def session(kind: str, folder: Path, **options: Any) -> Iterator[Any]:
    need(kind)
    with contextlib.ExitStack() as stack:
        if kind == "notebook":
            stack.enter_context(ipython_shell(folder))
        yield stack.enter_context(open_repl(kind, **options))


# -- containers, of an image that is made from the system's Python where podman is there

IMAGE = "localhost/rlm-loop-test-python"
SCRIPT = Path(__file__).with_name("python_image.sh")


def podman(*words: str, **how: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["podman", *words], capture_output=True, text=True, stdin=subprocess.DEVNULL, **how)


@pytest.fixture(scope="session")
def image() -> Iterator[str]:
    if shutil.which("podman") is None:
        pytest.skip("podman is not installed: apt-get install --no-install-recommends podman runc conmon")
    there = podman("image", "exists", IMAGE).returncode == 0
    if not there:
        made = subprocess.run(["sh", str(SCRIPT), IMAGE], capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if made.returncode:
            pytest.skip(f"no image could be made: {(made.stderr.strip().splitlines() or ['no message'])[-1]}")
    try:
        with PythonREPL(launcher=Container(IMAGE), timeout=120) as repl:
            repl.get("0")
    except ReplError as e:
        pytest.skip(f"podman runs no container here: {e}")
    yield IMAGE
    if not there:
        podman("rmi", "--force", IMAGE)

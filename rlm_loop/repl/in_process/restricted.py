"""`RestrictedREPL`: cells in this process, behind RestrictedPython's guards."""

from __future__ import annotations

import ast
import builtins
import contextlib
import copy
import os
import sys
import time
import weakref
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from rlm_loop.errors import install_line
from rlm_loop.repl.base import ReplError
from rlm_loop.repl.host.incoming import decode
from rlm_loop.repl.in_process.modules import ANALYSIS
from rlm_loop.repl.in_process.session import InProcessSession
from rlm_loop.repl.resources import Resources
from rlm_loop.repl.settings import Settings
from rlm_loop.repl.worker import form_of

_LONGEST_REPR = 1_000_000


class RestrictedREPL(InProcessSession):
    """A `Session` without a process of its own: it costs nothing to start and works wherever Python does.

    For quick use with a model that is trusted well enough.  **It is a guard rail and no security boundary**: it keeps
    clumsy code from harming the host's variables and files, and refuses most ways out, but not all (RestrictedPython
    itself says that it is not a sandbox; `tests/repl/test_restricted.py` lists gaps that are known).  Memory is not
    limited.  Cells stop at `timeout`, in seconds, unless they are in a C function that cannot be interrupted, or,
    outside of the main thread, asleep.  For anything else use `PythonREPL`.

    Ordinary analysis code runs.  What does not: `async`, `match`, `except*`, `import *`, `exec` and `eval`, modules
    that are not in `imports`, attributes of frames and code, most double-underscore attributes, and private parts of
    objects that no cell made.  Prints of child processes or C code are not captured, and neither are those of threads.

    - `imports`: modules that may be imported, of which cells see only the public names.  Add to the default as in
      `imports=(*ANALYSIS, "numpy", "pandas")`; such a package reads and writes files, and is a way out for who
      looks for one.
    - `cwd`, `files`: the only folder in which `open` works; by default a private one.
    - `setup`: the host's own code, run without guards; the names that it leaves are there for the cells, but modules
      only as far as cells could import them.

    - `grace`: taken because the other kinds take it; nothing is killed here.

    Values of the host go in as deep copies, and answers come out as copies too.
    Needs `pip install -e ".[restricted]"`.
    """

    isolation = "restricted"

    def __init__(
        self,
        *,
        imports: Iterable[str] = ANALYSIS,
        cwd: Path | str | None = None,
        files: Mapping[str, str | bytes] | None = None,
        setup: str = "",
        timeout: float = 60.0,
        grace: float = 2.0,
        output_cap: int = 65_536,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        try:
            from rlm_loop.repl.in_process.guards import MAIN, restricted_builtins
        except ImportError as e:
            raise ReplError(f"restricted sessions need {e.name}: {install_line('restricted')}") from None
        settings = Settings(cwd, files or {}, setup, timeout, grace, output_cap, clock=clock)
        self._owned = Resources()
        self._finalizer = weakref.finalize(self, Resources.release, self._owned, os.getpid())
        names: dict[str, Any] = {"__name__": MAIN}
        owned = self._owned  # not `self`: built-ins outlive it in the hands of cells
        self._folder = lambda: owned.folder(settings.cwd, settings.files)
        self._builtins = restricted_builtins(imports, self._folder, sys_write, names)
        names["__builtins__"] = self._builtins
        super().__init__(names, self._builtins, settings)

    @property
    def cwd(self) -> Path:
        """The working folder: where `open` works."""
        return self._folder()

    def set(self, name: str, value: Any, *, reserved: bool = False) -> None:
        """Bind a variable to a deep copy.  A `reserved` one is restored after a cell that rebinds it.

        Raises `TypeError` for what cannot be copied.
        """
        try:
            copied = copy.deepcopy(value)
        except Exception as e:
            raise TypeError(f"cannot copy {name!r} ({type(value).__name__}) for the REPL: {e}") from e
        super().set(name, copied, reserved=reserved)

    def close(self) -> None:
        super().close()
        self._finalizer()

    def _run_setup(self) -> None:
        cells = self._names
        seen = {n: v for n, v in cells.items() if self._public(n)}
        self._names = {**seen, "__name__": cells["__name__"], "__builtins__": builtins}
        self._trusted = True
        try:
            super()._run_setup()
        finally:
            made, self._names, self._trusted = self._names, cells, False
        for name, value in made.items():
            if not self._public(name):
                continue
            if isinstance(value, ModuleType):
                with contextlib.suppress(ImportError):
                    cells[name] = self._builtins["__import__"](value.__name__, fromlist=("",))
            else:
                cells[name] = value

    _trusted = False

    def _compile(self, tree: ast.Module | ast.Expression, file: str) -> CodeType:
        if not self._trusted:
            from rlm_loop.repl.in_process.policy import Policy

            tree = ast.fix_missing_locations(Policy(file).visit(tree))
        return super()._compile(tree, file)

    def _crossing(self, value: Any) -> Any:
        return decode(form_of(value, _LONGEST_REPR))  # a text is its own form


def sys_write(text: str) -> None:
    """Cells print to `sys.stdout`, which is theirs while they run."""
    sys.stdout.write(text)

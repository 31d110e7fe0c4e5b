"""`NotebookREPL`: the agent works on the user's own variables, in the notebook that is running."""

from __future__ import annotations

import ast
import asyncio
import builtins
import contextvars
import inspect
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any

from rlm_loop.repl.base import ReplError
from rlm_loop.repl.in_process.session import MISSING, InProcessSession
from rlm_loop.repl.in_process.stopper import Stopper
from rlm_loop.repl.settings import Settings
from rlm_loop.repl.worker import RICH, STAND_INS, Displays, summary


@dataclass(frozen=True)
class Changes:
    """Names of the user's variables that are new, changed or gone.

    A changed one is bound to another object, or its size or short summary differs: a change deep inside an object is
    not noticed.
    """

    new: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.new or self.changed or self.deleted)

    def __str__(self) -> str:
        parts = {"new": self.new, "changed": self.changed, "deleted": self.deleted}
        texts = [f"{what}: {', '.join(names)}" for what, names in parts.items() if names]
        return "; ".join(texts) or "no variable changed"


def attach_current(**options: Any) -> NotebookREPL:
    """Return a session in the namespace of the notebook that calls this; `options` are those of `NotebookREPL`.

    Raises `ReplError` outside of IPython.
    """
    module = sys.modules.get("IPython")
    shell = module.get_ipython() if module is not None else None
    if shell is None:
        raise ReplError("there is no notebook here to attach to: call this in Jupyter or IPython, or use PythonREPL()")
    return NotebookREPL(shell, **options)


class NotebookREPL(InProcessSession):
    """A `Session` in the namespace of a running IPython shell: no copy, no process, no isolation of any kind.

    Cells read, change and delete the user's variables, and may do whatever the user may.  **Nothing can be killed**:
    Ctrl-C and `timeout` (seconds) stop a cell as Ctrl-C stops a notebook's cell, so a C function that ignores it
    is waited for; in another thread than the main one there is no Ctrl-C.  What cells print and display is in their
    results and not in the notebook; what child processes print goes where the notebook's do.

    `changes` lists what is new, changed or gone since the session began; `report` is given that as a line at the end,
    if there is anything to say.  Names that the session itself binds (`context`, tools) are given back at the end: the
    user's variables of the same names return.

    `grace` is taken because the other kinds take it.  Cells may use IPython's syntax, and `await`, which runs in an
    event loop of its own in another thread.
    """

    isolation = "notebook"

    def __init__(
        self,
        shell: Any,
        *,
        files: Mapping[str, str | bytes] | None = None,
        setup: str = "",
        timeout: float = 60.0,
        grace: float = 2.0,
        output_cap: int = 65_536,
        clock: Callable[[], float] = time.monotonic,
        report: Callable[[str], object] | None = print,
    ) -> None:
        if files:
            raise ValueError("a notebook session works in the notebook's own folder, so it takes no files")
        settings = Settings(None, {}, setup, timeout, grace, output_cap, clock=clock)
        self._shell, self._report = shell, report
        self._before: dict[str, Any] = {}
        self._displays = Displays()
        self._changes: Changes | None = None
        self._names: dict[str, Any] = shell.user_ns
        self._take_over("final_answer")
        super().__init__(self._names, builtins.__dict__, settings)
        self._slot.hide()
        self._seen = self._marks()

    @property
    def changes(self) -> Changes:
        """What the cells changed among the user's variables: so far, or until the session was closed."""
        if self._changes is not None:
            return self._changes
        seen, now = self._seen, self._marks()
        return Changes(
            tuple(n for n in now if n not in seen),
            tuple(n for n in seen if n in now and now[n] != seen[n]),
            tuple(n for n in seen if n not in now),
        )

    @property
    def cwd(self) -> Path:
        """The notebook's own working folder."""
        return Path.cwd()

    def close(self) -> None:
        """Give back the names that the session had bound, and report what the cells changed."""
        if self._closed:
            return
        super().close()
        self._changes = self.changes
        for name, value in self._before.items():
            if value is MISSING:
                self._names.pop(name, None)
            else:
                self._names[name] = value
        if self._report is not None and self._changes:
            self._report(f"the agent changed variables of this notebook: {self._changes}")

    def _marks(self) -> dict[str, tuple[int, str]]:
        """Return a mark of each of the user's variables, which keeps no value alive."""
        names = {n: v for n, v in list(self._names.items()) if n not in self._before}
        names.update((n, v) for n, v in self._before.items() if v is not MISSING)
        return {n: (id(v), summary(v)) for n, v in names.items() if self._public(n)}

    def _take_over(self, name: str) -> None:
        if name not in self._before:
            self._before[name] = self._names.pop(name, MISSING)

    def _give_back(self, name: str) -> None:
        self._before.pop(name, None)

    def _public(self, name: str) -> bool:
        hidden = self._shell.user_ns_hidden
        return not name.startswith("_") and not (name in hidden and self._names.get(name) is hidden[name])

    def _is_user(self, file: str) -> bool:
        return super()._is_user(file) or "ipykernel_" in file or file.startswith("<ipython")

    def _parse(self, code: str, file: str) -> ast.Module:
        try:
            return ast.parse(code, file)
        except SyntaxError:
            transformed = self._shell.transform_cell(code)
            if transformed.strip() == code.strip():
                raise
            return ast.parse(transformed, file)

    def _compile(self, tree: ast.Module | ast.Expression, file: str) -> CodeType:
        mode = "exec" if isinstance(tree, ast.Module) else "eval"
        return compile(tree, file, mode, ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)

    def _evaluate(self, code: CodeType) -> Any:
        value = super()._evaluate(code)
        return _awaited(value) if code.co_flags & inspect.CO_COROUTINE else value

    def _execute(self, code: str, file: str, stopper: Stopper, report: dict[str, Any]) -> None:
        displays, publisher = self._displays, self._shell.display_pub
        publisher.publish = displays.publish
        hidden, names = self._shell.user_ns_hidden, self._names
        own = {n: names.get(n, MISSING) for n in STAND_INS if n not in names or names[n] is hidden.get(n)}
        names.update({n: STAND_INS[n] for n in own})
        try:
            super()._execute(code, file, stopper, report)
        finally:
            displays.flush()
            del publisher.publish
            for name, value in own.items():
                if names.get(name) is STAND_INS[name]:
                    if value is MISSING:
                        del names[name]
                    else:
                        names[name] = value
            report["displays"] = displays.take()

    def _echoed(self, value: Any) -> None:
        self._displays.add(self._displays.bundle(value) or self._shell.display_formatter.format(value, include=RICH)[0])

    def _tidy(self) -> list[str]:
        restored = super()._tidy()
        self._slot.hide()
        return restored


def _awaited(coroutine: Any) -> Any:
    """Run a coroutine although the notebook's own event loop is running in this thread."""
    loop = asyncio.new_event_loop()
    task = loop.create_task(coroutine)
    over = threading.Event()  # `Thread.join` takes a thread for ended when a signal interrupts it

    def work() -> None:
        asyncio.set_event_loop(loop)
        try:
            loop.run_until_complete(asyncio.wait({task}))
        finally:
            loop.close()
            over.set()

    threading.Thread(target=contextvars.copy_context().run, args=(work,), daemon=True).start()
    try:
        over.wait()
    except BaseException:
        loop.call_soon_threadsafe(task.cancel)
        over.wait(0.5)
        raise
    return task.result()

"""`NotebookREPL`: the agent works on the user's own variables, in the notebook that is running."""

from __future__ import annotations

import builtins
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from rlm_loop.accounting.scope import Scope
from rlm_loop.repl.base import CellCall, ReplError
from rlm_loop.repl.contexts.on_disk import ContextFile
from rlm_loop.repl.host.calls import failed_call, tool_context
from rlm_loop.repl.host.child import Ended, Stopped
from rlm_loop.repl.host.launch import Launch
from rlm_loop.repl.host.shielded import raise_in
from rlm_loop.repl.in_process.streams import CellOutput, captured
from rlm_loop.repl.records import asked_with, kept
from rlm_loop.repl.session import Session
from rlm_loop.repl.settings import Settings
from rlm_loop.repl.text import RECORD_CAP
from rlm_loop.repl.worker import (
    MISSING,
    STAND_INS,
    Cells,
    HostEnded,
    form_of,
    load,
    restore,
    tool_error,
)


class NotebookREPL(Session):
    """A `Session` in the namespace of the running IPython shell: no copy, no process, no isolation of any kind.

    Cells read, change and delete the user's variables, and may do whatever the user may.  **Nothing can be killed**:
    Ctrl-C and `timeout` (seconds) stop a cell as Ctrl-C stops a notebook's cell, so a C function that ignores it
    is waited for; in another thread than the main one there is no Ctrl-C.  What cells print and display is in their
    results and not in the notebook; what child processes print goes where the notebook's do.  Host tools run in the
    thread of the cell.  Names that the session itself binds are given back at the end.

    `settings` are those of `PythonREPL`.  Cells may use IPython's syntax, and `await`, in an event loop of the
    session's own.  Raises `ReplError` outside of IPython.
    """

    def __init__(self, **settings: Any) -> None:
        module = sys.modules.get("IPython")
        shell = module and module.get_ipython()
        if shell is None:
            raise ReplError("there is no notebook here to attach to: use this in Jupyter or IPython, or PythonREPL()")
        options = Settings(**settings, rebuild=False)
        if options.files:
            raise ValueError("a notebook session works in the notebook's own folder, so it takes no files")
        super().__init__(options, lambda _: Launch((), {}), "notebook")  # no process is started
        self._child.append(_Notebook(shell, options, id(self)))

    @property
    def cwd(self) -> Path:
        """The notebook's own working folder."""
        return Path.cwd()

    def _frame(self, name: str, value: Any) -> dict[str, Any]:
        if isinstance(value, ContextFile):
            return value.frame(name)
        return {"t": "set", "name": name, "form": "object", "value": value}

    def _start(self) -> Any:
        self._child[0].closed = False
        return self._child[0]


class _Notebook(Cells):
    """Cells in the namespace of an IPython shell, in its syntax and with its displays, in the place of a `Child`."""

    kind = "notebook"

    def __init__(self, shell: Any, settings: Settings, session: int) -> None:
        super().__init__(shell.user_ns, builtins.__dict__, settings.output_cap, self._call)
        self._clock, self._session = settings.clock, session
        self.closed = True  # it is not set up
        self.hidden = shell.user_ns_hidden
        self.use(shell)
        self.cover("final_answer")
        self.answer.forget()
        self.answer.hide()
        self._tools: Mapping[str, Callable[..., Any]] = {}
        self._running: Running | None = None

    # -- what a session asks of a `Child`

    def greet(self) -> None: ...

    def died_meanwhile(self) -> str:
        return ""

    def drop(self) -> None:
        self.closed = True

    def kill(self) -> None:
        if (running := self._running) is not None:
            running.scope.end("the session was closed")
            running.at_most(0.0)

    def close(self) -> None:
        self.closed = True
        if self.loop is not None:
            self.loop.close()
        for name in [name for name, values in self.covered.items() if values]:
            self.bind(name, self.covered[name][0][0])

    def do(
        self, job: Mapping[str, Any], tools: Mapping[str, Callable[..., Any]], limit: float, grace: float | None = None
    ) -> tuple[Ended, Running]:
        report: dict[str, Any] = {}
        self._tools, output, running = tools, CellOutput(self.cap), Running(limit, self._clock)
        began = self._clock()
        if job["t"] in ("exec", "eval"):
            self._running = running
            self.answer.begin(job["code"] if job["t"] == "exec" else "")
            try:
                with captured(output), self._hidden_from_user(report), running:
                    self.work(dict(job), report)
            finally:
                self._running = None
                running.scope.end("the cell that asked has ended")
            if restored := restore(self.names, self.reserved):
                report["restored"] = restored
        else:
            self.work(dict(job), report)
        self.answer.hide()
        self._note_names(report)
        stopped: Stopped = "timeout" if running.fired else ""
        if running.ctrl_c:
            stopped, running.ended = "interrupted", KeyboardInterrupt()
        elif running.ended is not None:
            stopped = "budget"
        seconds = max(0.0, self._clock() - began - running.waited)
        return Ended("done", stopped, report, output.text(), seconds), running

    # -- how

    def _call(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        running = self._running
        if running is None:
            raise RuntimeError(f"{name}() was called by a thread whose cell has ended")
        if running.ended is not None:
            raise HostEnded("the cell was ended")
        record = CellCall(name, asked_with(args, kwargs))
        running.made.append(record)
        try:
            with running.paused(), captured(None):  # a thread that the cell started waits on time of its own
                value = tool_context(self._session, running.scope).run(self._tools[name], *args, **kwargs)
                record.outcome = kept(form_of(value, RECORD_CAP))
                return value
        except BaseException as e:
            record.outcome = failed_call(e)
            if "error" in record.outcome:
                raise tool_error(record.outcome["error"]) from None
            running.ended = e
            running.at_most(0.05)
            raise HostEnded(record.outcome["end"]) from None

    def _job_set(self, job: dict[str, Any], report: dict[str, Any]) -> None:
        if not job["reserved"] and not self.covered.get(job["name"]):
            self.cover(job["name"])
        self.put(job["name"], job["value"] if job["form"] == "object" else load(job), job["reserved"])

    @contextmanager
    def _hidden_from_user(self, report: dict[str, Any]) -> Generator[None]:
        """Keep what code displays for the report, and what it asks its user for from the user."""
        publisher, names = self.shell.display_pub, self.names
        own = {n: names.get(n, MISSING) for n in STAND_INS if n not in names or names[n] is self.hidden.get(n)}
        publisher.publish = self.displays.publish
        names.update({n: STAND_INS[n] for n in own})
        try:
            yield
        finally:
            del publisher.publish
            for name, value in own.items():
                if names.get(name) is STAND_INS[name]:
                    self.bind(name, value)
            report["displays"] = self.displays.take()

    def _execute(self, code: CodeType) -> Any:
        import asyncio

        running = asyncio._get_running_loop()  # pyright: ignore[reportPrivateUsage]
        asyncio._set_running_loop(None)  # the notebook's own waits for the cell, which may run another
        try:
            return super()._execute(code)
        finally:
            asyncio._set_running_loop(running)

    def _is_user(self, file: str) -> bool:
        return super()._is_user(file) or file.startswith("<ipython") or "ipykernel_" in file


_TICK = 0.02  # seconds between looks at the clock
_REPEAT = 0.2  # seconds between stops: a cell may swallow the first


class Running:
    """A cell in this process: its calls of host tools, as `CellCalls` has them, its time limit, and Ctrl-C.

    It runs in a `with` block, in which a `KeyboardInterrupt` stops it.

    The main thread is stopped by a signal, as Ctrl-C does it.  Another thread finds an exception at its next step of
    Python code.  A C function that looks for neither, or `except BaseException` around everything, is not stopped.
    The limit is real time without what passes while it is `paused`.  `fired`: the cell was stopped; `ctrl_c`: by the
    user.
    """

    def __init__(self, seconds: float, clock: Callable[[], float]) -> None:
        self.made: list[CellCall] = []
        self.ended: BaseException | None = None
        self.waited, self._clock = 0.0, clock
        self.scope = Scope()
        self._left, self._inside = seconds, False
        self._thread, self._lock, self._over = threading.get_ident(), threading.Lock(), threading.Event()
        self._main = threading.current_thread() is threading.main_thread()
        self._due = False
        self._old: Any = None
        self.fired = self.ctrl_c = False

    def __enter__(self) -> Running:
        if self._main:
            self._old = signal.signal(signal.SIGINT, self._on_signal)
        threading.Thread(target=self._watch, daemon=True).start()
        self._inside = True
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._leave()
        finally:
            self._over.set()
            if self._main:
                signal.signal(signal.SIGINT, self._old)

    @contextmanager
    def paused(self) -> Generator[None]:
        """The cell waits for a host tool; in another thread than the cell's this does nothing."""
        if threading.get_ident() != self._thread:
            yield
            return
        self._leave()
        began = self._clock()
        try:
            yield
        finally:
            self.waited += self._clock() - began
            self._inside = True

    def at_most(self, seconds: float) -> None:
        """Leave the cell so many seconds at most: it was ended, and has a moment to end by itself."""
        self._left = min(self._left, seconds)

    def _leave(self) -> None:
        with self._lock:
            self._inside = False
            if not self._main:
                raise_in(self._thread, None)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        due, self._due = self._due, False
        if due and self._inside:
            raise KeyboardInterrupt
        if not due and callable(self._old):
            self.ctrl_c = self._old is signal.default_int_handler
            self._old(number, frame)

    def _watch(self) -> None:
        before = time.monotonic()
        while not self._over.wait(_TICK):
            now = time.monotonic()
            passed, before = now - before, now
            with self._lock:
                if not self._inside:
                    continue
                self._left -= passed
                if self._left > 0:
                    continue
                self.fired, self._left = True, _REPEAT
                if self._main:
                    self._due = True
                    signal.pthread_kill(self._thread, signal.SIGINT)
                else:
                    raise_in(self._thread, KeyboardInterrupt)

"""`NotebookREPL`: the agent works on the user's own variables, in the notebook that is running."""

from __future__ import annotations

import asyncio
import builtins
import contextvars
import inspect
import linecache
import sys
import threading
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from types import CodeType
from typing import Any

from rlm_loop.accounting.scope import Scope, cell_scope
from rlm_loop.repl.base import CellCall, CellResult, EvaluationFailed, ReplError, Session, SetupFailed
from rlm_loop.repl.contexts.on_disk import ContextFile
from rlm_loop.repl.host.calls import inside
from rlm_loop.repl.host.driver import Ended, Stopped
from rlm_loop.repl.host.transfer import on_disk_frame
from rlm_loop.repl.in_process.stopper import CellStopped, Stopper
from rlm_loop.repl.in_process.streams import CellOutput, captured
from rlm_loop.repl.kernel.side import as_python, show_as_ipython
from rlm_loop.repl.names import about_tool, check_names
from rlm_loop.repl.records import MOST, asked_with, kept
from rlm_loop.repl.results import cell_result, given
from rlm_loop.repl.settings import Settings
from rlm_loop.repl.worker import (
    MISSING,
    STAND_INS,
    AnswerGiven,
    Cells,
    HostEnded,
    bounded,
    form_of,
    load,
    restore,
    summary,
    tool_error,
)

_ANSWER = "final_answer"
_EXPRESSION = "<expression>"
_CONCLUDING = 0.3  # seconds that making the text of an error, or of an answer, may take beyond the time limit


def attach_current(**options: Any) -> NotebookREPL:
    """Return a session in the namespace of the notebook that calls this; `options` are those of `NotebookREPL`.

    Raises `ReplError` outside of IPython.
    """
    module = sys.modules.get("IPython")
    shell = module.get_ipython() if module is not None else None
    if shell is None:
        raise ReplError("there is no notebook here to attach to: call this in Jupyter or IPython, or use PythonREPL()")
    return NotebookREPL(shell, **options)


class NotebookREPL(Session):
    """A `Session` in the namespace of a running IPython shell: no copy, no process, no isolation of any kind.

    Cells read, change and delete the user's variables, and may do whatever the user may.  **Nothing can be killed**:
    Ctrl-C and `timeout` (seconds) stop a cell as Ctrl-C stops a notebook's cell, so a C function that ignores it
    is waited for; in another thread than the main one there is no Ctrl-C.  What cells print and display is in their
    results and not in the notebook; what child processes print goes where the notebook's do.

    `changes` lists what is new, changed or gone since the session began; `report` is given that as a line at the end,
    if there is anything to say.  Names that the session itself binds are given back at the end: the user's variables
    of the same names return.

    `grace` is taken because the other kinds take it.  Cells may use IPython's syntax, and `await`, which runs in an
    event loop of its own in another thread.
    """

    isolation = "notebook"

    def __init__(
        self,
        shell: Any,
        *,
        files: Mapping[str, str | bytes] | None = None,
        report: Callable[[str], object] | None = print,
        **settings: Any,
    ) -> None:
        if files:
            raise ValueError("a notebook session works in the notebook's own folder, so it takes no files")
        options = Settings(**settings)
        self.timeout, self.grace, self.output_cap = options.timeout, options.grace, options.output_cap
        self._setup, self._clock = options.setup, options.clock
        self._shell, self._report = shell, report
        self._inner = _NotebookCells(shell, options.output_cap)
        self._names, self._reserved, self._covered = self._inner.names, self._inner.reserved, self._inner.covered
        self._slot = self._inner.answer
        self._covered[_ANSWER] = [(self._names.pop(_ANSWER, MISSING), False)]
        self._slot.forget()
        self._slot.hide()
        self._tools: set[str] = set()
        self._own: set[str] = set()
        self._turns = threading.RLock()
        self._cells = 0
        self._begun = self._closed = False
        self._stopper: Stopper | None = None
        self._scope = Scope()
        self._spent: BaseException | None = None
        self._waited = 0.0
        self._calls: list[CellCall] = []
        self._seen = self._marks()
        self._changes: str | None = None

    @property
    def changes(self) -> str:
        """The user's variables that are new, changed and deleted, so far or until the session was closed.

        A changed one is bound to another object, or its size or short summary differs: a change deep inside an object
        is not noticed.
        """
        if self._changes is not None:
            return self._changes
        seen, now = self._seen, self._marks()
        kinds = {
            "new": [n for n in now if n not in seen],
            "changed": [n for n in seen if n in now and now[n] != seen[n]],
            "deleted": [n for n in seen if n not in now],
        }
        return "; ".join(f"{kind}: {', '.join(names)}" for kind, names in kinds.items() if names)

    @property
    def cwd(self) -> Path:
        """The notebook's own working folder."""
        return Path.cwd()

    @property
    def variables(self) -> tuple[str, ...]:
        """Public names in the namespace, tools not included."""
        return tuple(n for n in list(self._names) if self._public(n) and n not in self._tools and n != _ANSWER)

    # -- the session protocol

    def run(self, code: str, *, timeout: float | None = None, grace: float | None = None) -> CellResult:
        limit = self.timeout if timeout is None else timeout
        with self._turn():
            self._cells += 1
            ended, raised = self._perform(code, f"<cell {self._cells}>", limit)
            self.last = cell_result(ended, limit, self.output_cap, calls=self._calls)
            if raised is not None:
                raise raised
            return self.last

    def set(self, name: str, value: Any, *, reserved: bool = False) -> None:
        check_names([name])
        if name in self._tools:
            raise ValueError(f"{name!r} is the name of a tool; choose another name for the variable")
        if isinstance(value, ContextFile):
            value = load(on_disk_frame(name, value))
        with self._turn(begin=False):
            if not reserved and name not in self._covered:
                self._inner.cover(name)
            self._inner.put(name, value, reserved)
            self._own.add(name)

    def get(self, expression: str, *, timeout: float | None = None) -> Any:
        with self._turn():
            return given(self._must(expression, _EXPRESSION, timeout, EvaluationFailed, repr(expression))).value

    def add_tools(self, tools: Mapping[str, Callable[..., Any]]) -> None:
        """As in `Session`; a call runs in the thread of the cell."""
        check_names(tools, taken=dict.fromkeys(self._own))
        with self._turn(begin=False):
            for name, tool in tools.items():
                self._inner.put(name, self._stand_in(name, tool), reserved=True)
                self._tools.add(name)

    def give_back(self, names: Iterable[str]) -> None:
        with self._turn(begin=False):
            for name in self._reserved.keys() & set(names):
                self._inner.uncover(name)
                if name not in self._covered:
                    self._tools.discard(name)
                    self._own.discard(name)

    def new_run(self) -> None:
        with self._turn(begin=False):
            self._slot.forget()
            self._slot.hide()

    def close(self) -> None:
        """Give back the names that the session had bound, and report what the cells changed.

        A cell that runs in another thread is stopped.
        """
        if self._closed:
            return
        self._closed = True
        self._scope.end("the session was closed")
        if (stopper := self._stopper) is not None and not stopper.mine:
            stopper.limit(0.0)
        self._changes = self.changes
        for name, values in self._covered.items():
            self._rebind(name, values[0][0])
        if self._report is not None and self._changes:
            self._report(f"the agent changed variables of this notebook: {self._changes}")

    # -- the user's names

    def _rebind(self, name: str, value: Any) -> None:
        if value is MISSING:
            self._names.pop(name, None)
        else:
            self._names[name] = value

    def _marks(self) -> dict[str, tuple[int, str]]:
        """Return a mark of each of the user's variables, which keeps no value alive."""
        names = {n: v for n, v in list(self._names.items()) if n not in self._covered}
        names.update((n, values[0][0]) for n, values in self._covered.items() if values[0][0] is not MISSING)
        return {n: (id(v), summary(v)) for n, v in names.items() if self._public(n)}

    def _public(self, name: str) -> bool:
        hidden = self._shell.user_ns_hidden
        return not name.startswith("_") and not (name in hidden and self._names.get(name) is hidden[name])

    # -- how

    @contextmanager
    def _turn(self, begin: bool = True) -> Generator[None]:
        if id(self) in inside.get():
            raise ReplError("a tool cannot use the REPL that is waiting for it; give the tool a session of its own")
        with self._turns:
            if self._closed:
                raise ReplError("this REPL is closed; open a new one")
            if begin and not self._begun:
                if self._setup:
                    self._must(self._setup, "<setup>", None, SetupFailed, "the setup code failed")
                self._begun = True
            yield

    def _must(self, code: str, file: str, timeout: float | None, failure: type[ReplError], what: str) -> Any:
        """Run code and return its report; raise `failure` where it fails."""
        limit = self.timeout if timeout is None else timeout
        ended, raised = self._perform(code, file, limit)
        if raised is not None:
            raise raised
        if ended.stopped or "error" in ended.report:
            failed = cell_result(ended, limit, self.output_cap)
            more = "" if file == _EXPRESSION else failed.output
            raise failure(f"{what}: {failed.message}\n{more}".rstrip())
        return ended.report

    def _perform(self, code: str, file: str, limit: float) -> tuple[Ended, BaseException | None]:
        """Run code; how that ended, and what is to be raised to the caller of `run`."""
        report: dict[str, Any] = {}
        output = CellOutput(self.output_cap)
        self._spent, self._waited, self._scope, self._calls = None, 0.0, Scope(), []
        if file != _EXPRESSION:
            self._slot.begin(code)
        began = self._clock()
        stopper = self._stopper = Stopper(limit)
        try:
            with stopper, captured(output):
                try:
                    self._execute(code, file, stopper, report)
                except AnswerGiven:
                    pass
                except BaseException as error:
                    stopper.leave()
                    self._conclude(stopper, report, lambda e=error: {"error": self._inner.described(e)})
                if file.startswith("<cell ") and self._slot.given():
                    answer = self._names["final_answer"]
                    self._conclude(stopper, report, lambda: {"answer": bounded(answer, self.output_cap)})
        finally:
            self._stopper = None
            self._scope.end("the cell that asked has ended")
            self._slot.hide()
        if restored := restore(self._names, self._reserved):
            report["restored"] = restored
        stopped: Stopped = ""
        raised: BaseException | None = None
        if stopper.ctrl_c:
            stopped, raised = "interrupted", KeyboardInterrupt()
        elif self._spent is not None:
            stopped, raised = "budget", self._spent
        elif stopper.fired:
            stopped = "timeout"
        seconds = max(0.0, self._clock() - began - self._waited)
        return Ended("done", stopped, report, output.piece(), seconds), raised

    def _conclude(self, stopper: Stopper, report: dict[str, Any], make: Callable[[], dict[str, Any]]) -> None:
        """Add to the report what is made by the texts of the cell's objects: their code may raise, and never end."""
        stopper.at_least(_CONCLUDING)
        try:
            stopper.enter()
            try:
                made = make()
            finally:
                stopper.leave()
            report.update(made)
        except BaseException as error:
            told = "KeyboardInterrupt" if isinstance(error, CellStopped) else type(error).__name__
            report.setdefault("error", {"message": told, "text": [told + "\n", 0, ""]})

    def _execute(self, code: str, file: str, stopper: Stopper, report: dict[str, Any]) -> None:
        """Run code while what it displays, and asks its user for, stays with the session."""
        displays, publisher = self._inner.displays, self._shell.display_pub
        hidden, names = self._shell.user_ns_hidden, self._names
        own = {n: names.get(n, MISSING) for n in STAND_INS if n not in names or names[n] is hidden.get(n)}
        publisher.publish = displays.publish
        names.update({n: STAND_INS[n] for n in own})
        stopper.enter()
        try:
            self._inner.run(code, file, report)
        finally:
            stopper.leave()
            displays.flush()
            del publisher.publish
            for name, value in own.items():
                if names.get(name) is STAND_INS[name]:
                    self._rebind(name, value)
            report["displays"] = displays.take()

    def _stand_in(self, name: str, tool: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            stopper = self._stopper
            if stopper is None:
                raise RuntimeError(f"{name}() was called by a thread whose cell has ended")
            if self._spent is not None:
                raise HostEnded("the cell was ended")
            mine = stopper.mine  # a thread that the cell started waits on time of its own
            if mine:
                stopper.leave()
            began = self._clock()
            record = CellCall(name, asked_with(args, kwargs))
            self._calls.append(record)
            token, within = inside.set(inside.get() | {id(self)}), cell_scope.set(self._scope)
            try:
                with captured(None):
                    value = tool(*args, **kwargs)
                    record.outcome = kept(form_of(value, MOST))
                    return value
            except BaseException as e:
                record.outcome = {"error": f"{type(e).__name__}: {e}"}
                if isinstance(e, Exception) and type(e).__name__ != "BudgetSpent":
                    raise tool_error(f"{type(e).__name__}: {e}") from None
                self._spent = e
                stopper.limit(0.05)
                raise HostEnded(f"{type(e).__name__}: {e}") from None
            finally:
                inside.reset(token)
                cell_scope.reset(within)
                if mine:
                    self._waited += self._clock() - began
                    stopper.enter()

        call.__name__ = call.__qualname__ = name
        call.__doc__ = about_tool(name, tool)
        call.__module__ = "__main__"
        return call


class _NotebookCells(Cells):
    """Cells in the namespace of an IPython shell, in its syntax and with its displays."""

    def __init__(self, shell: Any, cap: int) -> None:
        super().__init__(shell.user_ns, builtins.__dict__, cap)
        self._shell = shell
        self._sources: dict[str, str] = {}
        show_as_ipython(shell, self.displays)

    def run(self, code: str, file: str, report: dict[str, Any]) -> None:
        if file == _EXPRESSION:
            self._job_eval({"code": code}, report)
            return
        self._sources[file] = code
        self._job_exec({"code": as_python(self._shell, code, self.flags), "file": file}, report)

    def _execute(self, code: CodeType) -> Any:
        value = eval(code, self.names)
        return _awaited(value) if code.co_flags & inspect.CO_COROUTINE else value

    def described(self, error: BaseException) -> dict[str, Any]:
        for file, code in self._sources.items():  # other sessions of this process use the same names
            linecache.cache[file] = (len(code), None, code.splitlines(True), file)
        if isinstance(error, CellStopped):
            error = KeyboardInterrupt().with_traceback(error.__traceback__)
        return self._describe(error)

    def _is_user(self, file: str) -> bool:
        return super()._is_user(file) or file.startswith("<ipython") or "ipykernel_" in file


def _awaited(coroutine: Any) -> Any:
    """Run a coroutine although the notebook's own event loop is running in this thread."""
    loop = asyncio.new_event_loop()
    task = loop.create_task(coroutine)
    over = threading.Event()  # `Thread.join` takes a thread for ended when a signal interrupts it

    def work() -> None:
        asyncio.set_event_loop(loop)
        with closing(loop):
            loop.run_until_complete(asyncio.wait({task}))
        over.set()

    threading.Thread(target=contextvars.copy_context().run, args=(work,), daemon=True).start()
    try:
        over.wait()
    except BaseException:
        loop.call_soon_threadsafe(task.cancel)
        over.wait(0.5)
        raise
    return task.result()

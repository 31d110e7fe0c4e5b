"""The base of sessions whose cells run in this process: nothing is started, and nothing can be killed."""

from __future__ import annotations

import contextlib
import linecache
import threading
from collections.abc import Callable, Generator, Iterable, Mapping, MutableMapping
from types import CodeType
from typing import Any

from rlm_loop.accounting.scope import Scope, cell_scope
from rlm_loop.repl.base import CellResult, EvaluationFailed, ReplError, Session, SetupFailed
from rlm_loop.repl.contexts.on_disk import ContextFile, ContextFolder
from rlm_loop.repl.host.calls import inside
from rlm_loop.repl.host.driver import Ended, Stopped
from rlm_loop.repl.host.transfer import on_disk_frame
from rlm_loop.repl.in_process.stopper import CellStopped, Stopper
from rlm_loop.repl.in_process.streams import CellOutput, captured, uncaptured
from rlm_loop.repl.names import about_tool, check_names
from rlm_loop.repl.results import cell_result, given
from rlm_loop.repl.settings import Settings
from rlm_loop.repl.worker import (
    AnswerGiven,
    AnswerSlot,
    HostEnded,
    cut,
    explain,
    load,
    one_line,
    portable,
    restore,
    tool_error,
)

_MISSING = object()
_LONGEST_REPR = 1_000_000
_CONCLUDING = 0.3  # seconds that making the text of an error, or of an answer, may take beyond the time limit


class InProcessSession(Session):
    """A `Session` in this process.  A subclass says how code is compiled and which namespace it runs in."""

    isolation = "none"

    def __init__(self, names: dict[str, Any], shown: MutableMapping[str, Any], settings: Settings) -> None:
        self.timeout, self.grace, self.output_cap = settings.timeout, settings.grace, settings.output_cap
        self._names, self._setup, self._clock = names, settings.setup, settings.clock
        self._slot = AnswerSlot(names, shown)
        self._slot.forget()
        self._turns = threading.RLock()
        self._tools: dict[str, Callable[..., Any]] = {}
        self._covered: dict[str, list[tuple[Callable[..., Any] | None, Any]]] = {}  # tools and values under tools
        self._reserved: dict[str, Any] = {}
        self._own: set[str] = set()
        self._sources: dict[str, str] = {}
        self._cells = 0
        self._begun = self._closed = False
        self._stopper: Stopper | None = None
        self._scope = Scope()
        self._spent: BaseException | None = None

    # -- what a subclass decides

    def _parts(self, code: str, file: str) -> tuple[CodeType | None, CodeType | None]:
        """The statements of a cell, and its last expression where it has one."""
        raise NotImplementedError

    def _expression(self, code: str) -> CodeType:
        raise NotImplementedError

    def _public(self, name: str) -> bool:
        """Whether a name of the namespace counts as a variable of the session's cells."""
        return not name.startswith("_")

    def _prepare(self) -> None:
        """Before the first use, once."""

    def _crossing(self, value: Any) -> Any:
        """A value on its way into the namespace, or to or from a host tool."""
        return value

    def _is_user(self, file: str) -> bool:
        return file.startswith(("<cell ", "<setup>", "<expression>"))

    def _evaluate(self, code: CodeType) -> Any:
        return eval(code, self._names)

    def _echoed(self, value: Any) -> None:
        """The value of a last expression is about to be shown."""

    # -- the session protocol

    def run(self, code: str, *, timeout: float | None = None, grace: float | None = None) -> CellResult:
        """Run one cell.  What the cell does is in the result; `timeout` overrides the session's, in seconds.

        Raises what a host tool raised to end the run (a `BudgetSpent`, or anything but an `Exception`),
        `KeyboardInterrupt` after Ctrl-C (the cell is stopped, the session stays usable), and `ReplError`.
        """
        limit = self.timeout if timeout is None else timeout
        with self._turn():
            self._cells += 1
            ended, raised = self._perform(code, f"<cell {self._cells}>", limit)
            self.last = cell_result(ended, limit, self.output_cap)
            if raised is not None:
                raise raised
            return self.last

    def set(self, name: str, value: Any, *, reserved: bool = False) -> None:
        """Bind a variable.  A `reserved` one is restored after a cell that rebinds it."""
        check_names([name])
        if name in self._tools:
            raise ValueError(f"{name!r} is the name of a tool; choose another name for the variable")
        if isinstance(value, ContextFile | ContextFolder):
            value = load(on_disk_frame(name, value))
        with self._turn(begin=False):
            self._take_over(name)
            self._names[name] = value
            self._own.add(name)
            self._reserved.pop(name, None)
            if reserved:
                self._reserved[name] = value

    def get(self, expression: str, *, timeout: float | None = None) -> Any:
        """The value of an expression: equal to the one in the namespace where it has a plain form, else its `repr`.

        `timeout` overrides the session's, in seconds.  Raises `EvaluationFailed` where evaluating it fails.
        """
        limit = self.timeout if timeout is None else timeout
        with self._turn():
            ended, raised = self._perform(expression, "<expression>", limit)
            if raised is not None:
                raise raised
            if ended.stopped or "error" in ended.report:
                failed = cell_result(ended, limit, self.output_cap)
                raise EvaluationFailed(f"{expression!r}: {failed.message}")
            return given(ended.report).value

    def add_tools(self, tools: Mapping[str, Callable[..., Any]]) -> None:
        """Make host functions callable from cells, over variables and tools of the same names.

        A call runs in the thread of the cell.  What it raises arrives in the cell as a `RuntimeError`, except that a
        `BudgetSpent` or anything but an `Exception` ends the cell and is raised by `run`.
        """
        check_names(tools, taken=dict.fromkeys(self._own))
        with self._turn(begin=False):
            for name, tool in tools.items():
                below = self._tools.get(name), self._names.get(name, _MISSING)
                self._covered.setdefault(name, []).append(below)
                self._take_over(name)
                self._tools[name] = tool
                self._names[name] = self._reserved[name] = self._stand_in(name, tool)

    def remove_tools(self, names: Iterable[str]) -> None:
        """Take the latest host functions of these names away: what they were put over returns."""
        with self._turn(begin=False):
            for name in self._tools.keys() & set(names):
                tool, value = self._covered[name].pop()
                if tool is not None:
                    self._tools[name], self._names[name], self._reserved[name] = tool, value, value
                    continue
                del self._tools[name], self._reserved[name], self._names[name]
                if value is not _MISSING:
                    self._names[name] = value
                self._give_back(name)

    def new_run(self) -> None:
        """Forget an answer left by an earlier run; variables stay."""
        with self._turn(begin=False):
            self._slot.forget()

    def close(self) -> None:
        """Let go of the namespace; a cell that runs in another thread is stopped.  May be called again."""
        self._closed = True
        self._scope.end("the session was closed")
        if (stopper := self._stopper) is not None and not stopper.mine:
            stopper.stop()

    # -- beyond the protocol

    def start(self) -> None:
        """Run the setup code now instead of at first use; raises `SetupFailed`."""
        with self._turn():
            pass

    @property
    def variables(self) -> tuple[str, ...]:
        """Public names in the namespace, tools not included."""
        names = [n for n in list(self._names) if self._public(n)]
        return tuple(n for n in names if n not in self._tools and n != "final_answer")

    # -- how

    @contextlib.contextmanager
    def _turn(self, begin: bool = True) -> Generator[None]:
        if id(self) in inside.get():
            raise ReplError("a tool cannot use the REPL that is waiting for it; give the tool a session of its own")
        with self._turns:
            if self._closed:
                raise ReplError("this REPL is closed; open a new one")
            if begin and not self._begun:
                self._prepare()
                if self._setup:
                    self._run_setup()
                self._begun = True
            yield

    def _run_setup(self) -> None:
        ended, raised = self._perform(self._setup, "<setup>", self.timeout)
        if raised is not None:
            raise raised
        if ended.stopped or "error" in ended.report:
            reason = cell_result(ended, self.timeout, self.output_cap)
            raise SetupFailed(f"the setup code failed: {reason.message}\n{reason.output}".rstrip())
        self._slot.forget()

    def _take_over(self, name: str) -> None:
        """The session is about to bind a name."""

    def _give_back(self, name: str) -> None:
        """The name is the user's again."""

    def _perform(self, code: str, file: str, limit: float) -> tuple[Ended, BaseException | None]:
        """Run code; how that ended, and what is to be raised to the caller of `run`."""
        report: dict[str, Any] = {}
        output = CellOutput(self.output_cap)
        self._sources[file] = code
        self._spent = None
        if file != "<expression>":
            self._slot.begin(code)
        began = self._clock()
        self._waited = 0.0
        self._scope = Scope()
        stopper = self._stopper = Stopper(limit)
        try:
            with stopper, captured(output):
                try:
                    self._execute(code, file, stopper, report)
                except AnswerGiven:
                    pass
                except CellStopped as error:
                    stopper.leave()
                    if stopper.fired:
                        report["error"] = self._describe(error, "KeyboardInterrupt")
                except BaseException as error:
                    stopper.leave()
                    self._conclude(stopper, report, lambda e=error: {"error": self._describe(e)})
                if file.startswith("<cell "):
                    self._conclude(stopper, report, self._answer)
        finally:
            self._stopper = None
            self._scope.end("the cell that asked has ended")
        if restored := self._tidy():
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

    def _answer(self) -> dict[str, Any]:
        return {"answer": portable(self._names["final_answer"], self.output_cap)} if self._slot.given() else {}

    def _conclude(self, stopper: Stopper, report: dict[str, Any], make: Callable[[], dict[str, Any]]) -> None:
        """Add to the report what is made by the texts of the cell's objects: their code may raise, and never end."""
        stopper.at_least(_CONCLUDING)
        try:
            stopper.enter()
            try:
                made = make()
            finally:
                stopper.leave()
        except BaseException as error:
            told = "KeyboardInterrupt" if isinstance(error, CellStopped) else one_line_of(error)
            report.setdefault("error", {"message": told, "text": [told + "\n", 0, ""]})
        else:
            report.update(made)

    def _execute(self, code: str, file: str, stopper: Stopper, report: dict[str, Any]) -> None:
        """Only what the cell itself says runs between `enter` and `leave`."""
        if file == "<expression>":
            body, last = None, self._expression(code)
        else:
            body, last = self._parts(code, file)
        stopper.enter()
        try:
            if body is not None:
                self._evaluate(body)
            if last is not None:
                value = self._evaluate(last)
                if file == "<expression>":
                    report.update(portable(value, self.output_cap))
                elif value is not None:
                    self._echoed(value)
                    report["echo"] = cut(repr(value), self.output_cap)
        finally:
            stopper.leave()

    def _describe(self, error: BaseException, known_as: str = "") -> dict[str, Any]:
        for file, code in self._sources.items():  # other sessions of this process use the same names
            linecache.cache[file] = (len(code), None, code.splitlines(True), file)
        lines = explain(error, self._is_user)
        if known_as:
            lines[-1] = known_as + "\n"
        return {"message": known_as or one_line(error), "text": cut("".join(lines), self.output_cap)}

    def _tidy(self) -> list[str]:
        """Undo what the cell did to the session's own parts; return the reserved names that it had rebound."""
        return restore(self._names, self._reserved)

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
            token, within = inside.set(inside.get() | {id(self)}), cell_scope.set(self._scope)
            try:
                with uncaptured():
                    crossed = [self._crossing(a) for a in args]
                    return self._crossing(tool(*crossed, **{k: self._crossing(v) for k, v in kwargs.items()}))
            except BaseException as e:
                if isinstance(e, Exception) and type(e).__name__ != "BudgetSpent":
                    raise tool_error(f"{type(e).__name__}: {e}") from None
                self._spent = e
                stopper.end_soon()
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


def one_line_of(error: BaseException) -> str:
    """Like `one_line`, whatever the text of the error does."""
    try:
        return one_line(error)
    except BaseException:
        return type(error).__name__

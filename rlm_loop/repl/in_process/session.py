"""The base of sessions whose cells run in this process: nothing is started, and nothing can be killed."""

from __future__ import annotations

import ast
import contextlib
import linecache
import threading
from collections.abc import Callable, Generator, Iterable, Mapping, MutableMapping
from types import CodeType
from typing import Any

from rlm_loop.accounting.scope import Scope, cell_scope
from rlm_loop.repl.base import CellCall, CellResult, EvaluationFailed, ReplError, Session, SetupFailed
from rlm_loop.repl.contexts.on_disk import ContextFile, ContextFolder
from rlm_loop.repl.host.calls import inside
from rlm_loop.repl.host.driver import Ended, Stopped
from rlm_loop.repl.host.transfer import on_disk_frame
from rlm_loop.repl.in_process.stopper import CellStopped, Stopper
from rlm_loop.repl.in_process.streams import CellOutput, captured
from rlm_loop.repl.names import about_tool, check_names
from rlm_loop.repl.records import MOST, asked_with, kept
from rlm_loop.repl.results import cell_result, given
from rlm_loop.repl.settings import Settings
from rlm_loop.repl.worker import (
    AnswerGiven,
    AnswerSlot,
    HostEnded,
    cut,
    explain,
    form_of,
    load,
    one_line,
    portable,
    restore,
    take_last,
    tool_error,
)

MISSING = object()
_EXPRESSION = "<expression>"
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
        self._waited = 0.0
        self._calls: list[CellCall] = []

    # -- what a subclass decides

    def _parse(self, code: str, file: str) -> ast.Module:
        return ast.parse(code, file)

    def _compile(self, tree: ast.Module | ast.Expression, file: str) -> CodeType:
        return compile(tree, file, "exec" if isinstance(tree, ast.Module) else "eval", dont_inherit=True)

    def _evaluate(self, code: CodeType) -> Any:
        return eval(code, self._names)

    def _public(self, name: str) -> bool:
        """Whether a name of the namespace counts as a variable of the session's cells."""
        return not name.startswith("_")

    def _crossing(self, value: Any) -> Any:
        """Return a value as it goes to a host tool or comes from one."""
        return value

    def _is_user(self, file: str) -> bool:
        return file.startswith(("<cell ", "<setup>", _EXPRESSION))

    def _echoed(self, value: Any) -> None:
        """The value of a last expression is about to be shown."""

    def _take_over(self, name: str) -> None:
        """The session is about to bind a name."""

    def _give_back(self, name: str) -> None:
        """The name is the user's again."""

    def _tidy(self) -> list[str]:
        """Undo what the cell did to the session's own parts; return the reserved names that it had rebound."""
        return restore(self._names, self._reserved)

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
        with self._turn():
            report = self._must(expression, _EXPRESSION, timeout, EvaluationFailed, repr(expression))
            return given(report).value

    def add_tools(self, tools: Mapping[str, Callable[..., Any]]) -> None:
        """As in `Session`; a call runs in the thread of the cell."""
        check_names(tools, taken=dict.fromkeys(self._own))
        with self._turn(begin=False):
            for name, tool in tools.items():
                self._covered.setdefault(name, []).append((self._tools.get(name), self._names.get(name, MISSING)))
                self._take_over(name)
                self._tools[name] = tool
                self._names[name] = self._reserved[name] = self._stand_in(name, tool)

    def remove_tools(self, names: Iterable[str]) -> None:
        with self._turn(begin=False):
            for name in self._tools.keys() & set(names):
                tool, value = self._covered[name].pop()
                if tool is not None:
                    self._tools[name], self._names[name], self._reserved[name] = tool, value, value
                    continue
                del self._tools[name], self._reserved[name], self._names[name]
                if value is not MISSING:
                    self._names[name] = value
                self._give_back(name)

    def new_run(self) -> None:
        with self._turn(begin=False):
            self._slot.forget()

    def close(self) -> None:
        """Let go of the namespace; a cell that runs in another thread is stopped."""
        self._closed = True
        self._scope.end("the session was closed")
        if (stopper := self._stopper) is not None and not stopper.mine:
            stopper.limit(0.0)

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
                if self._setup:
                    self._run_setup()
                self._begun = True
            yield

    def _run_setup(self) -> None:
        self._must(self._setup, "<setup>", None, SetupFailed, "the setup code failed")
        self._slot.forget()

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
        self._sources[file] = code
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
                except CellStopped as error:
                    stopper.leave()
                    report["error"] = self._describe(error, "KeyboardInterrupt")
                except BaseException as error:
                    stopper.leave()
                    self._conclude(stopper, report, lambda e=error: {"error": self._describe(e)})
                if file.startswith("<cell ") and self._slot.given():
                    answer = self._names["final_answer"]
                    self._conclude(stopper, report, lambda: {"answer": portable(answer, self.output_cap)})
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
        """Run code; only what the cell itself says runs between `enter` and `leave`."""
        body: CodeType | None = None
        if file == _EXPRESSION:
            last: Any = ast.parse(code, file, "eval").body
        else:
            tree = self._parse(code, file)
            last = take_last(tree, code)
            body = self._compile(tree, file)
        value = last and self._compile(ast.Expression(last), file)
        stopper.enter()
        try:
            if body is not None:
                self._evaluate(body)
            if value is not None:
                value = self._evaluate(value)
                if file == _EXPRESSION:
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
                    crossed = [self._crossing(a) for a in args]
                    value = self._crossing(tool(*crossed, **{k: self._crossing(v) for k, v in kwargs.items()}))
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

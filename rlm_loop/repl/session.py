"""Sessions over a REPL in a process of its own, which is replaced where it is lost."""

from __future__ import annotations

import builtins
import inspect
import itertools
import keyword
import os
import secrets
import sys
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

from rlm_loop.errors import install_line
from rlm_loop.repl.base import CellResult, EvaluationFailed, ReplError, SetupFailed
from rlm_loop.repl.host.calls import inside
from rlm_loop.repl.host.child import Child, Ended
from rlm_loop.repl.host.clearing import Listing, changes, listing, remove
from rlm_loop.repl.host.frames import set_frame
from rlm_loop.repl.host.launch import WORKER, Launch, Launcher, plain
from rlm_loop.repl.host.shielded import shielded
from rlm_loop.repl.isolation.launchers import launcher_named
from rlm_loop.repl.records import CellRecord, difference, recorded_tools
from rlm_loop.repl.results import NO_LOSS, Loss, cell_result, given, names_in, restart_after
from rlm_loop.repl.settings import Settings
from rlm_loop.repl.text import settled

_LEAST = 5.0  # seconds that a cell may take when it runs again, more if it took long; a busy machine is slow
CLOSED = "this REPL is closed; open a new one"
_SEE_EVERYTHING = ("plain", "kernel", "restricted", "custom")  # kinds of isolation that hide no file of the user's


class _Ended(Exception):
    """The REPL ended while it was rebuilt."""


class Session:
    """A persistent Python namespace in which cells run; it is a tool, and ends with a `with` block.

    It remembers what ran, and gets its variables back after a loss.  `launch` says how the process is started, given
    the worker's options; it must not hold the session, or that would never be collected.  `kind` is the isolation to
    expect of it.
    """

    name = "python"
    description = (
        "Run Python code in a persistent session. Variables stay between calls. Returns what the code printed, "
        "or the value of its last expression."
    )
    last: CellResult | None = None
    """The result of the latest cell, also where `run` raised."""

    def __init__(self, settings: Settings, launch: Callable[[Mapping[str, Any]], Launch], kind: str) -> None:
        self.timeout, self.output_cap = settings.timeout, settings.output_cap
        self._settings, self._launch, self._kind = settings, launch, kind
        self._pid = os.getpid()
        # Named before it is made: a stop may strike in any thread, and what has no name is not removed.
        self._home = Path(tempfile.gettempdir()).resolve() / f"rlm-loop-{secrets.token_hex(6)}"
        self._child: list[Any] = []  # the process where there is one; a list, so that the finalizer holds no session
        self._finalizer = weakref.finalize(self, _release, self._child, self._home, self._pid)
        self._closed = False
        self._turns = threading.RLock()
        self._cwd: Path | None = None
        self._files: Listing | str | None = None  # of the working folder at the last look; a text: why none is taken
        self._values = itertools.count(1)
        self._tools: dict[str, tuple[Callable[..., Any], ...]] = {}
        self._called: dict[str, Callable[..., Any]] = {}  # the latest tool of each name
        # What the REPL holds
        self._events: list[CellRecord | Mapping[str, Any]] = []  # cells, and jobs by which the host changed names
        self._variables: set[str] = set()  # of the host
        self._reserved: list[str] = []  # of the host too, once for each time that one was put over another
        self._names: tuple[str, ...] = ()
        self._given: frozenset[str] = frozenset()  # names that a fresh REPL has once it was set up
        self._cells = 0
        # Of its latest restart
        self._loss: Loss | None = None  # it has not come back yet
        self._untold = NO_LOSS

    # -- cells and their names

    def run(self, code: str, *, timeout: float | None = None, grace: float | None = None) -> CellResult:
        """Run one cell; what the cell does is in the result.

        `timeout` is in seconds of the cell's own time, `grace` how long it has to stop after that, at most.
        Raises what a host tool raised to end the run (a `BudgetSpent`, or anything but an `Exception`),
        `KeyboardInterrupt` after Ctrl-C (the cell is stopped, the session stays usable), and `ReplError`.
        """
        limit = self.timeout if timeout is None else timeout
        with self._turn():
            child = self._ready(limit)
            self._cells += 1
            restart, self._untold = self._untold, NO_LOSS
            before = listing(self.cwd) if self._files is None else self._files
            frame = {"t": "exec", "code": code, "file": f"<cell {self._cells}>"}
            ended, calls = child.do(frame, self._called, limit, grace)
            loss = self._after(ended)
            made = calls.made
            self.last = own = cell_result(ended, limit, self.output_cap, loss, calls=made)
            if restart.note:
                self.last = cell_result(ended, limit, self.output_cap, loss, restart, made)
            self._files = listing(self.cwd)
            if self._files != before or isinstance(before, str):
                self.last = replace(self.last, effects=changes(before, self._files))
            if self._settings.rebuild:
                changed = names_in(ended.report, "changed")
                record = CellRecord(code, tuple(made), own.output, own.error, ended.seconds, changed, self._cells)
                self._events.append(record)
            if calls.ended is not None:
                raise calls.ended
            return self.last

    def set(self, name: str, value: Any, *, reserved: bool = False) -> None:
        """Bind a variable: an exact copy, of any size, which also comes back after a restart.

        A `reserved` one is restored after a cell that rebound it, and can be given back.
        A `ContextFile` is bound to what is in it; isolated cells read a copy in the private folder.
        Raises `TypeError` for what does not pickle, `ReplError` for what cannot be had there.
        """
        check_names([name])
        with self._turn():
            frame = {**self._frame(name, value), "reserved": reserved}
            self._tell(frame, f"cannot set {name!r} in the REPL")
            if reserved:
                self._reserved.append(name)
            else:
                self._variables.add(name)

    def get(self, expression: str, *, timeout: float | None = None) -> Any:
        """Evaluate an expression and return its value (JSON types; anything else as its `repr`).

        `timeout` is as in `run`.  Raises `EvaluationFailed`.
        """
        limit = self.timeout if timeout is None else timeout
        with self._turn():
            frame = {"t": "eval", "code": expression}
            ended = self._must(self._ready(limit), frame, repr(expression), failure=EvaluationFailed, limit=limit)
            return given(ended.report, ended.report.get("size", 0), limit - ended.seconds).value

    def add_tools(self, tools: Mapping[str, Callable[..., Any]]) -> None:
        """Make host functions callable from cells, over variables and tools of the same names.

        What one raises arrives in the cell as a `RuntimeError`, except that a `BudgetSpent` or anything but an
        `Exception` ends the cell and is raised by `run`.
        """
        check_names(tools, taken={*self._variables, *self._reserved})
        with self._turn():
            added = {name: (*self._tools.get(name, ()), tool) for name, tool in tools.items()}
            self._offer({**self._tools, **added})

    def give_back(self, names: Iterable[str]) -> None:
        """Take the latest host functions and reserved variables of these names away: what they were put over returns.

        Other names are passed over.
        """
        names = set(names)
        with self._turn():
            for name in names.intersection(self._reserved):
                self._tell({"t": "give_back", "name": name}, f"cannot give {name!r} back")
                self._reserved.remove(name)
            if names & self._tools.keys():
                left = {name: tools[:-1] if name in names else tools for name, tools in self._tools.items()}
                self._offer({name: tools for name, tools in left.items() if tools})

    def new_run(self) -> None:
        """Forget an answer left by an earlier run; variables stay."""
        with self._turn():
            if self._events or self._child:
                self._tell({"t": "new_run"}, "cannot begin a new run")

    def run_again(self, cells: Iterable[CellRecord], names: Iterable[str]) -> tuple[str, ...]:
        """Run the cells of a trace; host functions of these names give what they gave, and are not called.

        Returns what was not as before, a line each; a cell that was stopped is not run again.
        """
        notes, unknown, shared = list[str](), list[str](), None
        tools: dict[str, Callable[..., Any]] = {}
        for cell in cells:
            if not cell.repeatable:
                notes.append(f"a cell of turn {cell.number} was stopped ({cell.error}), and is not run again")
                continue
            if cell.calls is not shared:
                tools, shared = recorded_tools(cell.calls, names, unknown), cell.calls
            unknown.clear()
            self.add_tools(tools)
            try:
                result = self.run(cell.code, timeout=max(60.0, 3 * cell.seconds))
            finally:
                self.give_back(names)
            old, new = (settled(text).strip() for text in (cell.output, result.output))
            same = not cell.whole or old.startswith(new)
            if what := difference(unknown, cell, result, same):
                notes.append(f"a cell of turn {cell.number} {what} when it was run again")
        return tuple(notes)

    def close(self) -> None:
        """End the process and all that it started, and remove the private folder.  May be called again."""
        self._closed = True
        for child in self._child:
            child.kill()  # where a cell runs in another thread, it ends as died
        with self._turns, shielded():
            self._finalizer()

    def as_tool(self) -> ReplTool:
        """This session as a tool: `name`, `description`, and `run(input_data)` which returns text."""
        return ReplTool(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def isolation(self) -> str:
        """The isolation that is in use (`plain`, `sandbox` ...); with `auto` it is known once the session started."""
        return self._child[0].kind if self._child else self._kind

    @property
    def cwd(self) -> Path:
        """The working folder of the cells; raises `ReplError` where the one that was given is not there."""
        if self._cwd is None:
            if self._settings.cwd is None:
                cwd = self._folder() / "work"
                cwd.mkdir(exist_ok=True)
            elif not (cwd := Path(self._settings.cwd).resolve()).is_dir():
                raise ReplError(f"the working folder {str(self._settings.cwd)!r} does not exist")
            for name, content in self._settings.files.items():  # byte for byte: no line ending is changed
                path = cwd / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content)
            self._cwd = cwd
        return self._cwd

    # -- whose turn it is

    def _turn(self) -> AbstractContextManager[bool]:
        """Let one thread in at a time; not for a tool that the session itself waits for."""
        if id(self) in inside.get():
            raise ReplError("a tool cannot use the REPL that is waiting for it; give the tool a session of its own")
        return self._turns

    def _living(self) -> Child | None:
        """Return the REPL where there is one now."""
        if self._closed:
            raise ReplError(CLOSED)
        if os.getpid() != self._pid:
            raise ReplError("this REPL belongs to the process that this one was forked from; open a new one here")
        if not self._child or self._child[0].closed:
            return None
        child: Child = self._child[0]
        if cause := child.died_meanwhile():
            self._lose(cause, rebuilt_again=True)
            return None
        return child

    def _folder(self) -> Path:
        """Return the private folder, for values on their way, the log and a working folder; made at the first call."""
        if self._closed:
            raise ReplError(CLOSED)
        self._home.mkdir(mode=0o700, exist_ok=True)
        return self._home

    def _offer(self, tools: dict[str, tuple[Callable[..., Any], ...]]) -> None:
        """Let the cells have these tools and no others; `help(tool)` has the signature and the docstring there."""
        called, about = {name: tool for name, (*_, tool) in tools.items()}, dict[str, str]()
        for name, tool in called.items():
            try:
                signature = str(inspect.signature(tool))
            except ValueError:  # of some built-in functions it is not known
                signature = "(*args, **kwargs)"
            about[name] = f"{name}{signature}\n\n{inspect.getdoc(tool) or ''}".rstrip()
        self._tell({"t": "tools", "tools": about}, "cannot change the tools")
        self._tools, self._called = tools, called

    def _tell(self, frame: Mapping[str, Any], what: str) -> None:
        """Give a job to a REPL that was started, and to each later one; `what` begins the message where it fails."""
        if (child := self._living()) is not None:
            self._must(child, frame, what)
        self._events.append(frame)

    def _must(
        self,
        child: Child,
        frame: Mapping[str, Any],
        what: str,
        *,
        failure: type[ReplError] = ReplError,
        limit: float | None = None,
    ) -> Ended:
        """Do a job that has to succeed; raises `failure` where it fails."""
        limit = self.timeout if limit is None else limit
        ended, calls = child.do(frame, self._called, limit)
        loss = self._after(ended, "" if failure is EvaluationFailed else ended.cause)
        if calls.ended is not None:
            raise calls.ended
        if ended.how != "done" or ended.stopped or "error" in ended.report:
            failed = cell_result(ended, limit, self.output_cap, loss)
            output = f"\n{failed.output}" if failure is SetupFailed else ""
            raise failure(f"{what}: {failed.message}{output}".rstrip())
        return ended

    # -- how it is lost, and comes back

    def _after(self, ended: Ended, cause: str = "") -> Loss:
        """Bring the names up to date after a job; return what becomes of them where the REPL was lost."""
        if ended.how == "done":
            if "names" in ended.report:
                self._names = names_in(ended.report, "names")
            return NO_LOSS
        return self._lose(cause, rebuilt_again=ended.how == "died")

    def _lose(self, cause: str, rebuilt_again: bool = False) -> Loss:
        """Note that all is lost; `rebuilt_again`: the cells that were run again may have been why, and are forgotten.

        The next cell's result tells the `cause`, where there is one.
        """
        if rebuilt_again:
            self._events = [e for e in self._events if not (isinstance(e, CellRecord) and e.rerun)]
        last = {name: e for e in self._events if isinstance(e, CellRecord) for name in e.changed}
        own = [n for n in self._names if n not in self._given and n not in self._variables and n not in self._reserved]
        promised = tuple(n for n in own if n in last and last[n].repeatable)
        lost = tuple(n for n in own if not (n in last and last[n].repeatable))
        self._loss = Loss(self._names, lost, promised, cause)
        self._names = ()
        return self._loss

    def _ready(self, seconds: float) -> Child:
        """Return a REPL that is where the next cell must find it.  Rebuilding takes at most `seconds`."""
        if (child := self._living()) is not None:
            return child
        if self._loss is None and self._cells:
            self._lose("")  # given up while something was raised
        loss = self._loss
        try:
            child = self._set_up()
            if loss is not None:
                child, notes = self._rebuild(child, seconds)
                restart = restart_after(loss, {*self._names}, notes)
                self._untold = Loss(lost=self._untold.lost + restart.lost, note=restart.note or self._untold.note)
                self._loss = None
            return child
        except BaseException:
            self._loss = loss
            for child in self._child:
                child.drop()
            raise

    def _rebuild(self, child: Child, seconds: float) -> tuple[Child, list[str]]:
        """Run the cells on record again, for `seconds` in all, and return notes on what was not as before.

        Where a cell is left out, the names that it had changed are removed: an earlier value would be wrong.  Where one
        ends the REPL, a fresh one goes on without any of them.
        """
        notes: list[str] = []
        try:
            for event in itertools.dropwhile(lambda e: not isinstance(e, CellRecord), self._events):
                if isinstance(event, CellRecord):
                    seconds -= self._rerun(child, event, seconds, notes)
                else:
                    self._again(child, event)
        except _Ended:
            self._events = [e for e in self._events if not isinstance(e, CellRecord)]
            return self._set_up(), ["the cells that were run again ended the process"]
        self._events = [e for e in self._events if not isinstance(e, CellRecord) or e.rerun]
        return child, notes

    def _rerun(self, child: Child, cell: CellRecord, left: float, notes: list[str]) -> float:
        """Run a cell again where that may be, and compare; return the seconds that it took."""
        cell.rerun, what, gone, took = False, "", {*cell.changed}, 0.0
        if cell.repeatable and cell.seconds <= left:
            unknown, limit = list[str](), min(left, _LEAST + 3 * cell.seconds)
            tools = recorded_tools(cell.calls, {*self._tools, *(call.name for call in cell.calls)}, unknown)
            frame = {"t": "exec", "code": cell.code, "file": f"<cell {cell.number}>"}
            ended = self._again(child, frame, limit, tools)
            took, result = ended.seconds, cell_result(ended, limit, self.output_cap)
            cell.rerun = not ended.stopped
            same = settled(cell.output) == settled(result.output)
            if what := difference(unknown, cell, result, same):
                notes.append(f"cell {cell.number} {what} when it was run again")
            if cell.rerun:  # what a failing cell does not get to keeps a value that is not the last one
                gone = gone.difference(names_in(ended.report, "changed")) if what and result.error else set[str]()
        elif cell.repeatable:
            notes.append(f"cell {cell.number} was not run again (it took {cell.seconds:.1f} s)")
        # What the host or the setup code gave comes back as it was given.
        if gone := gone.intersection(self._names) - self._given - self._variables - {*self._reserved}:
            self._again(child, {"t": "drop", "names": [*gone]})
        return took

    def _again(
        self,
        child: Child,
        frame: Mapping[str, Any],
        limit: float = _LEAST,
        tools: Mapping[str, Callable[..., Any]] | None = None,
    ) -> Ended:
        ended, calls = child.do(frame, tools or {}, limit)
        if isinstance(calls.ended, KeyboardInterrupt):
            raise calls.ended
        if ended.how != "done":
            raise _Ended
        self._after(ended)
        return ended

    def _frame(self, name: str, value: Any) -> dict[str, Any]:
        """Return the job that binds a variable."""
        path = self._folder() / f"value{next(self._values)}"
        return set_frame(name, value, path, self.isolation in _SEE_EVERYTHING)

    def _start(self) -> Child:
        home = self._folder()
        options: dict[str, Any] = {"cap": self.output_cap, "path": [str(self.cwd)], "home": str(home)}
        options["limits"] = self._settings.limits.as_options()
        return Child(self._launch(options), self.cwd, home, self._settings, id(self))

    def _set_up(self) -> Child:
        """Start a REPL, and give it the host's variables and tools, and the setup code."""
        with shielded():
            child = self._start()
            self._child[:] = [child]
        child.greet()
        self._names = ()
        for event in self._events:
            if isinstance(event, CellRecord):
                break
            self._must(child, event, f"cannot set {event.get('name')!r} in the REPL")
        if self._settings.setup.strip():
            frame = {"t": "exec", "code": self._settings.setup, "file": "<setup>"}
            self._must(child, frame, "the setup code failed", failure=SetupFailed)
        self._given = frozenset(self._names)
        return child


@dataclass(frozen=True)
class ReplTool:
    """The REPL as one tool of a function-calling loop."""

    session: Session
    name: str = Session.name
    description: str = Session.description

    def run(self, input_data: str) -> str:
        """Run a cell; what it showed, and the reason where it was stopped."""
        result = self.session.run(input_data)
        stopped = result.error not in (None, "runtime")
        return "\n".join(filter(None, [result.output, result.message if stopped else ""]))


def _release(child: list[Any], home: Path, pid: int) -> None:
    """End the process and remove the folder, unless this is a forked copy of the host: then they are not its own."""
    if os.getpid() == pid:
        for running in child:
            running.close()
        remove(home)


def check_names(names: Iterable[str], taken: set[str] | None = None) -> None:
    """Refuse, all at once, names that Python, the REPL or the user's variables already use."""
    unusable = [repr(n) for n in names if not n.isidentifier() or keyword.iskeyword(n) or n[:2] == "__" or n == _ANSWER]
    clash = [repr(n) for n in names if taken is not None and (n in taken or n in _BUILTINS)]
    problems = {"not usable as names in the REPL": unusable, "tool names in use by a variable or a built-in": clash}
    if listed := [f"{what}: {', '.join(which)}" for what, which in problems.items() if which]:
        raise ValueError(f"{'; '.join(listed)}; choose other names")


_ANSWER = "final_answer"
_BUILTINS = frozenset(dir(builtins))


class PythonREPL(Session):
    """A `Session` whose cells run in a child process: it can be interrupted, killed and replaced.

    It starts at first use and ends with `close`, with the `with` block, with the host, or when collected.

    - `cwd`: working folder of the cells; default a private one, removed at the end.  `files` are written there.
    - `setup`: code run before the first cell, and again after a restart, with the tools that it calls; an error in it
      raises `SetupFailed`.
    - `timeout`: seconds of a cell's own time, host tools excluded (60); `grace`: seconds that an interrupted cell
      has to stop before it is killed (2).  `run` returns within their sum plus half a second.
    - `output_cap`: characters of a cell's output that are kept, head and tail (65,536).
    - `python`: the interpreter of the cells; `clock`: a clock in seconds.
    - `launcher`: how it is started and isolated: `sandbox`, `hardened`, `plain`, or a launcher.  Default `auto`: the
      strongest that works here, in that order, with a warning where it is `plain`; `isolation` says which it was.
      `limits`: what the cells may take of the machine.  See `docs/isolation.md`.
    - `rebuild`: after a kill or crash, get the variables back at the next use, by running the earlier cells again
      with the recorded results of their host tools.  That takes at most the time limit of the call that needs
      them, besides its own; cells that were stopped are never run again.  What cells did elsewhere (files,
      network) happens again, too: switch it off where that matters, and all variables are lost.

    It protects the host from crashes, endless loops and a polluted namespace, and isolated also its files, its network
    and its processes.  With the `plain` launcher it is no sandbox: cells may read and write what the user may.
    """

    def __init__(self, *, python: str | None = None, launcher: Launcher | str = "auto", **settings: Any) -> None:
        kind = launcher if isinstance(launcher, str) else str(getattr(launcher, "kind", "custom"))
        launch = partial(launcher_named(launcher), python or sys.executable)
        super().__init__(Settings(**settings), launch, kind)


class KernelREPL(Session):
    """A `PythonREPL` with IPython, for what that adds: `%magic`, `!command`, `display`.

    Cells run in `python`, an interpreter that has IPython (3.8 or newer; default this one).  It has no launcher, so
    there is no sandbox.  The IPython profile is an empty one.  The rest is as for `PythonREPL`.

    Needs `pip install -e ".[kernel]"`.
    """

    def __init__(self, *, python: str | None = None, **settings: Any) -> None:
        if python is None:
            _need("IPython", "kernel")
        launch = partial(_of_a_kind, "kernel", python or sys.executable, {"ipython": True})
        super().__init__(Settings(**settings), launch, "kernel")


def _of_a_kind(kind: str, python: str, more: Mapping[str, Any], options: Mapping[str, Any]) -> Launch:
    launch = plain(python, {**options, **more})
    return replace(launch, env={**launch.env, "IPYTHONDIR": str(Path(options["home"], "ipython"))}, kind=kind)


def _need(module: str, kind: str) -> None:
    """Raise `ReplError` where the module of a kind of session is not installed."""
    if find_spec(module) is None:
        raise ReplError(f"{kind} sessions need {module}: {install_line(kind)}")


_ANALYSIS = (
    "__future__ abc base64 binascii bisect calendar cmath collections collections.abc contextlib copy csv dataclasses "
    "datetime decimal difflib enum fractions functools hashlib heapq html io itertools json math numbers operator "
    "pprint random re statistics string struct sys textwrap time types typing unicodedata zoneinfo"
)
ANALYSIS = tuple(_ANALYSIS.split())
"""Modules that restricted cells may import unless a session says otherwise."""


class RestrictedREPL(Session):
    """A `PythonREPL` whose cells may say only what RestrictedPython's rules allow.

    **It is a guard rail and no security boundary** (`tests/repl/test_restricted.py` lists known gaps): it keeps clumsy
    code from files, other modules and the network.  Against anything else use an isolated `PythonREPL`.

    Ordinary analysis code runs.  What does not: `async`, `match`, `except*`, `import *`, `exec` and `eval`, other
    modules, attributes of frames and code, names such as `__n` and most double-underscore attributes, and private parts
    of objects that no cell made.

    - `imports`: modules that may be imported, of which cells see only the public names.  Add to the default as in
      `imports=(*ANALYSIS, "numpy")`; such a package reads and writes files, and is a way out for who looks for one.
    - `settings`: as for `PythonREPL`; `setup` keeps to the same rules, `open` works in the working folder only.

    Needs `pip install -e ".[restricted]"`.
    """

    def __init__(self, *, imports: Iterable[str] = ANALYSIS, **settings: Any) -> None:
        _need("RestrictedPython", "restricted")
        more = {"restricted": {"folder": str(WORKER.parent), "imports": tuple(imports)}}
        launch = partial(_of_a_kind, "restricted", sys.executable, more)
        super().__init__(Settings(**settings), launch, "restricted")

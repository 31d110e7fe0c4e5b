"""The REPL of a run, and what comes of its cells: the model's view of them, and the files that they changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from rlm_loop.accounting.budget import BudgetSpent
from rlm_loop.actions import Failure, FailureKind, Observation
from rlm_loop.agents.meter import Meter
from rlm_loop.repl.base import CellResult, ReplError, Session
from rlm_loop.repl.records import CellRecord, run_again
from rlm_loop.repl.text import RECORD_CAP, clip, clip_again
from rlm_loop.workspace import Workspace, WorkspaceError

PENDING = "final_answer was set, but the cell failed: set it again to confirm it."
_LAST = 2.0  # seconds to take the artifact of a run whose time is up; a `__repr__` of a cell's may never end
_HURRY = 0.2  # seconds for a cell to stop at the time limit of the run, which is to be kept


class Cells:
    """Runs the cells of one run in a session.

    `source` makes the session when a cell first needs it, or is a session that stays open: at the end it is closed or
    given back.  `context` becomes its variable of that name, and `functions` are those that cells may call.
    """

    def __init__(self, source: Callable[[], Session] | Session, context: Any = None) -> None:
        self.context = context
        self.functions: Mapping[str, Callable[..., Any]] = {}
        self._source = source
        self._session: Session | None = None

    @property
    def isolation(self) -> str:
        """The isolation of the cells from this machine; empty where no cell was run."""
        return "" if self._session is None else self._session.isolation

    @property
    def last(self) -> CellResult | None:
        """The result of the cell that was run last, also where running it raised; `None` where it has none."""
        return None if self._session is None else self._session.last

    def run(self, code: str, seconds: float | None, left: float | None) -> CellResult:
        """Run a cell for `seconds`, and no longer than is `left` of the run; raises `BudgetSpent` where none is."""
        session = self._open()
        session.last = None
        if left is None or (seconds is not None and seconds < left):
            return session.run(code, timeout=seconds)
        if left == 0:
            raise BudgetSpent("seconds", "the time of the run is up: the cell was not run")
        return session.run(code, timeout=left, grace=_HURRY)

    def evaluate(self, expression: str, seconds: float | None, left: float | None) -> Any:
        """The value of an expression; `None` where no session was ever opened.  Raises as `Session.get` does."""
        if self._session is None and not isinstance(self._source, Session):
            return None
        if left is not None:
            seconds = max(left, _LAST) if seconds is None else min(seconds, max(left, _LAST))
        return self._open().get(expression, timeout=seconds)

    def resume(self, cells: Sequence[CellRecord]) -> tuple[str, ...]:
        """Run recorded cells again, with recorded answers of the host; returns what differed, a line each."""
        session = self._open()
        try:
            return run_again(session, cells, self.functions)
        finally:
            session.new_run()

    def leave(self) -> None:
        """End the run: close the session, or take from one that stays open the names that the run put into it."""
        session, self._session = self._session, None
        if session is not None and session is self._source:
            with suppress(ReplError):  # it was closed meanwhile, or is broken: there is nothing to give back
                session.give_back(["context", *self.functions] if self.context is not None else self.functions)
        elif session is not None:
            session.close()

    def _open(self) -> Session:
        if self._session is None:
            session = self._session = self._source if isinstance(self._source, Session) else self._source()
            try:
                session.new_run()
                if self.context is not None:
                    session.set("context", self.context, reserved=True)
                session.add_tools(self.functions)
            except BaseException:
                self.leave()
                raise
        return self._session


def failed_action(kind: FailureKind, message: str) -> Observation:
    """An action that came to nothing; the model reads the message."""
    return Observation(message, Failure(kind, message), "error")


def cell_observation(cell: CellResult, cap: int) -> Observation:
    """Join what a cell printed, and below it what went wrong; of an answer that it set, see the environment."""
    below = [cell.message] if cell.error not in (None, "runtime") else []
    below += [PENDING] if cell.pending is not None else []
    more, _ = clip("\n".join(below), cap // 2)
    text, cut = clip_again(cell.output, cap - len(more) - (1 if more else 0), cell.characters)
    seen = Observation(
        "\n".join(filter(None, [text, more])),
        None,
        "repl_output",
        seconds=cell.seconds,
        truncated=cell.truncated or cut,
        displays=cell.displays,
        full=cell.full or (cell.output if cut else ""),
        effects=cell.effects,
    )
    if cell.error is None:
        return seen
    return replace(seen, failure=Failure(cell.error, cell.message), pending=cell.pending)


def bounded(seen: Observation, cap: int) -> Observation:
    """The observation with no more characters than the cap, whatever it is made of."""
    text, cut = clip_again(seen.text, cap)
    return replace(seen, text=text, truncated=True, full=seen.full or clip(seen.text, RECORD_CAP)[0]) if cut else seen


_MOST = 1000  # names told of one look: a trace stays small also where a cell unpacks an archive


class Effects:
    """Calling it tells what changed in the workspace since the last call (at first: since `begin`).

    `added`, `changed` and `removed` are names, `hashes` git's hash of each one's contents before and after (empty: no
    such file), `tree` git's id of all files now.  Beyond 1000 names `left_out` counts the rest.  No change is an empty
    mapping; where git cannot look (the folder was removed), `unknown` says why.  The tree and the patch of every state
    are recorded once each; `patch` is that of the latest.
    """

    def __init__(self, workspace: Workspace, record: Meter) -> None:
        self._workspace, self._record = workspace, record
        self._seen: str | None = None  # the latest tree
        self._trees: set[str] = set()
        self.patch = ""

    def begin(self) -> None:
        """Look for the first time, where nobody has."""
        if self._seen is None:
            self._seen = ""
            self()

    def __call__(self) -> Mapping[str, Any]:
        before = self._seen
        if before is None:
            return {}
        try:
            now = self._seen = self._workspace.snapshot()
            if not before or now == before:
                return {}
            hashes = self._workspace.hashes_between(before, now)
        except (WorkspaceError, OSError) as error:
            return {"unknown": str(error)}
        self.patch = self._workspace.diff(until=now)
        if now not in self._trees:
            self._trees.add(now)
            self._record.trace.patch(now, self.patch, **self._record.where)
        found: dict[str, Any] = {"added": [], "changed": [], "removed": [], "hashes": {}, "tree": now}
        for name, (old, new) in list(hashes.items())[:_MOST]:
            found["added" if not old else "changed" if new else "removed"].append(name)
            found["hashes"][name] = [old, new]
        return found if len(hashes) <= _MOST else {**found, "left_out": len(hashes) - _MOST}

"""Host tools that a running cell calls: each in a thread of its own, so they overlap and end in any order."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Mapping
from typing import Any

from rlm_loop.accounting.scope import Scope, cell_scope
from rlm_loop.repl.base import CellCall
from rlm_loop.repl.host.frames import decode
from rlm_loop.repl.records import asked_with, kept
from rlm_loop.repl.worker import form_of

_LONGEST_REPR = 1_000_000
_AT_ONCE = 256  # calls of a cell that run at the same time: each takes a thread
_MOST = 200_000  # calls of one cell: all are kept on record
_MOST_BYTES = 256 << 20  # of all their arguments, about, and of all results on record

inside: contextvars.ContextVar[frozenset[int]] = contextvars.ContextVar("inside", default=frozenset())
"""Identities of the sessions for which this context runs a tool; they wait for it, so it must not use them."""


def tool_context(session: int, scope: Scope) -> contextvars.Context:
    """Return a copy of this context for a tool that `session` waits for; its sub-calls belong to `scope`."""
    context = contextvars.copy_context()
    context.run(inside.set, inside.get() | {session})
    context.run(cell_scope.set, scope)
    return context


def failed_call(error: BaseException) -> Mapping[str, Any]:
    """Return the outcome of a call that raised: an `error`, or the `end` of the whole cell."""
    ends = not isinstance(error, Exception) or type(error).__name__ == "BudgetSpent"
    return {"end" if ends else "error": f"{type(error).__name__}: {error}"}


class CellCalls:
    """The calls of one cell.  While at least one is under way, the cell's own clock stands still."""

    def __init__(
        self,
        tools: Mapping[str, Callable[..., Any]],
        clock: Callable[[], float],
        send: Callable[[Mapping[str, Any]], None],
        session: int,
    ) -> None:
        self._tools, self._clock, self._send, self._session = tools, clock, send, session
        self._lock = threading.RLock()
        self.under_way = 0
        self._since = self._waited = 0.0
        self._closed = False
        self._bytes = 0
        self._scope: Scope | None = None  # of the first call on
        self.made: list[CellCall] = []
        """All calls of the cell, in the order in which they came."""
        self.ended: BaseException | None = None
        """The exception of a tool that ends the whole cell: anything but an `Exception`, or a `BudgetSpent`."""

    def waited(self) -> float:
        """Seconds spent in host tools so far."""
        with self._lock:
            return self._waited + (self._clock() - self._since if self.under_way else 0.0)

    def close(self) -> None:
        """The cell is over or is being stopped: no further call starts, and a late result is credited to nobody."""
        with self._lock:
            self._waited, self.under_way, self._closed = self.waited(), 0, True
        if self._scope is not None:
            self._scope.end("the cell that asked has ended")

    def start(self, frame: Mapping[str, Any]) -> None:
        """Answer a `call` frame: run the tool that it asks for, in a thread, and send what comes of it."""
        call, refusal = CellCall(str(frame.get("name")), ""), {}
        with self._lock:
            self._bytes += frame.get("size", 0)
            if self._closed:
                refusal = {"error": "RuntimeError: the cell is being stopped"}
            elif self.ended is not None:
                refusal = {"end": "the cell was ended"}
            elif len(self.made) >= _MOST or self._bytes > _MOST_BYTES or self.under_way >= _AT_ONCE:
                most = f"{_AT_ONCE} calls at the same time, {_MOST:,} in all, with {_MOST_BYTES:,} bytes"
                refusal = {"error": f"RuntimeError: a cell may make {most}"}
            if refusal:
                self._send({"t": "reply", "id": frame.get("id"), **refusal})
                return
            self.made.append(call)
            if not self.under_way:
                self._since = self._clock()
            self.under_way += 1
            self._scope = self._scope or Scope()
        run = tool_context(self._session, self._scope).run
        threading.Thread(target=run, args=(self._work, call, frame), daemon=True).start()

    def _work(self, call: CellCall, frame: Mapping[str, Any]) -> None:
        ended: BaseException | None = None
        try:
            args, kwargs = [*decode(frame["args"])], {**decode(frame["kwargs"])}
            call.asked = asked_with(args, kwargs)
            tool = self._tools.get(call.name)
            if tool is None:
                raise NameError(f"there is no host tool named {call.name[:100]!r}")
            outcome: Mapping[str, Any] = {"value": form_of(tool(*args, **kwargs), _LONGEST_REPR)}
        except BaseException as e:
            outcome = failed_call(e)
            ended = e if "end" in outcome else None
        record = kept(outcome["value"]) if "value" in outcome else outcome
        with self._lock:
            if self._closed:
                return
            size = len(str(record["value"])) if "value" in record else 100
            self._bytes += size
            call.outcome = record if self._bytes <= _MOST_BYTES else {"left_out": size}
            self.ended = self.ended or ended
            self.under_way -= 1
            if not self.under_way:
                self._waited += self._clock() - self._since
        self._send({"t": "reply", "id": frame.get("id"), **outcome})

"""Host tools that a running cell calls: each in a thread of its own, so they overlap and end in any order."""

from __future__ import annotations

import contextlib
import contextvars
import json
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from rlm_loop.accounting.scope import Scope, cell_scope
from rlm_loop.repl.host.incoming import decode
from rlm_loop.repl.host.process import Worker, WorkerGone
from rlm_loop.repl.text import same_text
from rlm_loop.repl.worker import form_of

_LONGEST_REPR = 1_000_000
_AT_ONCE = 128  # calls of a cell that run at the same time; the others wait for their turn
_MOST = 200_000  # calls of one cell: all are kept, for the journal
_MOST_SENT = 256 << 20  # bytes of all their arguments, about

inside: contextvars.ContextVar[frozenset[int]] = contextvars.ContextVar("inside", default=frozenset())
"""Identities of the sessions for which this context runs a tool; they wait for it, so it must not use them."""


@dataclass(slots=True)
class HostCall:
    """A call of a host tool: its arguments and what it gave, in the JSON forms that crossed (`worker.decode`).

    `outcome` has a `value`, or an `error` (the text of what it raised), or the `end` of the whole cell; it is `None`
    where the cell was over before the tool.
    """

    name: str
    args: Any
    kwargs: Any
    outcome: dict[str, Any] | None = None

    def asks(self, args: Any, kwargs: Any) -> bool:
        """Whether the call was made with these arguments, given in the forms that cross."""
        return _same(self.args, args) and _same(self.kwargs, kwargs)


def _same(before: Any, after: Any) -> bool:
    return before == after or same_text(json.dumps(before), json.dumps(after))  # NaN, and addresses in a repr


class CellCalls:
    """The calls of one cell.  While at least one is under way, the cell's own clock stands still."""

    def __init__(
        self,
        worker: Worker,
        generation: int,
        tools: Mapping[str, Callable[..., Any]],
        clock: Callable[[], float],
    ) -> None:
        self.worker, self.generation, self.tools, self.clock = worker, generation, dict(tools), clock
        self._lock = threading.Lock()
        self._under_way = 0
        self._since = 0.0
        self._waited = 0.0
        self._closed = False
        self._sent = 0
        self._threads = 0
        self._queue: deque[Callable[[], None]] = deque()
        self._scope: Scope | None = None  # of the first call on
        self.made: list[HostCall] = []
        """All calls of the cell, in the order in which they came."""
        self.ended: BaseException | None = None
        """What a tool raised to end the whole cell: anything but an `Exception`, or a `BudgetSpent`."""

    @property
    def busy(self) -> bool:
        return self._under_way > 0

    def waited(self) -> float:
        """Seconds spent in host tools so far."""
        if not self.made:
            return 0.0
        with self._lock:
            return self._waited + (self.clock() - self._since if self._under_way else 0.0)

    def close(self) -> None:
        """The cell is over or is being stopped: no further call starts, and a late result is credited to nobody."""
        with self._lock:
            if self._under_way:
                self._waited += self.clock() - self._since
            self._under_way = 0
            self._closed = True
            scope = self._scope
        if scope is not None:
            scope.end("the cell that asked has ended")

    def start(self, frame: Mapping[str, Any], session: int) -> None:
        """Run the tool that a `call` frame asks for; what comes of it is sent as its reply."""
        number, name = frame.get("id"), frame.get("name")
        call = HostCall(str(name), frame.get("args"), frame.get("kwargs"))
        tool: Any = self.tools.get(name) if isinstance(name, str) else None
        refusal = ""
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        try:
            args, kwargs = [*decode(frame["args"])], {**decode(frame["kwargs"])}
        except (ValueError, TypeError, KeyError) as e:
            refusal = f"ValueError: unreadable arguments ({type(e).__name__})"
        if tool is None:
            refusal = f"NameError: there is no host tool named {str(name)[:100]!r}"
        work = partial(self._work, call, number, tool, args, kwargs)
        with self._lock:
            self._sent += frame.get("size", 0)
            if self._closed:
                refusal = refusal or "RuntimeError: the cell is being stopped"
            elif len(self.made) >= _MOST or self._sent > _MOST_SENT:
                refusal = (
                    f"RuntimeError: a cell may make {_MOST:,} calls, with {_MOST_SENT:,} bytes of arguments in all"
                )
            else:
                self.made.append(call)
                if self.ended is not None:
                    self.reply(number, {"end": "the cell was ended"})
                    return
                if not refusal:
                    if not self._under_way:
                        self._since = self.clock()
                    self._under_way += 1
                    if self._threads >= _AT_ONCE:
                        self._queue.append(work)
                        return
                    self._threads += 1
            if self._scope is None:
                self._scope = Scope()
        if refusal:
            call.outcome = {"error": refusal}
            self.reply(number, call.outcome)
            return
        context = contextvars.copy_context()
        context.run(inside.set, inside.get() | {session})
        context.run(cell_scope.set, self._scope)
        threading.Thread(target=context.run, args=(self._in_turn, work), daemon=True).start()

    def _in_turn(self, work: Callable[[], None]) -> None:
        """One call after the other, while there are any that wait for their turn."""
        while True:
            work()
            with self._lock:
                if self._closed or not self._queue:
                    self._threads -= 1
                    self._queue.clear()
                    return
                work = self._queue.popleft()

    def _work(self, call: HostCall, number: Any, tool: Any, args: list[Any], kwargs: dict[str, Any]) -> None:
        ended: BaseException | None = None
        outcome: dict[str, Any]
        try:
            outcome = {"value": form_of(tool(*args, **kwargs), _LONGEST_REPR)}
        except BaseException as e:
            outcome = {"error": f"{type(e).__name__}: {e}"}
            if not isinstance(e, Exception) or type(e).__name__ == "BudgetSpent":
                ended, outcome = e, {"end": f"{type(e).__name__}: {e}"}
        with self._lock:
            if self._closed:
                return
            call.outcome = outcome
            if ended is not None and self.ended is None:
                self.ended = ended
            self._under_way -= 1
            if not self._under_way:
                self._waited += self.clock() - self._since
        self.reply(number, outcome)
        if ended is not None:
            self.worker.wake()

    def reply(self, number: Any, outcome: dict[str, Any]) -> None:
        """Send what a call gave to the cell."""
        with contextlib.suppress(WorkerGone):  # whoever reads from the worker notices
            self.worker.send({"t": "reply", "g": self.generation, "id": number, **outcome})

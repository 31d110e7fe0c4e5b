"""All that was asked of one endpoint: its sessions and the model that they share."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from rlm_loop.accounting.budget import Account, Budget, BudgetSpent
from rlm_loop.accounting.call_tree import PATIENCE
from rlm_loop.accounting.prices import known_price
from rlm_loop.accounting.scope import Slots
from rlm_loop.messages import Reply, Usage
from rlm_loop.meter.counting import InOrder
from rlm_loop.meter.figures import Figures, MeteredCall
from rlm_loop.meter.forward import ForwardedExchange, ForwardedProvider, understood
from rlm_loop.meter.request import Refused
from rlm_loop.meter.served import Heard, Served
from rlm_loop.meter.session import MeterSession
from rlm_loop.models.base import Model
from rlm_loop.traces.logs import exception
from rlm_loop.traces.redact import redact
from rlm_loop.traces.trace import Trace, TraceError
from rlm_loop.versions import versions

if TYPE_CHECKING:
    import pandas as pd

_log = logging.getLogger(__name__)

#: Sessions in all: a client that makes up a key for each request gets no more.
MOST = 20_000
UNLIMITED = Budget(steps=None, malformed=None, tool_failures=None)


class Meter:
    """The account of an endpoint.  `sessions` by name; safe to use from many threads.

    Requests are answered by `model`, or passed on to `forward`.

    `out` is a folder that gets one trace a session (`SESSION.jsonl`); without it traces stay in memory.  `counter`
    counts in place of the model, `known` maps causes to texts that are theirs wherever they stand, `budget` limits
    what all sessions may spend together (of a provider `tokens`, `cost` and `calls`), `concurrency` is how many
    requests the model takes at a time, and `told` is called with each request as its answer goes out.
    """

    def __init__(
        self,
        model: Model | None = None,
        *,
        forward: ForwardedProvider | None = None,
        out: str | Path | None = None,
        counter: Model | None = None,
        known: Mapping[str, Sequence[str]] | None = None,
        budget: Budget | None = None,
        concurrency: int | None = None,
        told: Callable[[MeteredCall], None] | None = None,
    ) -> None:
        self.provider = forward
        label = "" if forward is None else forward.label
        self.model = Heard(label, Reply(), counter) if model is None else Served(model, counter)
        self.sessions: dict[str, MeterSession] = {}
        self.out = None if out is None else Path(out)
        if self.out is not None:
            try:
                self.out.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise TraceError(f"cannot write traces to {out}: {error.strerror}; choose another folder") from error
        self._known = known
        price = None if model is None else model.price
        self._limits = budget if model is None else None  # of what goes through; a model has an account for it
        self._without_price = ""
        self._passed_through = {"calls": 0.0, "tokens": 0.0, "dollars": 0.0}
        self._account = Account(budget if budget and model is not None else UNLIMITED, price=price)
        self._slots = Slots(concurrency or (1 if model is None else model.slots))
        self._passed = InOrder(self._count)
        self._told = told
        self._warned: set[str] = set()
        self._closed = False
        self._lock = threading.Lock()
        versions()  # looked up once, before anything is timed

    def session(self, name: str, file: Path | None = None) -> MeterSession:
        """The session of that name, made at its first request; `file` is its trace's, in place of one in `out`.

        Raises `TraceError` where its trace cannot be, and `Refused` where there are too many.
        """
        with self._lock:
            if name not in self.sessions:
                if len(self.sessions) >= MOST:
                    raise Refused(f"the meter has {MOST:,} sessions; name one with /s/NAME in the address", status=429)
                if file is None and self.out is not None:
                    file = self.out / f"{name}.jsonl"
                if file is not None:
                    with suppress(OSError):  # the trace says why it cannot be
                        file.touch(mode=0o600)
                trace = Trace(file)
                self.sessions[name] = MeterSession(
                    name, self.model, self._slots, self._account, trace, self._known, self._told
                )
            return self.sessions[name]

    def check(self) -> None:
        """Raises `BudgetSpent` where what went through has reached a limit; the latest replies are read first."""
        if self._limits is None:
            return
        self._passed.wait()
        if self._limits.cost is not None and self._without_price:
            raise BudgetSpent("dollars", f"no price of {self._without_price} is known; limit the tokens instead")
        limits = {"calls": self._limits.calls, "tokens": self._limits.tokens, "dollars": self._limits.cost}
        for unit, limit in limits.items():
            if limit is not None and (used := self._passed_through[unit]) >= limit:
                raise BudgetSpent(unit, f"{used:,.10g} of {limit:,.10g} {unit}")

    def _add_up(self, exchange: ForwardedExchange) -> None:
        """Add a request to what went through: of tokens that no provider stated, one for four bytes."""
        call, totals = exchange.call, self._passed_through
        read = len(exchange.body) // 4 if call.input_tokens is None else call.input_tokens
        written = exchange.size // 4 if call.output_tokens is None else call.output_tokens
        totals["calls"] += 1
        totals["tokens"] += read + written
        if (price := known_price(call.model.removeprefix("/"))) is None:
            self._without_price = call.model
        else:
            usage = Usage(read, written, call.cached_tokens, cache_write_tokens=call.cache_write_tokens)
            totals["dollars"] += price.of(usage) or 0.0

    def passing(self, exchange: ForwardedExchange) -> None:
        """A request is about to go through to the provider."""
        self._passed.begin(exchange)

    def passed(self, exchange: ForwardedExchange, *, error: str | None, delivered: bool) -> None:
        """It went through.  It is read and charged later; nobody waits for that."""
        call, exchange.ended = exchange.call, exchange.ended or time.perf_counter()
        call.model_seconds, call.delivered = exchange.ended - exchange.began, delivered
        call.first_byte_seconds = None if exchange.first is None else exchange.first - call.arrived
        if exchange.status != 200:
            error = error or exchange.said()
        told = None if error is None else redact(error)
        exchange.session.leave(call, status=exchange.status, error=told, ended=exchange.ended)
        self._passed.over(exchange)

    def _count(self, exchange: ForwardedExchange) -> None:
        session, call = exchange.session, exchange.call
        try:
            if exchange.status == 200:
                request, reply, call.unread = understood(exchange)
                if call.unread and call.unread not in self._warned:
                    self._warned.add(call.unread)
                    _log.warning("what went through could not be read, its tokens are unattributed: %s", call.unread)
                session.heard(request, reply, call, f"{self.model.name}/{request.model}")
                self._add_up(exchange)
        except Exception as error:  # a fault of ours: the client has its answer, and the figures say so
            call.unread = f"{type(error).__name__}: {error}"
            exception(_log, "a request that went through was not charged", error)
        finally:
            session.settle(call, delivered=call.delivered)

    def close(self) -> None:
        """End all sessions; the figures stay.  What went through is read first, however much it is."""
        self._passed.hurry()
        for session in list(self.sessions.values()):
            session.end()
        self._closed = True
        self._passed.close()
        if self.provider is not None:
            self.provider.close()

    @property
    def figures(self) -> Figures:
        """The tables as they are now; what went through and is not read yet is waited for, for `PATIENCE` seconds."""
        if self.provider is not None and not self._closed:
            self._passed.wait()
            for session in list(self.sessions.values()):
                session.wait(PATIENCE)
        sessions = list(self.sessions.items())
        return Figures({name: (s.ledger, list(s.calls)) for name, s in sessions})

    @property
    def calls(self) -> list[MeteredCall]:
        """Every request that was answered, refused ones included, session by session."""
        return self.figures.calls

    def frame(self) -> pd.DataFrame:
        """Return a row per call x cause x turn of origin (see `Figures.frame`)."""
        return self.figures.frame()

    def times(self) -> pd.DataFrame:
        """Return one row per request: its tokens and times (see `MeteredCall`)."""
        return self.figures.times()

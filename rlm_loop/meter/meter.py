"""All that was asked of one endpoint: its sessions and the model that they share."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rlm_loop.accounting.budget import NO_LIMITS, Account, Budget, BudgetSpent
from rlm_loop.accounting.call_tree import PATIENCE
from rlm_loop.accounting.prices import known_price
from rlm_loop.accounting.scope import Slots
from rlm_loop.messages import Reply, Usage
from rlm_loop.meter.figures import Figures, MeteredCall
from rlm_loop.meter.forward import ForwardedExchange, ForwardedProvider
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
#: Seconds that a request under a limit waits for a reply before it that may have ended.
MOMENT = 0.5


class Meter:
    """The account of an endpoint.  `sessions` by name; safe to use from many threads.

    Requests are answered by `model`, or passed on to `forward`.  The other settings are those of `metered_endpoint`;
    without `out`, traces stay in memory.
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
        limits = budget or NO_LIMITS
        self._account = Account(NO_LIMITS) if model is None else Account(limits, price=model.price)
        self._passed_through = Account(NO_LIMITS if model is not None else limits, price=(0.0, 0.0))
        self._without_price = ""
        self._slots = Slots(1 if model is None else model.slots)
        self._passed = _InOrder(self._count)
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

    def check(self, session: MeterSession, call: MeteredCall) -> None:
        """Raises `BudgetSpent` where what went through has reached a limit; the latest replies are read first."""
        if self._passed_through.budget is NO_LIMITS:
            return
        self._passed.wait_before(session, call.arrived)
        self._passed.wait()
        if self._passed_through.priced and self._without_price:
            raise BudgetSpent("cost", f"no price of {self._without_price} is known; limit the tokens instead")
        if exceeded := self._passed_through.exceeded():
            raise BudgetSpent(*exceeded)

    def _add_up(self, exchange: ForwardedExchange) -> None:
        """Add a request to what went through: of tokens that no provider stated, one for four bytes."""
        if (limits := self._passed_through.budget) is NO_LIMITS:
            return
        call = exchange.call
        read = len(exchange.body) // 4 if call.input_tokens is None else call.input_tokens
        written = exchange.size // 4 if call.output_tokens is None else call.output_tokens
        usage = Usage(read, written, call.cached_tokens, cache_write_tokens=call.cache_write_tokens)
        price = None if limits.cost is None else known_price(call.model.removeprefix("/"))  # whose tables load slowly
        if price is None:
            self._without_price = call.model
        self._passed_through.settle(None, replace(usage, cost=0.0 if price is None else price.of(usage)))

    def passing(self, exchange: ForwardedExchange) -> None:
        """A request is about to go through to the provider."""
        self._passed.begin(exchange)

    def passed(self, exchange: ForwardedExchange, *, error: str | None, delivered: bool) -> None:
        """It went through.  It is read and charged later; nobody waits for that."""
        call, exchange.ended = exchange.call, exchange.ended or time.perf_counter()
        call.model_seconds, call.delivered = exchange.ended - exchange.began, delivered
        if exchange.status != 200:
            error = error or exchange.said()
        told = None if error is None else redact(error)
        exchange.session.leave(call, status=exchange.status, error=told, ended=exchange.ended)
        self._passed.over(exchange)

    def _count(self, exchange: ForwardedExchange) -> None:
        session, call = exchange.session, exchange.call
        try:
            if exchange.status == 200:
                request, reply, call.unread = exchange.read()
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
        if self.provider is not None:
            self.provider.close()
        self._passed.hurry()
        for session in list(self.sessions.values()):
            session.end()
        self._closed = True
        self._passed.close()

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


class _InOrder:
    """Counts forwarded requests in the order in which their replies ended, in a thread that nobody waits for.

    A client asks again as soon as it has the end of a reply, which may be before the reply was noted as ended here.  So
    a request is not counted while one of its session is under way whose reply may have ended before this one arrived:
    whose latest piece went out by then.  It is counted when that one is over, or else when somebody asks for the
    figures and that one has said more since.
    """

    def __init__(self, count: Callable[[ForwardedExchange], None]) -> None:
        self._count = count
        self._worker = ThreadPoolExecutor(1, "meter")
        self._under_way: list[ForwardedExchange] = []
        self._over: list[ForwardedExchange] = []
        self._closing = False
        self._lock = threading.Condition()

    def begin(self, exchange: ForwardedExchange) -> None:
        with self._lock:
            self._under_way.append(exchange)

    def over(self, exchange: ForwardedExchange) -> None:
        with self._lock:
            self._under_way.remove(exchange)
            self._over.append(exchange)
            self._lock.notify_all()
        self._worker.submit(self._work)

    def wait_before(self, session: MeterSession, arrived: float) -> None:
        """Wait a moment for replies of a session to be over whose end its client may have had by then."""
        with self._lock:
            self._lock.wait_for(lambda: not self._may_follow(session, arrived), MOMENT)

    def wait(self) -> None:
        """Return when all is counted that can be by now."""
        self._worker.submit(self._work).result()

    def hurry(self) -> None:
        """Return when all is counted that is over; from now on nothing waits for what is under way."""
        self._closing = True
        self.wait()

    def close(self) -> None:
        self._worker.shutdown()

    def _work(self) -> None:
        while (exchange := self._next()) is not None:
            self._count(exchange)

    def _next(self) -> ForwardedExchange | None:
        with self._lock:
            self._over.sort(key=lambda exchange: exchange.ended)
            for one in self._over:
                if self._closing or not self._may_follow(one.session, one.call.arrived):
                    self._over.remove(one)
                    return one
            return None

    def _may_follow(self, session: MeterSession, arrived: float) -> bool:
        """Return whether a request that arrived then may go on from a reply that is not over here."""
        own = (one for one in self._under_way if one.session is session and one.first is not None)
        return any(one.ended <= arrived for one in own)

"""All that was asked of one endpoint: its sessions and the model that they share."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
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
from rlm_loop.meter.session import MeterSession, Shared
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
        account = Account(NO_LIMITS) if model is None else Account(budget or NO_LIMITS, price=model.price)
        self._spent = None if budget is None or model is not None else Account(budget, price=(0.0, 0.0))
        self._without_price = ""
        self._shared = Shared(self.model, account, Slots(1 if model is None else model.slots), known, told)
        self._worker = ThreadPoolExecutor(1, "meter")
        self._news = threading.Condition()
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
                self.sessions[name] = MeterSession(name, self._shared, Trace(file))
            return self.sessions[name]

    def check(self, session: MeterSession, call: MeteredCall) -> None:
        """Raises `BudgetSpent` where what went through has reached a limit.

        Waits a moment for replies of the session to be over whose end its client may have had by now.
        """
        if (spent := self._spent) is None:
            return
        with self._news:
            self._news.wait_for(lambda: not any(one.may_be_over(call.arrived) for one in session.passing), MOMENT)
        self._worker.submit(bool).result()  # those that are over are read by then
        if spent.priced and self._without_price:
            raise BudgetSpent("cost", f"no price of {self._without_price} is known; limit the tokens instead")
        if exceeded := spent.exceeded():
            raise BudgetSpent(*exceeded)

    def passing(self, exchange: ForwardedExchange) -> None:
        """A request is about to go through to the provider."""
        with self._news:
            exchange.session.passing.append(exchange)

    def passed(self, exchange: ForwardedExchange, *, error: str | None, delivered: bool) -> None:
        """It went through.  It is read and charged later; nobody waits for that."""
        call, exchange.ended = exchange.call, exchange.ended or time.perf_counter()
        call.model_seconds, call.delivered = exchange.ended - exchange.began, delivered
        call.status, call.ended = exchange.status, exchange.ended
        if exchange.status != 200:
            error = error or exchange.said()
        call.error = None if error is None else redact(error)
        self._worker.submit(self._over, exchange)

    def _over(self, exchange: ForwardedExchange) -> None:
        """Read an exchange and add it up at once; those of a session are charged in the order of their requests."""
        if exchange.status == 200:
            with self._fault_noted(exchange.call):
                stated, reply, exchange.call.unread = exchange.read()
                request = replace(stated, model=f"{self.model.name}/{stated.model}")
                exchange.found = request, reply
                if self._spent is not None:
                    self._add_up(self._spent, exchange, reply.usage or Usage(None, None), request.model)
        ready: list[ForwardedExchange] = []
        with self._news:
            exchange.over, passing = True, exchange.session.passing
            while passing and passing[0].over:
                ready.append(passing.pop(0))
            self._news.notify_all()
        for one in ready:
            if one.found is not None:
                with self._fault_noted(one.call):
                    if unread := one.call.unread:
                        _log.warning("what went through could not be read, its tokens are unattributed: %s", unread)
                    one.session.heard(*one.found, one.call)
            one.session.settle(one.call)

    @contextmanager
    def _fault_noted(self, call: MeteredCall) -> Generator[None]:
        """A fault of ours is for the log and the figures: the client has its answer."""
        try:
            yield
        except Exception as error:
            call.unread = f"{type(error).__name__}: {error}"
            exception(_log, "a request that went through was not charged", error)

    def _add_up(self, spent: Account, exchange: ForwardedExchange, usage: Usage, model: str) -> None:
        """Add a request to what went through: of tokens that no provider stated, one for four bytes."""
        read = len(exchange.body) // 4 if usage.input_tokens is None else usage.input_tokens
        written = exchange.size // 4 if usage.output_tokens is None else usage.output_tokens
        price = known_price(model.removeprefix("/")) if spent.priced else None  # whose tables load slowly
        if price is None:
            self._without_price = model
        usage = replace(usage, input_tokens=read, output_tokens=written)
        spent.settle(None, replace(usage, cost=0.0 if price is None else price.of(usage)))

    def close(self) -> None:
        """End all sessions; the figures stay.  What went through is read first, however much it is."""
        if self.provider is not None:
            self.provider.close()
        self._worker.submit(bool).result()
        for session in list(self.sessions.values()):
            session.end()
        self._worker.shutdown()

    @property
    def figures(self) -> Figures:
        """The tables as they are now; requests under way are waited for, for `PATIENCE` seconds."""
        sessions = list(self.sessions.items())
        for _, session in sessions:
            session.wait(PATIENCE)
        return Figures({name: (s.ledger, sorted(s.calls, key=lambda call: call.number)) for name, s in sessions})

    @property
    def calls(self) -> list[MeteredCall]:
        """Every request that was answered, refused ones included, session by session, as they came."""
        return self.figures.calls

    def frame(self) -> pd.DataFrame:
        """Return a row per call x cause x turn of origin (see `Figures.frame`)."""
        return self.figures.frame()

    def times(self) -> pd.DataFrame:
        """Return one row per request: its tokens and times (see `MeteredCall`)."""
        return self.figures.times()

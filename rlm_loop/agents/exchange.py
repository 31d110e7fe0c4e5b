"""One question of a conversation: what its run is given of those before it, and the REPL that all questions share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rlm_loop.agents.metered import Metered
from rlm_loop.agents.setup import RunSetup
from rlm_loop.dialects.earlier import FIRST_ATTEMPT, AttemptContext, FollowUp
from rlm_loop.messages import Message
from rlm_loop.repl.base import CellResult, Session
from rlm_loop.traces.trace import Trace


@dataclass
class Exchange:
    """What the run of one question takes in place of what a run alone would make.

    `repl` is the conversation's session (`None`: the run makes its own), `earlier` the messages until now,
    `turn_offset` how many turns they took, and `sent` those messages that a model has read.  `about` goes into the
    run's first event, the messages into another.
    """

    repl: Session | None
    about: Mapping[str, Any]
    earlier: AttemptContext = FIRST_ATTEMPT
    turn_offset: int = 0
    sent: tuple[Message, ...] = ()
    model: Metered | None = field(default=None, init=False)
    """The run's model, once it has begun: it knows what was sent last."""

    def begin(self, setup: RunSetup, model: Metered) -> RunSetup:
        """The setup of the run with what came before it; the model is told what was sent before."""
        self.model = model
        model.follow(self.sent)
        lent = self.repl is not None and setup.dialect.action_mode != "none"
        repl = self.repl if lent else setup.repl
        return replace(setup, repl=repl, turn_offset=self.turn_offset, earlier=self.earlier)

    def record(self, trace: Trace) -> None:
        """Tell a trace what the run begins with, so that it can be read and driven again alone."""
        if isinstance(self.earlier, FollowUp):
            trace.earlier(self.earlier.messages, sent=len(self.sent))


class KeptSession(Session):
    """The REPL of a conversation: passes everything on to the session that `make` gives when a cell first needs it.

    Closing it, when the conversation is over, closes that session where it is `owned`.
    A context that is set again is the very same object: it crosses into the REPL once.
    """

    def __init__(self, make: Callable[[], Session], *, owned: bool) -> None:
        self._make, self._owned = make, owned
        self._session: Session | None = None
        self._context: Any = None

    @property
    def _open(self) -> Session:
        if self._session is None:
            self._session = self._make()
        return self._session

    def run(self, code: str, *, timeout: float | None = None, grace: float | None = None) -> CellResult:
        return self._open.run(code, timeout=timeout, grace=grace)

    def set(self, name: str, value: Any, *, reserved: bool = False) -> None:
        if name == "context" and self._context is value:
            return
        self._open.set(name, value, reserved=reserved)
        if name == "context":
            self._context = value

    def get(self, expression: str, *, timeout: float | None = None) -> Any:
        return self._open.get(expression, timeout=timeout)

    def add_tools(self, tools: Mapping[str, Callable[..., Any]]) -> None:
        self._open.add_tools(tools)

    def remove_tools(self, names: Iterable[str]) -> None:
        if self._session is not None:  # else it was closed meanwhile
            self._session.remove_tools(names)

    def new_run(self) -> None:
        self._open.new_run()

    def close(self) -> None:
        session, self._session = self._session, None
        if session is not None and self._owned:
            session.close()

    @property
    def isolation(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return "" if self._session is None else self._session.isolation

    @property
    def last(self) -> CellResult | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        return None if self._session is None else self._session.last

"""One question of a conversation: what its run is given of those before it, and what it leaves for the next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rlm_loop.agents.metered import Metered
from rlm_loop.agents.setup import RunSetup
from rlm_loop.dialects.attempt_context import FIRST_ATTEMPT, AttemptContext
from rlm_loop.dialects.follow_up import FollowUp
from rlm_loop.messages import Message
from rlm_loop.repl.base import Session
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
        """The setup of the run with the conversation's session; the model is told what was sent before."""
        self.model = model
        model.follow(self.sent)
        lent = None if setup.dialect.action_mode == "none" else self.repl
        return setup if lent is None else replace(setup, repl=lent)

    def record(self, trace: Trace) -> None:
        """Tell a trace what the run begins with, so that it can be read and driven again alone."""
        if isinstance(self.earlier, FollowUp):
            trace.earlier(self.earlier.messages, sent=len(self.sent))

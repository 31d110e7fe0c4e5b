"""The state of a run at one moment, as a value that a view is drawn from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rlm_loop.outcome import Outcome, Turn


@dataclass(frozen=True)
class RunState:
    """One moment of a run.

    `turns` are the finished ones of the root agent, `turn` the number of the one under way, `doing` what goes on in it,
    `subcalls` how its sub-calls stand in a few words, `by_cause` the input tokens so far and `counting` how they were
    counted.  `outcome` is there once the run is over, `error` where it could not even begin.  `stopping` tells that
    somebody asked it to stop, `note` is one line for the reader (what the context is, where the outcome will be kept),
    `how_to_stop` another.  `written` is the end of the reply that is being written, `seconds` how long the run takes.
    """

    question: str = ""
    agent: str = ""
    model: str = ""
    turns: tuple[Turn, ...] = ()
    turn: int = 0
    doing: str = ""
    subcalls: str = ""
    by_cause: Mapping[str, int] = field(default_factory=dict[str, int])
    counting: str = ""
    outcome: Outcome | None = None
    error: str = ""
    stopping: bool = False
    note: str = ""
    how_to_stop: str = ""
    written: str = ""
    seconds: float = 0.0

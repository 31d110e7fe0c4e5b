"""What a case is run on: a session of ours or an interpreter of another project, behind the same few calls."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any, Protocol

from experiments.robustness.suite.case import Error, Seen

#: What a subject can be asked for.  A case that needs more is not applicable to it.
FEATURES = {
    "variables": "variables stay from cell to cell",
    "set": "variables can be set from outside",
    "reserved": "names can be reserved: they come back after a cell that rebound them",
    "answer": "a cell can give an answer",
    "named answer": "the answer is a name: it can be assigned before an error, looked at and deleted",
    "called answer": "an answer can be given by a call, which ends the cell",
    "echo": "the value of a last expression is shown",
    "await": "cells may await",
    "files": "cells may open files",
    "stops": "a cell can be stopped at a time limit",
    "process": "cells run in a process, where they may do what Python may",
    "limits": "a session can be given limits for memory and processes",
    "llm_query": "cells can ask a model",
}

#: Besides: answers arrive as text, whatever they were, and are compared as text.
TEXT_ANSWERS = "text answers"


SLACK = "RLM_LOOP_ROBUSTNESS_SLACK"
"""Environment variable: a factor for every time bound, for a machine that is busy with other things."""


def slack() -> float:
    """The factor for time bounds; 1 where it is not set."""
    return float(os.environ.get(SLACK, "1"))


class Subject(Protocol):
    """A persistent interpreter.

    `features` is what it can be asked for.  `bound` is the longest that a `hasty` `run` may take, in seconds; `None`
    where nothing is promised.
    """

    features: frozenset[str]
    bound: float | None

    def run(self, code: str, hasty: bool = False) -> Seen:
        """Run a cell; `hasty` for one that is expected to be stopped, at a time limit that is as short as possible."""
        ...

    def set(self, name: str, value: Any, reserved: bool = False) -> None: ...

    def new_run(self) -> None:
        """Forget an answer that an earlier case gave."""
        ...

    def close(self) -> None: ...


_ERRORS: dict[str | None, Error] = {None: "none", "runtime": "raised", "timeout": "stopped", "died": "died"}


class OfSession:
    """A `Session` of ours as a subject; `hasty` cells are given so many seconds, `refusals` are words of its rules."""

    def __init__(
        self,
        session: Any,
        features: frozenset[str],
        hasty: float,
        bound: float | None,
        refusals: tuple[str, ...] = (),
    ) -> None:
        self.session, self.features, self.bound = session, features, bound
        self._hasty, self._refusals = hasty, refusals

    def run(self, code: str, hasty: bool = False) -> Seen:
        began = time.monotonic()
        result = self.session.run(code, timeout=self._hasty if hasty else None)
        seconds = time.monotonic() - began
        answer = () if result.answer is None else (result.answer.value,)
        error = _ERRORS[result.error]
        refused = error == "raised" and any(words in result.message for words in self._refusals)
        return Seen(result.output, error, result.message, answer, result.lost, seconds, refused)

    def set(self, name: str, value: Any, reserved: bool = False) -> None:
        self.session.set(name, value, reserved=reserved)

    def new_run(self) -> None:
        self.session.new_run()

    def close(self) -> None:
        self.session.close()


Opener = Callable[..., Subject]
"""Makes a subject; options of a case (`memory` in bytes, `processes`) are given by name."""

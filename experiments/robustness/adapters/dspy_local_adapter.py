"""dspy: its `LocalInterpreter`, a Python process of its own, and its `RLM` with that over a scripted model."""

from __future__ import annotations

import dspy_adapter
from dspy.primitives.local_interpreter import LocalInterpreter

from experiments.robustness.suite.case import Played, ReplyCase, Seen
from experiments.robustness.suite.world import Surroundings

FEATURES = frozenset(["variables", "set", "answer", "called answer", "echo", "files", "stops", "process"])
TIMEOUT = 1.0


class OfLocalInterpreter(dspy_adapter.OfInterpreter):
    features = FEATURES
    bound = TIMEOUT + 0.5

    def run(self, code: str, hasty: bool = False) -> Seen:
        self.interpreter.execution_timeout = TIMEOUT if hasty else None
        seen = super().run(code)
        timed_out = hasty and seen.error == "died" and "time" in seen.message
        return Seen(seen.output, "stopped" if timed_out else seen.error, seen.message, seen.answer, (), seen.seconds)


def open_subject(place: Surroundings) -> OfLocalInterpreter:
    return OfLocalInterpreter(LocalInterpreter(output_fields=dspy_adapter.FIELDS))


def play(case: ReplyCase) -> Played:
    return dspy_adapter.play(case, LocalInterpreter)

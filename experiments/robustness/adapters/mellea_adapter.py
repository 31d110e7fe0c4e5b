"""mellea: its local execution environment, which starts a Python for every cell.  It has no loop over code blocks."""

from __future__ import annotations

from typing import Any

from host import timed
from mellea.stdlib.tools.interpreter import make_execution_environment

from experiments.robustness.suite.case import Seen
from experiments.robustness.suite.world import Surroundings

FEATURES = frozenset(["files", "stops", "process"])
"""Nothing stays from cell to cell, by design, so cases of several cells do not apply."""

TIMEOUT = 1  # whole seconds are what it takes

play = None


class OfEnvironment:
    features = FEATURES
    bound = TIMEOUT + 0.5

    def __init__(self, place: Surroundings) -> None:
        self.environment = make_execution_environment("local")
        self.preface = f"outside = {dict(place.outside)!r}\n"

    def run(self, code: str, hasty: bool = False) -> Seen:
        if "outside" in code and not code.startswith("outside = "):
            code = self.preface + code
        return timed(lambda: self._run(code, TIMEOUT if hasty else None))

    def _run(self, code: str, timeout: int | None) -> Seen:
        done = self.environment.execute(code, timeout)
        output = "\n".join(filter(None, [done.stdout, done.stderr]))
        if done.timed_out:
            return Seen(output, "stopped", done.skip_message or "timed out")
        if done.skipped:
            return Seen(done.skip_message or "", "raised", done.skip_message or "")
        if done.success:
            return Seen(output)
        died = done.exit_code is not None and done.exit_code < 0
        return Seen(output, "died" if died else "raised", (done.stderr or "")[-300:])

    def set(self, name: str, value: Any, reserved: bool = False) -> None:
        raise NotImplementedError("nothing stays from cell to cell")

    def new_run(self) -> None: ...

    def close(self) -> None: ...


def open_subject(place: Surroundings) -> OfEnvironment:
    return OfEnvironment(place)

"""mellea: its local execution environment, which starts a Python for every cell.  It has no loop over code blocks.

Nothing stays from cell to cell, by design, so cases of several cells do not apply.
"""

from __future__ import annotations

from mellea.stdlib.tools.interpreter import make_execution_environment
from suite.case import Seen
from suite.kinds import Kind
from suite.peers import Subject

TIMEOUT = 1  # whole seconds are accepted


class OfEnvironment(Subject):
    def __init__(self) -> None:
        self.environment, self.preface = make_execution_environment("local"), ""

    def _run(self, code: str, hasty: bool) -> Seen:
        if code.startswith("outside = "):
            self.preface = code + "\n"
        elif "outside" in code:
            code = self.preface + code
        done = self.environment.execute(code, TIMEOUT if hasty else None)
        output = "\n".join(filter(None, [done.stdout, done.stderr]))
        if done.timed_out:
            return Seen(output, "stopped", done.skip_message or "timed out")
        if done.skipped:
            return Seen(done.skip_message or "", "raised", done.skip_message or "")
        if done.success:
            return Seen(output)
        died = done.exit_code is not None and done.exit_code < 0
        return Seen(output, "died" if died else "raised", (done.stderr or "")[-300:])


KIND = Kind("mellea", frozenset(["files", "stops", "process"]), OfEnvironment, None, TIMEOUT + 0.5)

"""dspy: its `LocalInterpreter`, a Python process of its own, and its `RLM` with that over a scripted model.

Its default interpreter (Pyodide in Deno) is not asked: it fetches a part of itself from the network at its start.
"""

from __future__ import annotations

from typing import Any

import dspy
from dspy.primitives.code_interpreter import CodeExecutionError, CodeInterpreterError, FinalOutput
from dspy.primitives.local_interpreter import LocalInterpreter
from dspy.utils.dummies import DummyLM
from suite.case import Played, ReplyCase, Seen
from suite.kinds import Kind
from suite.peers import OutOfReplies, Script, Subject, in_their_words

FEATURES = ("variables", "set", "answer", "called-answer", "echo", "files", "stops", "process")
ANSWER = "SUBMIT({value})"
TIMEOUT = 1.0


class OfInterpreter(Subject):
    def __init__(self) -> None:
        self.interpreter = LocalInterpreter(output_fields=[{"name": "answer"}])
        self.given: dict[str, Any] = {}
        self.close = self.interpreter.shutdown

    def _run(self, code: str, hasty: bool) -> Seen:
        self.interpreter.execution_timeout = TIMEOUT if hasty else None
        try:
            result = self.interpreter.execute(in_their_words(code, ANSWER), self.given)  # as its RLM does
        except (CodeExecutionError, SyntaxError) as error:
            return Seen(str(error), "raised", str(error))
        except CodeInterpreterError as error:
            return Seen(str(error), "stopped" if hasty and "time" in str(error) else "died", str(error))
        if isinstance(result, FinalOutput):
            answer = result.output
            return Seen(answer=(answer["answer"] if isinstance(answer, dict) and "answer" in answer else answer,))
        return Seen("" if result is None else "\n".join(map(str, result)) if isinstance(result, list) else str(result))

    def set(self, name: str, value: Any, reserved: bool = False) -> None:
        self.given[name] = value


def play(case: ReplyCase) -> Played:
    """Its signature has a field for the code: the reply is put there whole, fences and prose included."""
    script = Script(case, ANSWER)

    class Scripted(DummyLM):
        def __init__(self) -> None:
            super().__init__([])
            self.answers = self._next()

        def _next(self) -> Any:
            while True:
                try:
                    yield {"reasoning": "-", "code": script.next()}
                except OutOfReplies:
                    raise KeyboardInterrupt from None  # an Exception would be tried again

    loop = dspy.RLM("context -> answer: Any", max_iters=len(case.replies) + 1, interpreter_factory=LocalInterpreter)
    with dspy.context(lm=Scripted()):
        try:
            done = loop(context="" if case.context is None else case.context)
        except (KeyboardInterrupt, OutOfReplies):
            return script.played((), "asked again")
    script.told = [str(entry.get("output", "")) for entry in done.trajectory]
    return script.played((done.answer,), "answered")


KIND = Kind("dspy_local", frozenset(FEATURES), OfInterpreter, play, TIMEOUT + 0.5)

"""dspy: its `PythonInterpreter` (Pyodide in Deno), and its `RLM` over a scripted model."""

from __future__ import annotations

from typing import Any

import dspy
from dspy.primitives.code_interpreter import CodeExecutionError, CodeInterpreterError, FinalOutput
from dspy.utils.dummies import DummyLM
from host import OutOfReplies, Script, in_their_words, timed

from experiments.robustness.suite.case import Played, ReplyCase, Seen
from experiments.robustness.suite.world import Surroundings

FEATURES = frozenset(["variables", "set", "answer", "called answer", "echo", "await", "files", "stops"])
"""Cells run in WebAssembly, with a file system of their own and without processes.  There is no time limit for a cell;
`stops` is among the features since a loop without end is the point of those cases."""

ANSWER = "SUBMIT({value})"
FIELDS = [{"name": "answer"}]


class OfInterpreter:
    features = FEATURES
    bound: float | None = None

    def __init__(self, interpreter: Any) -> None:
        self.interpreter = interpreter
        self.given: dict[str, Any] = {}

    def run(self, code: str, hasty: bool = False) -> Seen:
        return timed(lambda: self._run(in_their_words(code, ANSWER)))

    def _run(self, code: str) -> Seen:
        try:
            result = self.interpreter.execute(code, self.given)  # as its RLM does: before every cell
        except (CodeExecutionError, SyntaxError) as error:
            return Seen(str(error), "raised", str(error))
        except CodeInterpreterError as error:
            return Seen(str(error), "died", str(error))
        if isinstance(result, FinalOutput):
            answer = result.output
            return Seen(answer=(answer["answer"] if isinstance(answer, dict) and "answer" in answer else answer,))
        return Seen("" if result is None else "\n".join(map(str, result)) if isinstance(result, list) else str(result))

    def set(self, name: str, value: Any, reserved: bool = False) -> None:
        self.given[name] = value

    def new_run(self) -> None: ...

    def close(self) -> None:
        self.interpreter.shutdown()


def open_subject(place: Surroundings) -> OfInterpreter:
    return OfInterpreter(dspy.PythonInterpreter(output_fields=FIELDS))


def play(case: ReplyCase, interpreter_factory: Any = dspy.PythonInterpreter) -> Played:
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

    loop = dspy.RLM("context -> answer: Any", max_iters=len(case.replies) + 1, interpreter_factory=interpreter_factory)
    with dspy.context(lm=Scripted()):
        try:
            done = loop(context="" if case.context is None else case.context)
        except (KeyboardInterrupt, OutOfReplies):
            return script.played((), "asked again")
    script.told = [str(entry.get("output", "")) for entry in done.trajectory]
    return script.played((done.answer,), "answered")

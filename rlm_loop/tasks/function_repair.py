"""Small classic functions with one bug each, to be redefined in the REPL against a `check()`; hidden cases decide.

Inputs are Python literals; what is expected is what the right source returns.  Neighbours are alike in kind and level.

What counts is the function that the model left in the REPL, else the one in its answer, which serves strategies
without a REPL and models that only write the repair down; both are judged by the same hidden inputs.  By the contract
`answer` only a function in the answer counts.
"""

from __future__ import annotations

import ast
import contextlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from textwrap import indent
from typing import Any, cast

from rlm_loop.dialects.reader import codes_in
from rlm_loop.outcome import Score
from rlm_loop.repl.base import ReplError
from rlm_loop.repl.isolation.launchers import weaker
from rlm_loop.repl.settings import Limits
from rlm_loop.tasks.attempt import Attempt, Written, definition_of, left_in_repl
from rlm_loop.tasks.base import Suite, Task
from rlm_loop.tasks.packaged import packaged

Arguments = tuple[Any, ...]


@dataclass(frozen=True)
class Case:
    """A function: `right` is in `source` exactly once, and `wrong` in its place is the bug."""

    name: str
    level: int
    kind: str
    source: str
    right: str
    wrong: str
    visible: tuple[Arguments, ...]
    hidden: tuple[Arguments, ...]

    def __post_init__(self) -> None:
        if self.source.count(self.right) != 1:
            raise ValueError(f"{self.name}: {self.right!r} is in the source {self.source.count(self.right)} times")

    @property
    def buggy(self) -> str:
        return self.source.replace(self.right, self.wrong)

    @classmethod
    def of(cls, row: dict[str, Any]) -> Case:
        """A row of the file: the source line by line, the arguments of each call as a Python literal."""
        source = "".join(f"{line}\n" for line in row["source"])
        calls = {which: tuple(map(ast.literal_eval, row[which])) for which in ("visible", "hidden")}
        made: dict[str, Any] = {**row, "source": source, **calls}
        return cls(**made)


CASES: tuple[Case, ...] = tuple(map(Case.of, packaged("function_repair.json")))

SECONDS = 10.0  # for all hidden cases of a function that is only in the answer

QUESTION = (
    "This function has one bug:\n```python\n{source}```\nRedefine {name} without the bug in Python, then call check(). "
    'It exists already (do not define it) and prints the first failing case. When all cases pass, answer "done".'
)

INLINE = 'You cannot run code here: instead of "done", answer with the corrected function in a ```python block.'

# Runs in the REPL, too: lists and tuples are alike, and everything is JSON.
PLAIN = """def plain(value):
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return round(value, 9)
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return repr(value)
"""

CHECK = '''def check():
    """Run the cases; print the first that fails, or that all pass; return whether all pass."""
{plain}
    cases = {cases!r}
    for arguments, expected in cases:
        shown = "{name}(" + ", ".join(map(repr, arguments)) + ")"
        try:
            result = globals()["{name}"](*arguments)
        except Exception as error:
            print(f"{{shown}} raised {{type(error).__name__}}: {{error}}, expected {{expected!r}}")
            return False
        if plain(result) != expected:
            print(f"{{shown}} returned {{result!r}}, expected {{expected!r}}")
            return False
    print(f"all {{len(cases)}} cases pass")
    return True
'''

COLLECT = (
    PLAIN
    + """
outputs = []
for arguments in inputs:
    try:
        outputs.append(["returned", plain(function(*arguments))])
    except (Exception, SystemExit) as error:
        outputs.append(["raised", type(error).__name__])
"""
)


def function_repair() -> Suite:
    """32 functions of 5 to 17 lines; `level` 1 bugs show in the code, those of level 3 in what it does."""
    return Suite("function-repair", tuple(map(_task, CASES)), "one bug in a small classic function", "Apache-2.0")


def _task(case: Case) -> Task:
    visible = list(zip(case.visible, outputs_of(case, case.visible), strict=True))
    expected = outputs_of(case, case.hidden)
    return Task(
        f"function-repair-{case.name}",
        QUESTION.format(source=case.buggy, name=case.name),
        HiddenCases(case, tuple(expected)),
        expected,
        setup=case.buggy + "\n" + CHECK.format(plain=indent(PLAIN, "    "), cases=visible, name=case.name),
        collect=collect_expression(case),
        inline=INLINE,
        level=case.level,
        submissions=("artifact", "answer"),
    )


def outputs_of(case: Case, inputs: Sequence[Arguments]) -> list[Any]:
    """Return the results of the right source for these inputs, as JSON values."""
    names: dict[str, Any] = {}
    exec(PLAIN + case.source, names)  # our own source
    # The literals are copied by value: a function may change its arguments.
    return [names["plain"](names[case.name](*ast.literal_eval(repr(arguments)))) for arguments in inputs]


def collect_expression(case: Case) -> str:
    """A Python expression for the outputs of the function that is now called by the case's name; `None` without one.

    It brings all it needs, so nothing that a model defined or overwrote can be in its way.
    """
    names = f'{{"function": globals().get({case.name!r}), "inputs": {case.hidden!r}}}'
    return f"(lambda names: (exec({COLLECT!r}, names), names['outputs'])[1])({names})"


@dataclass(frozen=True)
class HiddenCases:
    """Scores a repair: resolved when every hidden input gives the right output; `value` is the share that does."""

    case: Case
    expected: tuple[Any, ...]
    run: Callable[[str, str], Any] | None = None  # (source, expression) -> value; the default is a fresh process

    def __call__(self, attempt: Attempt) -> Score:
        try:
            return self._score(attempt)
        except (OSError, ReplError):  # the machine's fault, not the answer's
            raise
        except Exception as error:  # an answer can be any object
            return Score(False, 0.0, f"the attempt cannot be judged: {type(error).__name__}", {})

    def _score(self, attempt: Attempt) -> Score:
        name, artifact = self.case.name, attempt.submission != "answer"
        in_repl = self._judge(_outputs(attempt.artifact), "repl") if artifact else None
        if in_repl is not None and (in_repl.resolved or left_in_repl(name, attempt.written)):
            return in_repl
        source = (definition_of(name, attempt.written) if artifact else None) or source_in(attempt.answer, name)
        if source is None:
            where = "in the REPL or in the answer" if artifact else "in the answer"
            shown = attempt.answer if isinstance(attempt.answer, str) else repr(attempt.answer)
            return in_repl or Score(False, 0.0, f"no function {where}", {"answer": shown[:400]})
        run = self.run or partial(run_in_fresh_process, cells=attempt.isolation)
        found = self._judge(_outputs(run(source, collect_expression(self.case))), "answer")
        why = "the function in the answer did not run to its end"
        return found or Score(False, 0.0, why, {"where": "answer", "source": source})

    def _judge(self, outputs: list[Any] | None, where: str) -> Score | None:
        if outputs is None:
            return None
        expected = self.expected
        right = [got == ["returned", want] for got, want in zip(outputs, expected, strict=False)]
        count, cases = sum(right), len(expected)
        evidence = {"where": where, "outputs": outputs, "expected": list(expected), "right": count, "cases": cases}
        resolved = len(outputs) == cases and all(right)
        return Score(resolved, count / cases, f"{count} of {cases} hidden cases are right", evidence)


def _outputs(value: Any) -> list[Any] | None:
    """The collected outputs, from JSON values or JSON text."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return None
    return cast("list[Any]", value) if isinstance(value, list) else None


def source_in(answer: Any, name: str) -> str | None:
    """The definitions in an answer that make the function `name`: of the last fenced block that has it, or bare.

    Only imports, assignments, functions and classes are kept: calls of `check()` and examples need what is not there.
    """
    if not isinstance(answer, str) or len(answer) > 100_000:
        return None
    start = answer.find(f"def {name}(")
    pieces = [answer[start:] if start >= 0 else "", answer, *codes_in(answer)]
    return definition_of(name, [Written(piece) for piece in pieces])


def run_in_fresh_process(source: str, expression: str, *, cells: str = "") -> Any:
    """The value of `expression` after `source`, in a REPL of its own; `None` if either raises or takes too long.

    Raises `ReplError` or `OSError` where no REPL can be had that is isolated as well as the attempt's `cells` were.
    """
    from rlm_loop.repl import PythonREPL  # starts a process: only where an answer holds source

    session = PythonREPL(timeout=SECONDS, limits=Limits(memory=1 << 30, file_size=1 << 20))
    try:
        session.run("pass")  # what fails here is the machine's fault
        if weaker(session.isolation, cells):
            raise ReplError(f"the answer is not run: its cells were {cells!r}, here it would be {session.isolation!r}")
        with contextlib.suppress(Exception):  # what a model wrote may raise anything
            return None if session.run(source).error else session.get(expression)
        return None
    finally:
        session.close()

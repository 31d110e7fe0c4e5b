"""The presets of injectors as a table: when each speaks, how long it is, and where its bytes are from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from rlm_loop.actions import Failure, Malformed, Observation, RunCode
from rlm_loop.dialects.base import Problem
from rlm_loop.dialects.code_blocks import CodeBlocks
from rlm_loop.dialects.injectors import Injected, Injector
from rlm_loop.dialects.presets import PRESETS, preset
from rlm_loop.dialects.rewriting import Rewriting
from rlm_loop.messages import Prompt, Reply
from rlm_loop.outcome import Turn
from rlm_loop.report.tables.table import Table

_PROBLEM = Problem("How many?")
_CELL = "total = sum(range(10))\nprint(total)"
_NOTES = (
    "Sizes of what is added to the first request and after one turn, at the framework's own limit of steps. The turn "
    "is the one of three that makes it say most: a cell of two lines with one variable, the same cell with an error, "
    "or a reply without a call; once half of the steps are used.",
)


def preset_table(count: Callable[[str], int] | None = None) -> Table:
    """All presets with the characters that they add; with their tokens too where `count` counts them.

    `LocalModel().count` is such a function: it loads the model.
    """
    units = ("characters", *(("tokens",) if count is not None else ()))
    columns = ["preset", "when", "from", *(f"{where}, {unit}" for unit in units for where in ("first", "a turn"))]
    rows: list[list[str]] = []
    for name, found in PRESETS.items():
        injectors = preset(name)
        sizes = [len, *([count] if count is not None else [])]
        figures = [str(size(text)) for size in sizes for text in (_first(injectors), _turn(injectors, found.steps))]
        sources = ", ".join(dict.fromkeys(f"{s.package} {s.version}".strip() for s in found.sources))
        rows.append([name, found.when, sources, *figures])
    return Table("Presets of injectors", columns, rows, _NOTES, labels=3)


def _first(injectors: Sequence[Injector]) -> str:
    return "".join(i.opening(_PROBLEM) for i in injectors)


def _turn(injectors: Sequence[Injector], steps: int) -> str:
    return max(("".join(_said(i, t) for i in injectors) for t in _turns(max(1, steps // 2))), key=len)


def _turns(index: int) -> Iterator[Turn]:
    code = Reply(f"```python\n{_CELL}\n```")
    fine = Observation("45", cause="repl_output", variables=("total",))
    failed = Observation("NameError", Failure("runtime", "NameError"), "repl_output", variables=("total",))
    yield Turn(index, code, (RunCode(_CELL),), (fine,))
    yield Turn(index, code, (RunCode(_CELL),), (failed,))
    empty = Failure("malformed", "No code block found.")
    yield Turn(
        index, Reply("Let me think."), (Malformed(empty.message),), (Observation(empty.message, empty, "error"),)
    )


def _said(injector: Injector, turn: Turn) -> str:
    """What an injector adds for a turn; of one that shows the turn in its own way, the labels."""
    if said := injector.after(turn):
        return said
    if not isinstance(injector, Rewriting):
        return ""
    speaks = Injected(CodeBlocks(), (injector,))
    request: Prompt = injector.rewrite(speaks.format_task(_PROBLEM, {}) + speaks.format_turn(turn), (turn,))
    return "".join(s.text for m in request.messages for s in m.spans if s.cause == f"scaffold:{injector.name}")

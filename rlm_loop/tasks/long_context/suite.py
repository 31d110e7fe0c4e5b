"""The suites `long_context/FAMILY@SIZE`: questions over real text of any size, made when a run needs it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from rlm_loop.errors import nearest
from rlm_loop.tasks.base import Deferred, Suite, Task
from rlm_loop.tasks.long_context import families
from rlm_loop.tasks.long_context.plan import Draw, QuestionPlan, size_name, size_of, weave
from rlm_loop.tasks.long_context.text import label, real_text
from rlm_loop.tasks.match import Match

#: Family to the function (draw, size, variant) -> Plan, in the order in which suites of all families ask.
FAMILIES: Mapping[str, Callable[[Draw, int, int], QuestionPlan]] = {
    "needle": families.needle,
    "needles": families.needles,
    "chain": families.chain,
    "records": families.records,
    "identifiers": families.identifiers,
    "pairs": families.pairs,
    "classify": families.classify,
}
SIZE = "100k"


def from_name(name: str, **options: Any) -> Suite:
    """The suite of a name: `long_context/needle@100k`, `long_context/needle` (100k), `long_context@1M` (all families).

    `options` are those of `long_context`.  Raises `ValueError` for a family or a size that there is not.
    """
    family, _, size = name.partition("@")
    chosen = family.partition("/")[2] or None
    return long_context(chosen, size or options.pop("size", SIZE), **options)


def long_context(family: str | None = None, size: str | int = SIZE, *, tasks: int = 8, seed: int = 0) -> Suite:
    """Return `tasks` questions of a family (`None`: of all in turn) over texts of exactly `size` characters.

    Two neighbours are of one kind and equally hard, so that the halves of the suite are alike.  Nothing is read before
    a task's `material`.
    """
    if family is not None and family not in FAMILIES:
        hint = nearest(family, FAMILIES) or ";"
        raise ValueError(f"there is no long_context family {family!r}{hint} known are {', '.join(FAMILIES)}")
    characters = size_of(size)
    made = [
        _task(f, characters, seed, number)
        for start in range(0, tasks, 2)  # neighbours are of one family, for the halves
        for f in ([family] if family is not None else FAMILIES)
        for number in range(start, min(start + 2, tasks))
    ]
    name = f"long_context{'/' + family if family else ''}@{size_name(characters)}"
    description = f"questions about {characters:,} characters of real text (docstrings)"
    return Suite(name, tuple(made), description, "Apache-2.0")


def _task(family: str, size: int, seed: int, number: int) -> Task:
    key = f"{family}/{size}/{seed}/{number}/docstrings"
    plan = FAMILIES[family](Draw(key), size, number // 2)
    return Task(
        f"long-{family}-{size_name(size)}-{number + 1}",
        plan.question,
        Match(plan.expected, plan.how),
        plan.expected,
        context=Deferred(key, lambda: _text(family, size, number, key), lambda: f"{key}; {label()}"),
        level=1 + list(FAMILIES).index(family) // 3,
        facts={"family": family, "size": size, "number": number, "seed": seed, "text": "docstrings"},
    )


@functools.lru_cache(maxsize=1)  # a study asks for the same text once for each arm
def _text(family: str, size: int, number: int, key: str) -> str:
    plan = FAMILIES[family](Draw(key), size, number // 2)
    return weave(plan.lines(), size, real_text(), Draw(f"{key}/places"))

"""From an answer back through variables, cells and sub-calls to ranges of the context.

It is static, over the statements that were run: which names each binds and reads, statement by statement, not which
values flowed.  A branch not taken, an element not used and a cell that raised half-way count as if they had.  A
function's body counts where its name is used.  What is read off an object's attributes is that of the whole object.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from rlm_loop.accounting.tree import TraceTree, tree_of
from rlm_loop.accounting.tree.nodes import ROOT
from rlm_loop.study.coverage.coverage import Coverage
from rlm_loop.study.coverage.names import ANSWER, ASKS, CONTEXT
from rlm_loop.study.coverage.ranges import Range, length, merged
from rlm_loop.study.coverage.statements import GivenAnswer, RunStatement, answer_of, statements_of
from rlm_loop.study.coverage.texts import READ
from rlm_loop.traces.reader import RunRecord

if TYPE_CHECKING:
    import pandas as pd

How = Literal["computed", "copied", "said", "none"]

_HOW = {
    "computed": "computed by code",
    "copied": "copied from text of the context that was shown",
    "said": "in the model's own words: no output that it saw holds it",
    "none": "no answer",
}


@dataclass(frozen=True)
class Link:
    """One edge, from what was used (`source`) to what used it (`target`): `kind` is variable, call, range or answer."""

    source: str
    target: str
    kind: str
    detail: str = ""


@dataclass(frozen=True, repr=False)
class Lineage:
    """Where an answer came from.

    `how`: `computed` (code bound it, or printed it and the model repeated it), `copied` (the model repeated it from
    text of the context that it was shown), `said` (nothing that it was shown holds it), `none`.  `steps` are the
    statements it goes through, the last first; `calls` the sub-calls these made; `ranges` what of the context those
    calls or the copied text saw; `code_ranges` constant slices of the context that the statements read, `None` where
    they read it as a whole or in a way that cannot be told; `reads_context` whether they name it at all.
    """

    node: str
    answer: GivenAnswer | None
    how: How
    steps: tuple[RunStatement, ...] = ()
    calls: tuple[str, ...] = ()
    ranges: tuple[Range, ...] = ()
    code_ranges: tuple[Range, ...] | None = ()
    links: tuple[Link, ...] = field(default=(), repr=False)

    @property
    def reads_context(self) -> bool:
        return any(CONTEXT in s.code.reads for s in self.steps)

    def frame(self) -> pd.DataFrame:
        """A tidy frame of the edges: source, target, kind, detail."""
        import pandas as pd

        return pd.DataFrame([vars(link) for link in self.links], columns=list(Link.__annotations__))

    def text(self) -> str:
        """A tree from the answer down to ranges, in lines."""
        shown = "" if self.answer is None else f" {_short(self.answer.text, 60)!r} in turn {self.answer.turn}"
        lines = [f"answer of {self.node}{shown}: {_HOW[self.how]}"]
        items = [*((step.where, _short(step.code.source, 70)) for step in self.steps)]
        asked = {
            s.where: [x for x in self.links if x.target == s.where and x.kind in ("call", "range")] for s in self.steps
        }
        loose = [x for x in self.links if x.target == "answer" and x.kind == "range"]
        for where, source in items:
            lines.append(f"├─ {where}: {source}")
            lines += [f"│     {x.kind} {x.source}{f': {x.detail}' if x.detail else ''}" for x in _few(asked[where])]
        lines += [f"├─ {x.source}{f': {x.detail}' if x.detail else ''}" for x in loose]
        lines.append(f"└─ {self._end()}")
        return "\n".join(lines)

    def _end(self) -> str:
        said: list[str] = []
        if self.ranges:
            said.append(
                f"{length(self.ranges):,} characters of the context in {len(self.ranges)} ranges, read by models"
            )
        if self.code_ranges is None:
            said.append("code read the context as a whole, or a part that its text does not tell")
        elif self.code_ranges:
            said.append("code read " + ", ".join(f"[{a:,}, {b:,})" for a, b in self.code_ranges))
        return "; ".join(said) or "nothing of the context"

    def __repr__(self) -> str:
        """The same in words, since a notebook shows it."""
        return self.text()


def lineage_of(record: RunRecord, coverage: Coverage, *, node: str = ROOT, tree: TraceTree | None = None) -> Lineage:
    """The lineage of a node's answer, of the run's by default."""
    tree = tree or tree_of(record)
    answer = answer_of(record, node)
    if answer is None:
        return Lineage(node, None, "none")
    done = [s for s in statements_of(record, node) if (s.turn, s.cell) <= (answer.turn, answer.cell)]
    steps = _back(done, frozenset({ANSWER})) if answer.in_code else []
    how: How = "computed"
    copied: list[Range] = []
    if not _computed(steps):  # said in words, or as a constant in code: what the model saw may hold it
        cell, copied = _held_by(answer, node, done, coverage)
        how = "copied" if copied else "computed" if cell else "said"
        steps = [*steps, *cell]
    return _made(node, answer, how, steps, copied, coverage, tree)


def _computed(steps: Sequence[RunStatement]) -> bool:
    return any(s.code.reads - {ANSWER, "print", "str", "int", "float"} for s in steps)


def _back(steps: Sequence[RunStatement], wanted: frozenset[str]) -> list[RunStatement]:
    """The statements that a name's value may depend on, the last first."""
    needed = set(wanted)
    found: list[RunStatement] = []
    for step in reversed(steps):
        if step.code.binds & needed:
            found.append(step)
            if not step.failed:
                needed -= step.code.kills
            needed |= step.code.reads
    return found


def _held_by(
    answer: GivenAnswer, node: str, done: Sequence[RunStatement], coverage: Coverage
) -> tuple[list[RunStatement], list[Range]]:
    """The cell whose output holds the answer's text, or the ranges of the context from which it was copied.

    The last output that holds it counts; where that shows the context itself, the answer was copied.
    """
    words = _words(answer.text)
    if words is None:
        return [], []
    for shown, ranges in reversed(coverage.shown):
        if shown.node != node or shown.channel not in READ or shown.turn >= answer.turn or not words.search(shown.text):
            continue
        copied = [
            (start + m.start(), start + m.end())
            for start, end in ranges
            for m in words.finditer(coverage.source[start:end])
        ]
        if copied or shown.channel == "prompt":
            return [], copied
        last = [s for s in done if s.turn == shown.turn]
        shows = [s for s in last if s.code.prints]
        before = [s for s in done if s.turn <= shown.turn]
        needed = frozenset(name for s in shows for name in s.code.reads)
        return [*reversed(shows), *(s for s in _back(before, needed) if s not in shows)], []
    return [], []


def _words(text: str) -> re.Pattern[str] | None:
    """The answer as a whole word or phrase; a sentence is looked for by its numbers."""
    bare = text.strip().strip(".'\"`")
    if not bare:
        return None
    if len(bare) > 40 and (numbers := re.findall(r"\d[\d,.]*\d|\d", bare)):
        bare = max(numbers, key=len)
    return re.compile(rf"(?<!\w){re.escape(bare[:200])}(?!\w)")


def _made(
    node: str,
    answer: GivenAnswer,
    how: How,
    steps: Sequence[RunStatement],
    copied: Sequence[Range],
    coverage: Coverage,
    tree: TraceTree,
) -> Lineage:
    links: list[Link] = []
    calls: list[str] = []
    code: list[Range] | None = []
    ranges = list(copied)
    links += [Link(f"[{a:,}, {b:,})", "answer", "range", "copied from what was shown") for a, b in copied]
    askers = set(ASKS) | {n for s in steps if s.code.defines and s.code.reads & ASKS for n in s.code.binds}
    for number, step in enumerate(steps):
        for later in steps[:number] if number else ():
            used = step.code.binds & later.code.reads
            links += [Link(step.where, later.where, "variable", ", ".join(sorted(used)))] if used else []
        if ANSWER in step.code.binds or not (answer.in_code or number):
            links.append(Link(step.where, "answer", "answer"))
        for start, stop in step.code.slices:
            low, high, _ = slice(start, stop).indices(coverage.size)
            if code is not None and high > low:
                code.append((low, high))
            links.append(Link(f"[{low:,}, {high:,})", step.where, "range", "read by code"))
        if step.code.whole:
            code = None
            links.append(Link(CONTEXT, step.where, "range", "read by code as a whole, or an unknown part"))
        if step.code.reads & askers and not step.code.defines:
            for child in tree.children(node):
                if child.turn == step.turn and child.node not in calls:
                    calls.append(child.node)
                    saw = _saw(coverage, tree, child.node)
                    ranges += saw
                    links.append(Link(child.node, step.where, "call", f"{child.kind}, saw {length(saw):,} characters"))
                    links += [Link(f"[{a:,}, {b:,})", child.node, "range") for a, b in saw]
    found = None if code is None else tuple(merged(code))
    return Lineage(node, answer, how, tuple(steps), tuple(calls), tuple(merged(ranges)), found, tuple(links))


def _saw(coverage: Coverage, tree: TraceTree, node: str) -> list[Range]:
    """What a sub-call and all below it were sent."""
    found: list[Range] = []
    below = [node]
    while below:
        path = below.pop()
        found += [(s.start, s.end) for s in coverage.of_node(path) if s.channel in READ]
        below += [child.node for child in tree.children(path)]
    return merged(found)


def _few(links: Sequence[Link], most: int = 6) -> Iterator[Link]:
    yield from links[:most]
    if len(links) > most:
        yield Link(f"and {len(links) - most} more", "", "...")


def _short(text: str, most: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"

"""How the oracle reads a text for one question: the finds in a piece, how finds of pieces are joined, and the answer.

`READ` and `FINISH` are source code, since the oracle pastes them into its cells: at depth 0 it reads by code in the
REPL, below that it runs the same code itself to answer a sub-question.  Only topics cannot be read by code: what an
entry is about the oracle looks up where the suite took it from.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from rlm_loop.tasks.long_context.families import pieces
from rlm_loop.tasks.long_context.plan import STARTS

Finds = list[Any]
NOTHING = "not found"
_SUM = "sum(items)"


@dataclass(frozen=True)
class Reader:
    """One question, as a program.  `read` is an expression over `text`, `finish` one over all finds as `items`."""

    read: str
    finish: str
    by_code: bool = True

    @property
    def additive(self) -> bool:
        """The finds of several pieces add up."""
        return self.finish == _SUM

    def finds(self, text: str) -> Finds:
        """What a piece of text holds for the question."""
        if not self.by_code:
            return _topics(self.read, text)
        return eval(self.read, {"re": re, "text": text})

    def answer(self, items: Finds) -> Any:
        """The answer from the finds of all pieces; says so where nothing fits."""
        known: dict[str, Any] = {"Counter": Counter, "items": items}
        exec(FOLLOW, known)
        try:
            return eval(self.finish, known)
        except (IndexError, KeyError):
            return NOTHING

    def joined(self, items: Finds) -> Finds:
        """The finds of several pieces as those of one: a sum where they add up."""
        return [sum(items)] if self.additive else items

    def program(self) -> str:
        """The cell that answers by code alone, over the whole `context`."""
        return f"import re\ntext = context\nitems = {self.read}\n{self.ending()}"

    def ending(self) -> str:
        """The lines of a cell that set the answer from all finds."""
        helper = FOLLOW if "follow(" in self.finish else ""
        return (
            f"from collections import Counter\n{helper}try:\n    final_answer = {self.finish}\n"
            f"except (IndexError, KeyError):\n    final_answer = {NOTHING!r}"
        )


#: What `finish` of a chain needs besides.
FOLLOW = """def follow(steps, at):
    while at in steps:
        at = steps[at]
    return at
"""


def reader_in(text: str, *, last: bool) -> tuple[str, Reader | None]:
    """The question in a prompt and its program: the first one found in it, or the last."""
    lines = [line[line.index(start) :] for line in text.split("\n") for start in STARTS if start in line]
    known = [(line, reader) for line in lines if (reader := reader_of(line)) is not None]
    return known[-1 if last else 0] if known else ("", None)


def reader_of(question: str) -> Reader | None:
    """The program for a question of the suites `long_context`; `None` for a prompt of another shape."""
    for pattern, shape in _SHAPES:
        if found := re.search(pattern, question):
            read, finish = (code.format(*found.groups()) for code in (shape.read, shape.finish))
            return replace(shape, read=read, finish=finish)
    return None


_BADGE = r"re.findall(r'Badge (\S+) was seen', text)"
_RECORD = r"re.findall(r'Record \d+: city=(\w+) status=(\w+) amount=(\d+)', text)"
_PERSON = r"[list(x) for x in re.findall(r'Person \d+ lives in (\w+) and was born in (\d+)', text)]"
_NOTE = r"[list(x) for x in re.findall(r'Note (\d+): (?:go on with note|the answer is) (\S+)', text)]"
_THREE = r"[list(x) for x in re.findall(r'access code of ({0}|{1}|{2}) is (\d+)', text)]"
_ALIKE = "sum(n * (n - 1) // 2 for n in Counter(map(tuple, items)).values())"
_SAME_YEAR = "sum(n * (n - 1) // 2 for n in Counter(x[1] for x in items).values())"
_MOST = "Counter(items).most_common(1)[0][0]"

#: A pattern in the question, and the program, in which `{0}` is the pattern's first group.
_SHAPES: Sequence[tuple[str, Reader]] = (
    (
        r"The (secret code|password) of (\w+) is (?:NUMBER|WORD)",
        Reader(r"re.findall(r'{0} of {1} is (\S+)', text)", "items[0]"),
    ),
    (
        r"all the numbers of (\w+)\?",
        Reader(r"re.findall(r'access code of {0} is (\S+)', text)", "[int(x) for x in items]"),
    ),
    (
        r"the numbers of (\w+), (\w+) and (\w+)\?",
        Reader(_THREE, "[int(dict(items)[c]) for c in ({0!r}, {1!r}, {2!r})]"),
    ),
    (r"Start at note (\d+)", Reader(_NOTE, "follow(dict(items), {0!r})")),
    (r"How many records have status=(\w+)\?", Reader(f"[sum(s == {{0!r}} for _, s, _ in {_RECORD})]", _SUM)),
    (
        r"How many records have city=(\w+) and an amount above (\d+)",
        Reader(f"[sum(c == {{0!r}} and int(a) > {{1}} for c, _, a in {_RECORD})]", _SUM),
    ),
    (r"records with city=(\w+)\?", Reader(f"[sum(int(a) for c, s, a in {_RECORD} if c == {{0!r}})]", _SUM)),
    (r"records with status=(\w+)\?", Reader(f"[sum(int(a) for c, s, a in {_RECORD} if s == {{0!r}})]", _SUM)),
    (r"How many different badges", Reader(_BADGE, "len(set(items))")),
    (r"badges were seen more than once", Reader(_BADGE, "sum(n > 1 for n in Counter(items).values())")),
    (r"badges were seen exactly once", Reader(_BADGE, "sum(n == 1 for n in Counter(items).values())")),
    (r"Which badge was seen most often", Reader(_BADGE, _MOST)),
    (r"pairs of two persons live in the same city", Reader(_PERSON, _ALIKE)),
    (r"pairs of two persons were born in the same year", Reader(_PERSON, f"{_SAME_YEAR} - {_ALIKE}")),
    (r"How many entries are about (.+?)\?", Reader("count:{0}", _SUM, by_code=False)),
    (r"How many entries of user (\d) are about (.+?)\?", Reader("user {0}:{1}", _SUM, by_code=False)),
    (r"Which topic do most entries have", Reader("all", _MOST, by_code=False)),
)


def _topics(what: str, text: str) -> Finds:
    """The topics of the entries of a text: looked up by the entry's words, as an oracle may."""
    owners = _owners()
    entries = re.findall(r"^Entry #\d+ \(user (\d)\): (.*)$", text, re.MULTILINE)
    known = [(user, owners[words]) for user, words in entries if words in owners]
    if what == "all":
        return [topic for _, topic in known]
    whose, _, topic = what.partition(":")
    return [sum(t == topic and whose in ("count", f"user {user}") for user, t in known)]


@functools.cache
def _owners() -> dict[str, str]:
    return {text: topic for topic, texts in pieces().items() for text in texts}

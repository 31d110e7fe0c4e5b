"""How the oracle reads a text for one question: the finds in a piece, how finds of pieces are joined, and the answer.

`READ` and `FINISH` are source code, since the oracle pastes them into its cells: at depth 0 it reads by code in the
REPL, below that it runs the same code itself to answer a sub-question.  Only topics cannot be read by code: what an
entry is about the oracle looks up where the suite took it from.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rlm_loop.tasks.long_context.families import pieces
from rlm_loop.tasks.long_context.plan import STARTS

Finds = list[Any]
NOTHING = "not found"

_BADGE = r"re.findall(r'Badge (\S+) was seen', text)"
_RECORD = r"re.findall(r'Record \d+: city=(\w+) status=(\w+) amount=(\d+)', text)"
_PERSON = r"[list(x) for x in re.findall(r'Person \d+ lives in (\w+) and was born in (\d+)', text)]"
_NOTE = r"[list(x) for x in re.findall(r'Note (\d+): (?:go on with note|the answer is) (\S+)', text)]"


@dataclass(frozen=True)
class Reader:
    """One question, as a program.  `read` is an expression over `text`, `finish` one over all finds as `items`."""

    read: str
    finish: str
    additive: bool = False
    by_code: bool = True

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
    for pattern, make in _SHAPES:
        if found := re.search(pattern, question):
            return make(*found.groups())
    return None


def _found(what: str, city: str) -> str:
    return rf"re.findall(r'{what} of {city} is (\S+)', text)"


def _pairs(alike: str) -> Reader:
    both = "sum(n * (n - 1) // 2 for n in Counter(map(tuple, items)).values())"
    years = "sum(n * (n - 1) // 2 for n in Counter(x[1] for x in items).values())"
    return Reader(_PERSON, both if alike.startswith("live") else f"{years} - {both}")


def _records(condition: str) -> Reader:
    if found := re.match(r"How many records have status=(\w+)\?", condition):
        return _sum(f"[sum(s == {found[1]!r} for _, s, _ in {_RECORD})]")
    if found := re.match(r"How many records have city=(\w+) and an amount above (\d+)", condition):
        return _sum(f"[sum(c == {found[1]!r} and int(a) > {found[2]} for c, _, a in {_RECORD})]")
    city = re.search(r"city=(\w+)", condition)
    status = re.search(r"status=(\w+)", condition)
    chosen = f"c == {city[1]!r}" if city else f"s == {status[1]!r}" if status else "True"
    return _sum(f"[sum(int(a) for c, s, a in {_RECORD} if {chosen})]")


def _sum(read: str, by_code: bool = True) -> Reader:
    return Reader(read, "sum(items)", additive=True, by_code=by_code)


def _badges(asked: str) -> Reader:
    counted = {
        "How many different": "len(set(items))",
        "How many badges were seen more": "sum(n > 1 for n in Counter(items).values())",
        "How many badges were seen exactly": "sum(n == 1 for n in Counter(items).values())",
        "Which badge": "Counter(items).most_common(1)[0][0]",
    }
    return Reader(_BADGE, next(code for start, code in counted.items() if asked.startswith(start)))


def _one(what: str, city: str) -> Reader:
    return Reader(_found(what, city), "items[0]")


def _all(city: str) -> Reader:
    return Reader(_found("access code", city), "[int(x) for x in items]")


def _three(*cities: str) -> Reader:
    read = rf"[list(x) for x in re.findall(r'access code of ({'|'.join(cities)}) is (\d+)', text)]"
    return Reader(read, f"[int(dict(items)[c]) for c in {cities!r}]")


def _notes(start: str) -> Reader:
    return Reader(_NOTE, f"follow(dict(items), {start!r})")


def _about(topic: str) -> Reader:
    return _sum(f"count:{topic}", by_code=False)


def _about_of(user: str, topic: str) -> Reader:
    return _sum(f"user {user}:{topic}", by_code=False)


def _most() -> Reader:
    return Reader("all", "Counter(items).most_common(1)[0][0]", by_code=False)


_SHAPES: Sequence[tuple[str, Callable[..., Reader]]] = (
    (r"The (secret code|password) of (\w+) is (?:NUMBER|WORD)", _one),
    (r"all the numbers of (\w+)\?", _all),
    (r"the numbers of (\w+), (\w+) and (\w+)\?", _three),
    (r"Start at note (\d+)", _notes),
    (r"are records such as .*?\"\. (.*\?)", _records),
    (r"are like \"Badge .*?\"\. (.*\?)", _badges),
    (r"How many pairs of two persons (live in the same city|were born)", _pairs),
    (r"How many entries are about (.+?)\?", _about),
    (r"How many entries of user (\d) are about (.+?)\?", _about_of),
    (r"Which topic do most entries have", _most),
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

"""Causes of the pieces of a stranger's prompt, told by structure alone: nothing of the framework is known.

system and developer messages are `system`; the first user message is `task`; lines of later user messages that an
earlier user or system message had are `scaffold:repeated`, lines that the model itself wrote `scaffold:echo`, and all
others `user`: most often the result of an action, in frameworks that send results as user text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import groupby

from rlm_loop.accounting.attribution import UNATTRIBUTED
from rlm_loop.messages import Message, Reply, Span
from rlm_loop.meter import blocks
from rlm_loop.meter.request import RequestMessage

REPEATED, ECHO, USER = "scaffold:repeated", "scaffold:echo", "user"
#: What stands around the task in its message, where `known` says what the task is.
AROUND = "scaffold:around"
#: Characters (spaces not counted) that a run of lines has at least before it counts as said before: a lone `}` or
#: `True` may well be new.
LEAST = 10
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_SECTION = re.compile(r"^#{1,2} (.{1,60}?)[ \t]*$", re.MULTILINE)


def lines_of(text: str) -> set[str]:
    """The lines of a text that say something."""
    return {line.strip() for line in text.splitlines()} - {""}


def written(reply: Reply) -> set[str]:
    """The lines that a reply wrote: of its text, and of the strings in it and in its calls' arguments where JSON is."""
    found = lines_of(reply.text)
    for text in (reply.text, *(call.arguments for call in reply.tool_calls)):
        if text.lstrip()[:1] in ("{", "["):
            for said in _STRING.findall(text):
                with suppress(ValueError):
                    found |= lines_of(json.loads(said, strict=False))
    return found


def sections_of(text: str) -> Iterator[tuple[str, str]]:
    """A system text in pieces, each with its cause: `system`, with the heading of the section as the detail."""
    at, cause = 0, "system"
    for match in _SECTION.finditer(text):
        yield text[at : match.start()], cause
        at, cause = match.start(), f"system/{match[1].replace('/', '-')}"
    yield text[at:], cause


def own_words(text: str) -> str:
    """Return the user's own words, without what a harness put there, as far as the structure tells."""
    return "".join(piece for piece, cause in blocks.pieces(text, "user") if not cause).strip()


class Causes:
    """Sorts the messages of one conversation.  A message that was sorted keeps its causes and its turn for good, so
    that a prompt which only grows stays the same at its start.

    `known` maps causes to texts that are theirs wherever they stand (the question, the output of a tool ...).
    """

    def __init__(self, known: Mapping[str, Sequence[str]] | None = None) -> None:
        whose = {text: cause for cause, texts in (known or {}).items() for text in texts if text}
        self._whose = whose
        self._knows_task = "task" in whose.values()
        longest_first = sorted(whose, key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, longest_first))) if whose else None
        self._made: dict[tuple[RequestMessage, int], Message] = {}
        self._lines: set[str] = set()
        self._whole: set[str] = set()
        self._written: set[str] = set()
        self._task: set[str] | None = None
        self._called: dict[str, str] = {}  # the tool of a call
        self._first = 1  # which user message has the task

    def messages(self, said: Sequence[RequestMessage], turn: int) -> tuple[Message, ...]:
        """The messages with causes; new ones are of that turn."""
        times: dict[RequestMessage, int] = {}
        out: list[Message] = []
        users = 0
        for one in said:
            times[one] = time = times.get(one, 0) + 1
            users += one.role == "user"
            made = self._made.get((one, time))
            if made is None:
                self._called.update((call.id, call.name) for call in one.tool_calls if call.id)
                spans = tuple(Span(text, cause) for text, cause in self._spans(one, first=users == self._first))
                made = Message(one.role, spans, one.tool_calls, one.tool_call_id, turn)
                self._made[one, time] = made
                if one.role in ("system", "user"):
                    self._lines |= lines_of(one.text)
                    self._whole.add(one.text)
            out.append(made)
        return tuple(out)

    def wrote(self, reply: Reply) -> None:
        """Note what the model wrote, so that it is known again."""
        self._written |= written(reply)

    def _spans(self, one: RequestMessage, *, first: bool) -> Iterator[tuple[str, str]]:
        if one.thought:
            yield one.thought, "assistant/thinking"
        yield from _joined(self._pieces(one, first))
        for kind in one.unread:
            yield "", f"{UNATTRIBUTED}/{kind}"

    def _pieces(self, one: RequestMessage, first: bool) -> Iterator[tuple[str, str]]:
        """Yield known texts; else the blocks that a harness marks; else what the role and place tell."""
        plain: set[str] = set()
        for text, marked in blocks.pieces(one.text, one.role):
            at = 0
            for match in self._known.finditer(text) if self._known and one.role != "assistant" else ():
                yield from self._sorted(one, text[at : match.start()], marked, first)
                yield match.group(), self._whose[match.group()]
                at = match.end()
            yield from self._sorted(one, text[at:], marked, first)
            plain |= set[str]() if marked else lines_of(text)
        if one.role == "user" and first and self._task is None:
            if plain:
                self._task = plain
            else:  # blocks of the harness alone: the task comes in a later message
                self._first += 1

    def _sorted(self, one: RequestMessage, text: str, marked: str, first: bool) -> Iterator[tuple[str, str]]:
        if marked:
            yield text, marked
        elif one.role == "system":
            yield from sections_of(text)
        elif one.role != "user":
            tool = self._called.get(one.tool_call_id or "")
            yield text, one.role if one.role != "tool" else f"tool_result/{tool}" if tool else "tool_result"
        elif first and self._task is None:
            yield text, AROUND if self._knows_task else "task"
        elif one.text in self._whole:
            yield text, REPEATED
        else:
            yield from self._by_line(text, first)

    def _by_line(self, text: str, first: bool) -> Iterator[tuple[str, str]]:
        """The first user message, where it is written anew each time, keeps what it had as the task."""
        before = "task" if first else REPEATED
        known = (self._task or set[str]()) if first else self._lines
        sorts: list[tuple[str, str]] = []
        for line in text.splitlines(keepends=True):
            words = line.strip()
            if not words:
                cause = sorts[-1][1] if sorts else USER
            else:
                cause = before if words in known else ECHO if words in self._written else USER
            sorts.append((line, cause))
        for cause, run in groupby(sorts, key=lambda s: s[1]):
            joined = "".join(line for line, _ in run)
            yield joined, cause if cause == "task" or _says_something(joined) else USER


def _says_something(text: str) -> bool:
    return sum(len(word) for word in text.split()) >= LEAST and any(c.isalpha() for c in text)


def _joined(pieces: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    for cause, run in groupby((p for p in pieces if p[0]), key=lambda p: p[1]):
        yield "".join(text for text, _ in run), cause

"""The same injector at another dose: only every k-th turn, or at a size of one's own."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import cycle

from rlm_loop.dialects.base import Problem
from rlm_loop.dialects.injectors import Injector
from rlm_loop.dialects.rewriting import LatestOnly, Rewriting
from rlm_loop.outcome import Turn

_SENTENCE = re.compile(r"\S.*?(?:[.!?:](?=\s)|\n|\Z)", re.DOTALL)


class _Dose:
    """What an injector at another dose has of the injector itself."""

    injector: Injector

    @property
    def leads(self) -> bool:
        return bool(getattr(self.injector, "leads", False))

    @property
    def wants_variables(self) -> bool:
        return bool(getattr(self.injector, "wants_variables", False))


@dataclass(frozen=True)
class Every(_Dose):
    """What `every` makes."""

    k: int
    injector: Injector

    @property
    def name(self) -> str:
        return f"{self.injector.name}/{self.k}"

    def opening(self, problem: Problem) -> str:
        return self.injector.opening(problem)

    def after(self, turn: Turn) -> str:
        return self.injector.after(turn) if turn.index % self.k == 0 else ""


@dataclass(frozen=True)
class Sized(_Dose):
    """What `sized` makes."""

    injector: Injector
    characters: int

    @property
    def name(self) -> str:
        return f"{self.injector.name}@{self.characters}"

    def opening(self, problem: Problem) -> str:
        return resized(self.injector.opening(problem), self.characters)

    def after(self, turn: Turn) -> str:
        return resized(self.injector.after(turn), self.characters)


def every(k: int, injector: Injector) -> Injector:
    """The injector after the turns k, 2k, 3k ... only.  What it says before the first reply stays.

    A conditional injector is silent where its condition does not hold in such a turn; it does not catch up.
    Raises `ValueError` for a `k` below 1.
    """
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise ValueError(f"every(k, injector) takes a number of turns, 1 or more, not {k!r}")
    if isinstance(injector, LatestOnly):
        return LatestOnly(every(k, injector.injector))
    return Every(k, _text(injector))


def sized(injector: Injector, characters: int) -> Injector:
    """The injector with each of its texts at exactly so many characters.

    A longer text is cut there, in the middle of a word if need be; a shorter one is grown by saying its sentences
    again, one after the other with a space between, and then cut.  No text stays none, and 0 characters are none.
    Raises `ValueError` for a negative number.
    """
    if isinstance(characters, bool) or not isinstance(characters, int) or characters < 0:
        raise ValueError(f"sized(injector, characters) takes a number of characters, 0 or more, not {characters!r}")
    if isinstance(injector, LatestOnly):
        return LatestOnly(sized(injector.injector, characters))
    return Sized(_text(injector), characters)


def _text(injector: Injector) -> Injector:
    if isinstance(injector, Rewriting):
        raise ValueError(f"{injector.name} is no text that is added but a way to show the past; it has no other dose")
    return injector


def resized(text: str, characters: int) -> str:
    """The text at exactly so many characters; an empty one stays empty (see `sized`)."""
    sentences = [s.strip() for s in _SENTENCE.findall(text)]
    if not text or not sentences:
        return text[:characters]
    again = cycle(sentences)
    while len(text) < characters:
        text += ("" if text[-1].isspace() else " ") + next(again)
    return text[:characters]

"""The frames, each at a multiple of its own length, and a neutral text of as many tokens in its place."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

from rlm_loop.dialects import Injector, Problem
from rlm_loop.outcome import Turn

sys.path.append(str(Path(__file__).resolve().parents[2]))  # the repository's folder, for `experiments`

from experiments.scaffold_length.peer_texts import MELLEA, RlmsTurnCounter, SmolagentsEcho, resized

#: Multiples of a frame's own length; 1 is the frame, byte for byte.
SIZES = (0.25, 1, 4)
#: What rlms' counter counts to: more than the turns of a chain.
STEPS = 50
#: Frames that say something in a run of calls without a mistake and add no rule on the form of a reply.  mellea's says
#: it once and before every reply, rlms' before every reply, smolagents' after every turn with calls.
FRAMES: Mapping[str, tuple[Injector, ...]] = {
    "mellea": MELLEA,
    "rlms": (RlmsTurnCounter(STEPS),),
    "smolagents": (SmolagentsEcho(),),
}

#: Says nothing of tasks, tools or turns.
NEUTRAL = (
    "The sky over the bay is blue and the water is calm. A light wind comes from the west. Some birds rest on the wall "
    "near the old tree. The road to the hill is long and dry. In the garden the roses are red and white. "
)
_PIECES = re.compile(r"\s*(?:\w+|[^\w\s])")


@dataclass(frozen=True)
class Scaled(Injector):
    """An injector with each of its texts at a multiple of its length, cut or grown as `resized` does."""

    injector: Injector
    times: float

    @property
    def name(self) -> str:
        return f"{self.injector.name}*{self.times:g}"

    @property
    def leads(self) -> bool:
        return self.injector.leads

    def opening(self, problem: Problem) -> str:
        return self._scaled(self.injector.opening(problem))

    def after(self, turn: Turn) -> str:
        return self._scaled(self.injector.after(turn))

    def _scaled(self, text: str) -> str:
        made = resized(text, round(len(text) * self.times))
        return apart(made) if self.leads else made


@dataclass(frozen=True)
class Filler(Injector):
    """A neutral text where an injector would speak, of about as many tokens.

    A token is taken to be a word of at most `_WORD` letters, a digit or a mark; `cost.py` counts how near that comes.
    """

    injector: Injector

    @property
    def name(self) -> str:
        return f"{self.injector.name}*filler"

    @property
    def leads(self) -> bool:
        return self.injector.leads

    def opening(self, problem: Problem) -> str:
        made = neutral(tokens(self.injector.opening(problem)))
        return apart(made) if self.leads else made

    def after(self, turn: Turn) -> str:
        return neutral(tokens(self.injector.after(turn)))


def apart(text: str) -> str:
    """The text with its last character a line break, so that the question does not run on from a cut word."""
    return text[:-1] + "\n" if text else text


_TOKEN = re.compile(r"\n+| (?=\d)|\d| ?[^\W\d_]+|_| ?[^\w\s]{1,3}")


def tokens(text: str) -> int:
    """About how many tokens a text has, by a rule that needs no tokenizer."""
    return len(_TOKEN.findall(text))


def neutral(count: int) -> str:
    """The neutral text at so many words and marks, from the beginning again where it ends."""
    pieces = cycle(_PIECES.findall(NEUTRAL))
    return "".join(next(pieces) for _ in range(count)).strip()


def arms(sizes: tuple[float, ...] = SIZES) -> dict[str, tuple[Injector, ...]]:
    """What each arm adds: nothing, each frame at each size, and its filler at the frame's own size."""
    found: dict[str, tuple[Injector, ...]] = {"none": ()}
    for frame, own in FRAMES.items():
        for size in sizes:
            found[f"{frame}-x{size:g}"] = own if size == 1 else tuple(Scaled(i, size) for i in own)
        found[f"{frame}-filler"] = tuple(Filler(i) for i in own)
    return found

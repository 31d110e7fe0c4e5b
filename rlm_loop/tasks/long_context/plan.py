"""What a task asks and which lines it puts into the text, before there is any text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rlm_loop.tasks.base import Ranges
from rlm_loop.tasks.long_context.draw import Draw
from rlm_loop.tasks.long_context.text import RealText
from rlm_loop.tasks.match import How

INTEGER = "Answer with an integer."
#: With one of these every question begins.
STARTS = ("One line of the context", "The context has", "Some lines of the context", "Each line of the context")


@dataclass(frozen=True)
class Line:
    """A line to be put in; `matters` where the answer depends on it."""

    text: str
    matters: bool = True


@dataclass(frozen=True)
class Plan:
    """A question, its truth, and a function that makes the lines: a list of suites needs no lines."""

    question: str
    expected: Any
    lines: Callable[[], Sequence[Line]]
    how: How = "exact"


@dataclass(frozen=True)
class Woven:
    """A finished text and where in it the lines are that matter, as [start, end) without the line end."""

    text: str
    needles: Ranges


def weave(lines: Sequence[Line], size: int, filler: RealText, draw: Draw) -> Woven:
    """Exactly `size` characters: a window of the filler, with the lines in their order at places drawn at random.

    Each stands on a line of its own.  Raises `ValueError` where they do not fit.
    """
    room = size - sum(len(line.text) + 1 for line in lines)
    if room < 0:
        raise ValueError(f"{len(lines)} lines do not fit into {size:,} characters; choose a larger size")
    text = filler.window(draw.below(len(filler.text)), room)
    places = sorted(draw.below(room + 1) for _ in lines)
    parts: list[str] = []
    needles: list[tuple[int, int]] = []
    done = written = 0
    for line, drawn in zip(lines, places, strict=True):
        place = max(done, text.rfind("\n", 0, drawn) + 1)
        parts += [text[done:place], line.text, "\n"]
        written += place - done
        done = place
        if line.matters:
            needles.append((written, written + len(line.text)))
        written += len(line.text) + 1
    parts.append(text[done:])
    return Woven("".join(parts), tuple(needles))

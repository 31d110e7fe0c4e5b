"""What a model was last shown of each file, so that line numbers that are out of date are noticed.

A model that edits lines by numbers it has been shown for them never hears of this.  Where the lines under a number
are not those that were shown, the replacement tells which are meant: if it is clearly like the lines of now, nothing
is said; if it is clearly like those that were shown, the edit is refused, once; else it is done, and a note says so.
"""

from __future__ import annotations

import difflib
import hashlib
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from rlm_loop.tools.code.editing import FileEdit, LineRange
from rlm_loop.tools.code.texts import bare, lines_of, span

_FILES = 500  # files remembered
_COMPARED = 2_000  # characters of a text compared with another, which takes their product in time
_LIKE, _CLEARLY = 0.6, 0.2  # of 0 to 1: like a text at all, and more like it than like another


@dataclass
class _File:
    lines: dict[int, str] = field(default_factory=dict[int, str])
    state: str = ""  # of the contents, when last read or written here
    edited: bool = False


@dataclass(frozen=True)
class Stale:
    """Line numbers that do not mean what they did when they were shown; `wrong` where that is as good as certain."""

    why: str
    wrong: bool


class ShownLines:
    """Remembers, of at most `_FILES` files, the last text shown under each line number."""

    def __init__(self) -> None:
        self._files: OrderedDict[str, _File] = OrderedDict()
        self._refused: tuple[object, ...] = ()

    def forget(self, path: str) -> bool:
        """Forget a file; returns whether it was known."""
        return self._files.pop(_plain(path), None) is not None

    def read(self, path: str, data: bytes, lines: Sequence[str], first: int, last: int) -> None:
        """Lines `first` to `last` of a file with these contents were shown."""
        known = self._of(path)
        known.state, known.edited = _state(data), False
        known.lines.update((n, bare(lines[n - 1])) for n in range(first, last + 1))

    def hit(self, path: str, number: int, line: str) -> None:
        """A search showed one line."""
        self._of(path).lines[number] = bare(line)

    def written(self, region: LineRange, change: FileEdit) -> None:
        """An edit was made: what was written and shown of it is known, what came below has moved."""
        known = self._of(change.path)
        known.edited = not region.fresh and (known.edited or known.state in ("", _state(region.data)))
        known.state = _state(change.data)
        if region.fresh:
            known.lines.clear()
        written = range(change.start, change.start + change.written)
        known.lines.update((n, bare(change.lines[n - 1])) for n in {*written, *range(change.first, change.last + 1)})

    def stale(self, region: LineRange, replacement: str) -> Stale | None:
        """Whether the region's numbers are out of date, as far as can be known."""
        known = self._files.get(_plain(region.path))
        if known is None or region.fresh:
            return None
        now = {n: bare(region.lines[n - 1]) for n in _numbers(region)}
        then = {n: known.lines.get(n, text) for n, text in now.items()}
        inserts = region.end < region.start
        same = [then[n] == now[n] for n in now if n in known.lines]
        if not same or (any(same) if inserts else all(same)):
            return None
        like_now, like_then = _alike(replacement, now.values()), _alike(replacement, then.values())
        if not inserts and like_now >= max(_LIKE, like_then + _CLEARLY):
            return None
        wrong = not inserts and like_then >= max(_LIKE, like_now + _CLEARLY)
        if wrong and self._again(region, replacement):
            return None
        return Stale(self._why(region, known, list(then.values())), wrong)

    def _again(self, region: LineRange, replacement: str) -> bool:
        """Whether this very edit of these contents was refused just before: then it is meant."""
        asked = (region.path, region.start, region.end, replacement, _state(region.data))
        again = asked == self._refused
        self._refused = () if again else asked
        return again

    def _why(self, region: LineRange, known: _File, then: Sequence[str]) -> str:
        own = known.edited and known.state == _state(region.data)
        cause = "your edits moved lines" if own else f"{region.path} changed since you read it"
        numbers = list(_numbers(region))
        read = span(numbers[0], numbers[-1])
        places = _places([bare(line) for line in region.lines], then)
        if len(places) == 1:
            return f"{cause}, what you read as {read} is now {span(places[0], places[0] + len(then) - 1)}"
        return f"{cause}, {read} {'is' if len(then) == 1 else 'are'} not what you read"

    def _of(self, path: str) -> _File:
        path = _plain(path)
        known = self._files.setdefault(path, _File())
        self._files.move_to_end(path)
        while len(self._files) > _FILES:
            self._files.popitem(last=False)
        return known


def _plain(path: str) -> str:
    """One name for one file, however the path was written."""
    return "/".join(part for part in path.replace("\\", "/").split("/") if part not in ("", "."))


def _state(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _numbers(region: LineRange) -> range:
    """The lines that tell whether the numbers fit: those replaced, or the neighbours of the place of an insertion."""
    if region.end >= region.start:
        return range(region.start, region.end + 1)
    return range(max(1, region.start - 1), min(len(region.lines), region.start) + 1)


def _alike(replacement: str, lines: Iterable[str]) -> float:
    """0 to 1: how much of a text comes again in the other, spaces at the ends of lines aside."""
    one = "\n".join(line.strip() for line in lines_of(replacement))[:_COMPARED]
    other = "\n".join(line.strip() for line in lines)[:_COMPARED]
    return difflib.SequenceMatcher(None, one, other, autojunk=False).ratio() if one and other else 0.0


def _places(lines: Sequence[str], wanted: Sequence[str]) -> list[int]:
    """Where, counted from 1, these lines stand one after the other; two places at most."""
    found: list[int] = []
    for start in range(len(lines) - len(wanted) + 1):
        if lines[start] == wanted[0] and list(lines[start : start + len(wanted)]) == list(wanted):
            found.append(start + 1)
            if len(found) == 2:
                break
    return found

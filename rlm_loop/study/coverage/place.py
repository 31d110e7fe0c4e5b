"""Where pieces of texts come from: ranges of a long text that occur in short ones, in time linear in both.

The rule.  A piece counts from `least` characters on (24 by default) of which a third are letters or digits; it is
then as long as both texts agree.  A shorter piece counts only where it is a whole line of both, has four letters or
digits, and the long text has that line once.  Text that the long one holds several times is placed, with
`ambiguous="next"`, where the match is longest, and among equals at the first place after the previous match of the
same text (before the next one, where there is no previous); with `"all"`, at every place.  Where the end of one piece
agrees with the beginning of the next as well (lines picked out of a log begin alike), a line's end is the border.

Windows of `least` characters of the short texts are hashed and sorted, and the long text is streamed past them in
blocks (rolling hashes, see `grams`).  A suffix array would do as well but takes many times the memory of the text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from rlm_loop.study.coverage.grams import codes_of, windows
from rlm_loop.study.coverage.ranges import LEAST, Ambiguous, Range, merged

#: Code points of the long text that are hashed at once.
_BLOCK = 1 << 20
_BITS = 22
_NONE = 0x110000  # no code point: between the short texts
#: Places of one piece that are compared; text that occurs more often is placed at one of the nearest.
_CANDIDATES = 16
_WORDY = 4


def places_of(
    long: str, short: Sequence[str], *, least: int = LEAST, ambiguous: Ambiguous = "next"
) -> list[list[Range]]:
    """For each of the short texts, the ranges of the long one that it holds: sorted, disjoint, [start, end)."""
    found = _Search(long, short, least)
    lines = _Lines(long, short, least)
    return [
        merged([*(found.all_places(i) if ambiguous == "all" else found.next_places(i)), *lines.places(text, ambiguous)])
        for i, text in enumerate(short)
    ]


class _Search:
    """All windows of the short texts that the long one holds, with their places."""

    def __init__(self, long: str, short: Sequence[str], least: int) -> None:
        self._long, self._short, self._least = long, short, least
        self._starts: list[int] = []
        pieces: list[Any] = []
        at = 0
        for text in short:
            self._starts.append(at)
            codes = codes_of(text)
            pieces += [codes, np.array([_NONE], dtype=np.uint32)]
            at += len(codes) + 1
        codes = np.concatenate(pieces) if pieces else np.zeros(0, dtype=np.uint32)
        hashes = windows(codes, least)
        worth = _worth(codes, least)
        keys, number = np.unique(hashes[worth], return_inverse=True)
        key_at, place_at = _occurrences(long, keys, least)
        order = np.argsort(key_at, kind="stable")  # by key, then by place
        self._key_at, self._place_at = key_at[order], place_at[order]
        self._first = np.searchsorted(self._key_at, np.arange(len(keys) + 1))
        self._key_of = np.full(len(hashes), -1, dtype=np.int64)
        self._key_of[worth] = number
        counts = np.diff(self._first) if len(keys) else np.zeros(1, dtype=np.int64)
        self._count = np.where(self._key_of >= 0, counts[self._key_of], 0)

    def _present(self, number: int) -> Any:
        """Starts (in the text of that number) of windows that the long text holds."""
        start = self._starts[number]
        return np.flatnonzero(self._count[start : start + max(0, len(self._short[number]) - self._least + 1)])

    def all_places(self, number: int) -> list[Range]:
        """Every place of every window, besides the one place of every piece (which may be longer than its windows)."""
        present = self._present(number)
        wanted = np.zeros(len(self._first), dtype=bool)
        wanted[self._key_of[self._starts[number] + present]] = True
        at = np.sort(self._place_at[wanted[self._key_at]]) if len(present) else np.zeros(0, dtype=np.int64)
        if not len(at):
            return []
        breaks = np.flatnonzero(np.diff(at) > self._least)
        firsts, lasts = np.concatenate(([0], breaks + 1)), np.concatenate((breaks, [len(at) - 1]))
        windows = [(int(at[i]), int(at[j]) + self._least) for i, j in zip(firsts, lasts, strict=True)]
        return [*windows, *self.next_places(number)]

    def next_places(self, number: int) -> Iterator[Range]:
        """One place for every piece."""
        text = self._short[number]
        last: tuple[int, int, int] | None = None
        for here, there, size in self._pieces(number):
            if last is not None and last[0] + last[2] >= here:
                before = _agree_before(self._long, there, text, here, here - last[0] - self._least)
                border = text.rfind("\n", max(0, here - before - 1), last[0] + last[2]) + 1
                if border and (before or last[0] + last[2] > here):
                    last = last[0], last[1], border - last[0]
                    here, there, size = border, there + border - here, size + here - border
            if last is not None:
                yield last[1], last[1] + last[2]
            last = here, there, size
        if last is not None:
            yield last[1], last[1] + last[2]

    def _pieces(self, number: int) -> Iterator[tuple[int, int, int]]:
        """Start in the text, start in the long one, and length of each piece, from left to right."""
        text, least = self._short[number], self._least
        present = self._present(number)
        if not len(present):
            return
        counts = self._count[self._starts[number] + present]
        sure = present[counts == 1]
        sure_at = self._place_at[self._first[self._key_of[self._starts[number] + sure]]]
        unsure: list[int] = present[counts > 1].tolist()
        breaks = np.flatnonzero((np.diff(sure) != 1) | (np.diff(sure_at) != 1)) + 1 if len(sure) else []
        heads = [0, *(int(b) for b in breaks)] if len(sure) else []
        diagonals = [(int(sure[h]), int(sure_at[h])) for h in heads]
        cursor, after, waiting = 0, None, 0  # how far the text is placed, the place of that, the next of `unsure`
        for here, there in [*diagonals, (len(text), None)]:
            if there is not None and here + least <= cursor:
                continue
            back = 0 if there is None else _agree_before(self._long, there, text, here, here - cursor)
            while waiting < len(unsure) and unsure[waiting] < here - back:
                at = unsure[waiting]
                waiting += 1
                if at < cursor:
                    continue
                before = None if there is None else there - (here - at)
                place, length = self._best(number, at, after, before)
                yield at, place, length
                cursor, after = at + length, place + length
            if there is None or here + least <= cursor:
                continue
            back = min(back, max(0, here - cursor))
            length = _agree(self._long, there, text, here)
            yield here - back, there - back, length + back
            cursor, after = here + length, there + length

    def _best(self, number: int, at: int, after: int | None, before: int | None) -> Range:
        """The place of an ambiguous window that agrees longest, and how long; the rule decides between equals."""
        key = int(self._key_of[self._starts[number] + at])
        first, last = int(self._first[key]), int(self._first[key + 1])
        expected = after if after is not None else before if before is not None else 0
        near = first + int(np.searchsorted(self._place_at[first:last], expected))
        begin = max(first, min(near - _CANDIDATES // 4, last - _CANDIDATES))
        text = self._short[number]
        best: tuple[int, int, int] | None = None
        for place in self._place_at[begin : min(last, begin + _CANDIDATES)].tolist():
            length = _agree(self._long, place, text, at)
            far = place - expected if place >= expected else len(self._long) + expected - place  # later ones first
            if before is not None and after is None:
                far = abs(place - expected)
            if best is None or (-length, far) < (best[0], best[1]):
                best = (-length, far, place)
        assert best is not None
        return best[2], -best[0]


def _agree(a: str, i: int, b: str, j: int) -> int:
    """How many characters from both positions on are the same."""
    return _longest(min(len(a) - i, len(b) - j), lambda n, m: a[i + n : i + m] == b[j + n : j + m])


def _agree_before(a: str, i: int, b: str, j: int, most: int) -> int:
    """How many characters before both positions are the same, at most `most`."""
    return _longest(min(most, i, j), lambda n, m: a[i - m : i - n] == b[j - m : j - n])


def _longest(most: int, same: Callable[[int, int], bool]) -> int:
    """The largest n up to `most` for which `same(0, n)`, found by steps that double and then halve."""
    low, high, step = 0, most, 64
    while low < high:
        tried = min(step, high - low)
        if same(low, low + tried):
            low, step = low + tried, 2 * step
        else:
            high, step = low + tried - 1, max(1, tried // 2)
    return low


def _worth(codes: Any, least: int) -> Any:
    """Windows that say something: a third letters or digits (beyond ASCII everything counts), no border of texts."""
    ascii_word = np.zeros(129, dtype=bool)
    for code in range(128):
        ascii_word[code] = chr(code).isalnum()
    ascii_word[128] = True
    word = ascii_word[np.minimum(codes, 128)]
    border = codes == _NONE
    return (_sums(word, least) >= least // 3) & (_sums(border, least) == 0)


def _sums(flags: Any, size: int) -> Any:
    total = np.concatenate(([0], np.cumsum(flags)))
    return total[size:] - total[:-size] if len(flags) >= size else np.zeros(0, dtype=np.int64)


def _occurrences(long: str, keys: Any, least: int) -> tuple[Any, Any]:
    """All (index of key, position) at which a window of the long text has one of the sorted keys."""
    empty = np.zeros(0, dtype=np.int64)
    if not len(keys):
        return empty, empty
    shift = np.uint64(64 - _BITS)
    table = np.zeros(1 << _BITS, dtype=bool)  # passes almost nothing that is not there, and costs one look
    table[(keys >> shift).astype(np.int64)] = True
    found_keys: list[Any] = [empty]
    found_at: list[Any] = [empty]
    for start in range(0, max(0, len(long) - least + 1), _BLOCK):
        hashes = windows(codes_of(long[start : start + _BLOCK + least - 1]), least)
        at = np.flatnonzero(table[(hashes >> shift).astype(np.int64)])
        key = np.minimum(np.searchsorted(keys, hashes[at]), len(keys) - 1)
        same = keys[key] == hashes[at]
        found_keys.append(key[same])
        found_at.append(at[same] + start)
    return np.concatenate(found_keys), np.concatenate(found_at)


class _Lines:
    """Whole lines that are too short to count as pieces, with their places in the long text."""

    def __init__(self, long: str, short: Sequence[str], least: int) -> None:
        self._least = least
        wanted = {line for text in short for line in self._short_lines(text)}
        self._at: dict[str, list[int]] = {line: [] for line in wanted}
        if not wanted:
            return
        start = 0
        for line in long.split("\n"):
            bare = line.strip() if len(line) < 4 * least else ""
            if bare in self._at:
                self._at[bare].append(start + line.index(bare))
            start += len(line) + 1

    def _short_lines(self, text: str) -> Iterator[str]:
        for line in text.split("\n"):
            bare = line.strip() if len(line) < 4 * self._least else ""
            if _WORDY <= len(bare) < self._least and sum(c.isalnum() for c in bare) >= _WORDY:
                yield bare

    def places(self, text: str, ambiguous: Ambiguous) -> Iterator[Range]:
        for line in dict.fromkeys(self._short_lines(text)):
            at = self._at[line]
            if len(at) == 1 or ambiguous == "all":
                yield from ((start, start + len(line)) for start in at)

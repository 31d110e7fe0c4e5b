"""Which ranges of the context were seen by which call, at which depth, and how often."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlm_loop.hints.install import install_line
from rlm_loop.repl.contexts.context import told_start
from rlm_loop.study.coverage.ranges import LEAST, Ambiguous, Range, counted, gaps, length, merged, within
from rlm_loop.study.coverage.texts import READ, Channel, RunText, check, text_of, texts_of, unquoted
from rlm_loop.traces.reader import RunRecord, read
from rlm_loop.traces.runs import Run

if TYPE_CHECKING:
    import pandas as pd

_BLOCKS = "·▁▂▃▄▅▆▇█"
_HASHED = 64 << 20  # characters of candidates that are hashed for one context


@dataclass(frozen=True)
class CoveredRange:
    """A stretch [start, end) of the context that a node met by one channel, and in how many texts."""

    node: str
    depth: int
    channel: Channel
    start: int
    end: int
    times: int


@dataclass(frozen=True, repr=False)
class Coverage:
    """What was seen of a context of `size` characters.

    *Seen* is what reached a model: printed text that it was sent, or a prompt.  `child_context` (handed to a
    sub-agent as a variable) and `answer` (given back) are in `spans` too, but are not seen unless named in `channels`.
    `unplaced` are the nodes whose own context could not be found in this one.  `shown` has the texts of the trace with
    the ranges found in each, `source` the text in which ranges are counted.
    """

    size: int
    spans: tuple[CoveredRange, ...]
    shown: tuple[tuple[RunText, tuple[Range, ...]], ...] = field(default=(), repr=False)
    unplaced: tuple[str, ...] = ()
    source: str = field(default="", repr=False)

    @cached_property
    def _seen(self) -> list[Range]:
        return self.ranges()

    @cached_property
    def _by_node(self) -> Mapping[str, Sequence[CoveredRange]]:
        found: dict[str, list[CoveredRange]] = {}
        for span in self.spans:
            found.setdefault(span.node, []).append(span)
        return found

    def of_node(self, node: str) -> Sequence[CoveredRange]:
        """The spans of one node."""
        return self._by_node.get(node, ())

    def ranges(
        self, *, node: str | None = None, depth: int | None = None, channels: Collection[Channel] = READ
    ) -> list[Range]:
        """The ranges seen, sorted and disjoint: by all nodes, one, or those of one depth."""
        return merged(
            (s.start, s.end)
            for s in self.spans
            if s.channel in channels and node in (None, s.node) and depth in (None, s.depth)
        )

    @property
    def share(self) -> float:
        """The fraction of the context that some model saw at least once (0 for an empty context)."""
        return length(self._seen) / self.size if self.size else 0.0

    def seen(self, start: int, end: int) -> float:
        """The fraction of [start, end) that some model saw.  Raises `ValueError` for an empty or a wrong range."""
        if not 0 <= start < end <= self.size:
            raise ValueError(f"[{start}, {end}) is no range of a context of {self.size:,} characters")
        return within(self._seen, start, end) / (end - start)

    def gaps(self) -> list[Range]:
        """The ranges that no model saw."""
        return gaps(self._seen, self.size)

    def frame(self) -> pd.DataFrame:
        """A tidy frame of ranges: node, depth, channel, start, end, times; those of a node and channel are disjoint."""
        import pandas as pd

        return pd.DataFrame([vars(s) for s in self.spans], columns=list(CoveredRange.__annotations__))

    def line(self, width: int = 80, *, depth: int | None = None, channels: Collection[Channel] = READ) -> str:
        """The context from left to right in `width` cells: `·` where nothing was seen, `▁` to `█` by the share seen."""
        return "".join(_block(share) for share in self.shares(width, depth=depth, channels=channels))

    def shares(self, cells: int, *, depth: int | None = None, channels: Collection[Channel] = READ) -> list[float]:
        """The fraction seen of each of so many equal cells of the context."""
        ranges = self._seen if depth is None and channels == READ else self.ranges(depth=depth, channels=channels)
        borders = [self.size * k / cells for k in range(cells + 1)]
        parts = [(int(a), max(int(a) + 1, int(b))) for a, b in itertools.pairwise(borders)]
        return [within(ranges, a, b) / (b - a) if self.size else 0.0 for a, b in parts]

    @property
    def depths(self) -> list[int]:
        """The depths at which something of the context was met."""
        return sorted({s.depth for s in self.spans})

    def text(self, width: int = 80) -> str:
        """The strip, its share, and the strip of every depth where there is more than one."""
        lines = [f"{self.line(width)} {self.share:.1%} of {self.size:,} characters seen"]
        if len(self.depths) > 1:
            lines += [
                f"{self.line(width, depth=d)} {length(self.ranges(depth=d)) / (self.size or 1):.1%} at depth {d}"
                for d in self.depths
            ]
        if self.unplaced:
            lines.append(f"contexts not found in this one: of {', '.join(self.unplaced)}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        """The same in words, since a notebook shows it."""
        return self.text()


def _block(share: float) -> str:
    if share <= 0:
        return _BLOCKS[0]
    return _BLOCKS[-1] if share >= 1 else _BLOCKS[1 + min(6, int(share * 7))]


def coverage_of(
    context: Any,
    trace: str | Path | RunRecord,
    *,
    run: Run = None,
    text: str | None = None,
    contexts: Mapping[str, str] | None = None,
    least: int = LEAST,
    ambiguous: Ambiguous = "next",
) -> Coverage:
    """The coverage of a run's context.

    `context` is the very value that the run was given, or a `Path` to a file with its text; its hash is compared with
    the trace's.  `trace` is a file (`run` chooses, the last by default) or a record.  `text` is the text of a context
    that is none (see `source.text_of`).  `contexts` are texts of sub-agents' contexts by node: a trace holds only
    their hashes, so that without it they are found only where they are one slice of this context.  `least` and
    `ambiguous` are the rule of `place`.
    Raises `CoverageError` for another context, `TraceError` as `read` does, `ImportError` without numpy.
    """
    record = trace if isinstance(trace, RunRecord) else read(trace, run=run)
    check(context, record)
    whole = text_of(context) if text is None else text
    as_bytes = isinstance(context, (bytes, bytearray)) and text is None
    texts = texts_of(record)
    known = [RunText(node, "child_context", 0, given) for node, given in (contexts or {}).items()]
    found = _placed(whole, [*texts, *known], least, ambiguous, as_bytes=as_bytes)
    by_hash, unplaced = _slices(whole, record, [f for f in found if f[0].channel == "prompt"], set(contexts or ()))
    found += by_hash
    return Coverage(len(whole), tuple(_spans(found)), tuple(found), tuple(unplaced), whole)


_Found = tuple[RunText, tuple[Range, ...]]


def _placed(whole: str, texts: Sequence[RunText], least: int, ambiguous: Ambiguous, *, as_bytes: bool) -> list[_Found]:
    """Each text with its ranges; where one was printed as its `repr`, the reading that fits more is taken."""
    try:
        from rlm_loop.study.coverage.place import places_of
    except ModuleNotFoundError:
        raise ImportError(f"coverage needs numpy: {install_line('studies')}") from None
    raw = [_bytewise(s.text) if as_bytes else s.text for s in texts]
    other = [(i, plain) for i, t in enumerate(raw) if (plain := unquoted(t)) is not None]
    places = places_of(whole, [*raw, *(t for _, t in other)], least=least, ambiguous=ambiguous)
    best = places[: len(raw)]
    for (i, _), ranges in zip(other, places[len(raw) :], strict=True):
        if length(ranges) > length(best[i]):
            best[i] = ranges
    return [(s, tuple(ranges)) for s, ranges in zip(texts, best, strict=True)]


def _bytewise(text: str) -> str:
    return text.encode("utf-8", "surrogatepass").decode("latin-1")


def _slices(
    whole: str, record: RunRecord, prompts: Sequence[_Found], known: Collection[str]
) -> tuple[list[_Found], list[str]]:
    """Contexts of sub-agents that are one slice of the context, by their hash.

    Where one begins is known from the preview that its agent was told, which is in its prompt.
    """
    begins: dict[str, set[int]] = {}
    previews: dict[str, str] = {}
    for shown, ranges in prompts:
        begins.setdefault(shown.node, set()).update(start for start, _ in ranges)
        if (preview := told_start(shown.text)) is not None:
            previews[shown.node] = preview
    found: list[_Found] = []
    unplaced: list[str] = []
    for event in record.of("subcall_start"):
        node, given = event["node"], event.get("context")
        if given is None or node in known:
            continue
        size = given.get("bytes", given.get("size"))
        places = itertools.chain((0,), sorted(begins.get(node, ())), _starts(whole, previews.get(node, ""), size))
        at = next((r for b in places if (r := _slice(whole, b, size, given["sha256"]))), None)
        if at is not None:
            found.append((RunText(node, "child_context", 0, ""), (at,)))
        else:
            unplaced.append(node)
    return found, unplaced


def _starts(whole: str, preview: str, size: int) -> Iterator[int]:
    """Where a preview that is too short to be told apart may begin, as long as trying them is quick."""
    start = whole.find(preview) if preview else -1
    for _ in range(max(1, _HASHED // max(1, size))):
        if start < 0:
            return
        yield start
        start = whole.find(preview, start + 1)


def _slice(whole: str, start: int, size: int, sha256: str) -> Range | None:
    """The range that begins there, has so many bytes in UTF-8 (or so many characters) and that hash."""
    part = whole[start : start + size]
    raw = part.encode("utf-8", "surrogatepass")
    for candidate in dict.fromkeys((raw[:size], raw)):
        if hashlib.sha256(candidate).hexdigest() == sha256:
            return start, start + len(candidate.decode("utf-8", "surrogatepass"))
    return None


def _spans(found: Sequence[_Found]) -> Iterator[CoveredRange]:
    by: dict[tuple[str, Channel], list[Range]] = {}
    for shown, ranges in found:
        by.setdefault((shown.node, shown.channel), []).extend(ranges)
    for (node, channel), ranges in by.items():
        for start, end, times in counted(ranges):
            yield CoveredRange(node, node.count("."), channel, start, end, times)

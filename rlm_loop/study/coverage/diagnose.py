"""Why an episode failed: never looked, looked and misread, or computed wrongly."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

from rlm_loop.study.coverage.coverage import Coverage
from rlm_loop.study.coverage.lineage import Lineage, lineage_of
from rlm_loop.study.coverage.ranges import Range, within
from rlm_loop.study.coverage.texts import READ
from rlm_loop.traces.reader import RunRecord

Reason = Literal["resolved", "never_looked", "looked_in_part", "misread", "computed_wrongly", "no_answer"]

REASONS: dict[Reason, str] = {
    "resolved": "the answer is right",
    "never_looked": "no model and no code met any place that the answer depends on",
    "looked_in_part": "some of the places that the answer depends on were never shown to a model",
    "misread": "models were shown every place, and the answer is wrong",
    "computed_wrongly": "code over the context gave the answer, and it is wrong",
    "no_answer": "models were shown every place, and the run ended without an answer",
}

#: A needle counts as seen when this share of its characters was.
ENOUGH = 0.8
#: Needles whose single words are looked for as well (each costs a pass over the context).
_BY_WORD = 64
_WORD = re.compile(r"\w[\w.-]{2,}\w")
#: A question quotes a needle where so many characters of both are the same.
_QUOTED = 8


@dataclass(frozen=True)
class Diagnosis:
    """The reason, and the facts that it follows from.

    `needles` and `seen` count the places that the answer depends on, and those that reached a model (without places
    that the question quotes whole); `depths` are the
    depths at which one did.  `lineage` says how the answer came about.
    """

    reason: Reason
    needles: int
    seen: int
    share: float
    depths: tuple[int, ...]
    lineage: Lineage

    def __str__(self) -> str:
        return (
            f"{self.reason}: {REASONS[self.reason]} ({self.seen} of {self.needles} places seen, "
            f"{self.share:.1%} of the context; the answer was {self.lineage.how})"
        )

    def row(self) -> dict[str, object]:
        """The facts as one flat row."""
        return {
            "reason": self.reason,
            "needles": self.needles,
            "needles_seen": self.seen,
            "context_seen": self.share,
            "depths": list(self.depths),
            "answer_by": self.lineage.how,
            "sub_calls_used": len(self.lineage.calls),
        }


def diagnose(
    record: RunRecord, coverage: Coverage, needles: Sequence[Range], *, resolved: bool, enough: float = ENOUGH
) -> Diagnosis:
    """Say why a run failed, given the [start, end) ranges of the context that its answer depends on.

    The rule, first match first.  *computed_wrongly*: the answer was computed by code that reads the context, as a
    whole or a constant slice with a needle in it, and not by way of sub-calls.  *never_looked*: no needle reached a
    model.  *looked_in_part*: some did not.  *no_answer*: all did, and the run ended without an answer.  *misread*:
    all did.  A needle has reached a model where `enough` of its characters were printed for one or sent to one, or
    where a word of it that the context has only once was; what the question itself quotes of it does not count.
    Raises `ValueError` without needles, and for a range that is none.
    """
    if not needles:
        raise ValueError("a diagnosis needs the ranges that the answer depends on; this task names none")
    lineage = lineage_of(record, coverage)
    question = str(record.start.get("question") or "")
    untold = _untold(coverage.source, needles, question)
    met = _met(coverage, untold, question, enough)
    end = record.end
    answered = end is not None and end.get("stop") == "answered"
    depths = [d for d in coverage.depths if any(_met_at(coverage, d, untold, enough))]
    places = [part for needle in untold for part in needle]
    reason = _reason(lineage, places, len(untold) - sum(met), sum(met), resolved=resolved, answered=answered)
    return Diagnosis(reason, len(untold), sum(met), coverage.share, tuple(depths), lineage)


def _reason(
    lineage: Lineage, places: Sequence[Range], unseen: int, seen: int, *, resolved: bool, answered: bool
) -> Reason:
    if resolved:
        return "resolved"
    if answered and lineage.how == "computed" and not lineage.calls and _reads(lineage, places):
        return "computed_wrongly"
    if not seen:
        return "never_looked"
    if unseen:
        return "looked_in_part"
    return "misread" if answered else "no_answer"


def _reads(lineage: Lineage, needles: Sequence[Range]) -> bool:
    """Whether the answer's code reads the context where a needle is, or may do so."""
    if not lineage.reads_context:
        return False
    ranges = lineage.code_ranges
    return ranges is None or any(within(ranges, *needle) for needle in needles)


def _untold(source: str, needles: Sequence[Range], question: str) -> list[list[Range]]:
    """The parts of each needle that the question does not quote, without those that it quotes whole (if not all)."""
    found: list[list[Range]] = []
    for start, end in needles:
        pieces: list[Range] = []
        at = 0
        for block in SequenceMatcher(None, source[start:end], question, autojunk=False).get_matching_blocks():
            if block.size >= _QUOTED or block.a == end - start:  # the last block is an empty one at the end
                if re.search(r"\w", source[start + at : start + block.a]):
                    pieces.append((start + at, start + block.a))
                at = block.a + block.size
        if pieces:
            found.append(pieces)
    return found or [[needle] for needle in needles]


def _met(coverage: Coverage, needles: Sequence[Sequence[Range]], question: str, enough: float) -> list[bool]:
    met = [_share(needle, coverage.seen) >= enough for needle in needles]
    if len(needles) <= _BY_WORD and not all(met):
        shown = "\n".join(s.text for s, _ in coverage.shown if s.channel in READ)
        told = set(_WORD.findall(question))
        met = [m or _word_shown(coverage.source, needle, told, shown) for m, needle in zip(met, needles, strict=True)]
    return met


def _met_at(coverage: Coverage, depth: int, needles: Sequence[Sequence[Range]], enough: float) -> list[bool]:
    ranges = coverage.ranges(depth=depth)
    return [_share(needle, lambda a, b: within(ranges, a, b) / (b - a)) >= enough for needle in needles]


def _share(needle: Sequence[Range], seen: Callable[[int, int], float]) -> float:
    """The share of a needle's characters that were seen, given that of a range."""
    return sum(seen(a, b) * (b - a) for a, b in needle) / sum(b - a for a, b in needle)


def _word_shown(source: str, needle: Sequence[Range], told: Collection[str], shown: str) -> bool:
    """Whether a word of the needle was shown by itself that neither the question nor the context elsewhere has."""
    for word in dict.fromkeys(_WORD.findall(source[needle[0][0] : needle[-1][1]])):
        if word in told:
            continue
        if re.search(rf"(?<!\w){re.escape(word)}(?!\w)", shown) and source.count(word) == 1:
            return True
    return False

"""What a replay found: how a request of today differs from the recorded one, and in which piece of text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Literal, cast

from rlm_loop.messages import Message, Prompt, Span
from rlm_loop.outcome import Outcome

Kind = Literal["request", "cause", "limit", "turn", "end", "ledger", "sub-call", "compaction", "record"]
_SHOWN = 60


@dataclass(frozen=True)
class Difference:
    """One difference.

    `where` names the call, turn or node, `message` counts from 0 in its request, `cause` is what the text is charged to
    (see the ledger) and `character` counts from 0 within the span of that cause.  `recorded` and `today` are what is
    there from that character on, or the two values.
    """

    kind: Kind
    where: str
    recorded: str
    today: str
    node: str = "0"
    call: int | None = None
    message: int | None = None
    cause: str | None = None
    character: int | None = None

    def __str__(self) -> str:
        at = "" if self.character is None else f", from character {self.character}"
        about = f", {self.cause}" if self.cause else ""
        return f"{self.where}{about}{at}: recorded {_cut(self.recorded)}, today {_cut(self.today)}"


def _cut(text: str) -> str:
    return text if len(text) <= 3 * _SHOWN else text[: 3 * _SHOWN] + " ..."


def between(recorded: Prompt, today: Prompt, *, call: int, node: str) -> Difference | None:
    """The first difference of two requests, in the order in which a model reads them; causes count too."""
    name = f"call {call}" if node == "0" else f"call {call} (sub-call {node})"
    own: dict[str, Any] = {"node": node, "call": call}
    if (found := _tools(recorded.tools, today.tools)) is not None:
        where, old, new, at = found
        return Difference("request", f"{name}, {where}", old, new, cause="tool_schema", character=at, **own)
    for index, (old, new) in enumerate(zip_longest(recorded.messages, today.messages)):
        if old is None or new is None:
            many = [f"{len(p.messages)} messages" for p in (recorded, today)]
            extra = cast("Message", new if old is None else old)
            what = f"{extra.role}, {extra.text[:_SHOWN]!r}"
            which = "only today" if old is None else "only recorded"
            where = f"{name}, message {index} ({which}: {what})"
            return Difference("request", where, many[0], many[1], message=index, **own)
        if old != new:
            return _message(f"{name}, message {index} ({old.role})", index, old, new, own)
    for field in ("stop", "reply_schema"):
        left, right = getattr(recorded, field), getattr(today, field)
        if left != right:
            return Difference("request", f"{name}, {field}", repr(left), repr(right), **own)
    return None


def _message(where: str, index: int, old: Message, new: Message, own: Mapping[str, Any]) -> Difference:
    if old.role != new.role:
        return Difference("request", f"{where}, role", old.role, new.role, message=index, **own)
    if old.text != new.text:
        at = first_difference(old.text, new.text)
        span, begin = _span_at(old.spans, at)
        if span is None:
            span, begin = _span_at(new.spans, at)
        cause = span.cause if span is not None else None
        shown = [repr(m.text[at : at + _SHOWN]) for m in (old, new)]
        place: dict[str, Any] = {"message": index, "cause": cause, "character": at - begin}
        return Difference("request", where, shown[0], shown[1], **place, **own)
    for field in ("tool_calls", "tool_call_id"):
        left, right = getattr(old, field), getattr(new, field)
        if left != right:
            return Difference("request", f"{where}, {field}", repr(left), repr(right), message=index, **own)
    if old.turn != new.turn:
        return Difference("cause", f"{where}, turn of origin", str(old.turn), str(new.turn), message=index, **own)
    shown = [", ".join(f"{s.cause} {len(s.text)}" for s in m.spans) for m in (old, new)]
    return Difference("cause", f"{where}, same text charged otherwise", shown[0], shown[1], message=index, **own)


def _span_at(spans: Sequence[Span], at: int) -> tuple[Span | None, int]:
    """The span that holds a character, else the last one that ends there, and where it begins."""
    begin = 0
    last: tuple[Span | None, int] = (None, 0)
    for span in spans:
        if at < begin + len(span.text):
            return span, begin
        last = (span, begin)
        begin += len(span.text)
    return last


def first_difference(left: str, right: str) -> int:
    """The first place where two texts differ, which may be the end of one."""
    return next((i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))


def _tools(old: Sequence[Any], new: Sequence[Any]) -> tuple[str, str, str, int | None] | None:
    if old == new:
        return None
    names = [[str(t.get("function", {}).get("name")) for t in tools] for tools in (old, new)]
    if names[0] != names[1]:
        return "tools", ", ".join(names[0]) or "none", ", ".join(names[1]) or "none", None
    for before, now, name in zip(old, new, names[0], strict=True):
        for path, left, right in changes(before, now):
            where = f"schema of {name}, {path}"
            if isinstance(left, str) and isinstance(right, str):
                at = first_difference(left, right)
                return where, repr(left[at : at + _SHOWN]), repr(right[at : at + _SHOWN]), at
            return where, repr(left), repr(right), None
    return None


def changes(old: Any, new: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """The leaves in which two JSON values differ."""
    if isinstance(old, dict) and isinstance(new, dict):
        left, right = cast("dict[str, Any]", old), cast("dict[str, Any]", new)
        for key in left | right:
            yield from changes(left.get(key), right.get(key), f"{path}.{key}" if path else key)
    elif isinstance(old, (list, tuple)) and isinstance(new, (list, tuple)):
        ours, theirs = cast("list[Any]", list(old)), cast("list[Any]", list(new))  # pyright: ignore[reportUnknownArgumentType]
        for index, (left, right) in enumerate(zip_longest(ours, theirs)):
            yield from changes(left, right, f"{path}[{index}]")
    elif old != new:
        yield path, old, new


@dataclass(frozen=True)
class Replayed:
    """A recorded run, driven again by today's loop.

    `same`: every request was equal byte for byte, and so were causes, turns, stop, answer, sub-calls, compactions and
    the ledger's rows; `difference` is the first that was not, `differences` are all that were found (after the first,
    later ones often follow from it).  `requests` were compared, `equal` of them were the same.
    `complete` is whether the record has an end (not so where the run was killed, or the file was cut).
    `damage` are bodies that were changed after they were written, one line each, `notes` what could not be checked.
    `outcome` is today's; `None` where the record ended before the run did.
    """

    requests: int
    equal: int
    turns: int
    differences: tuple[Difference, ...] = ()
    damage: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    complete: bool = True
    outcome: Outcome | None = None

    @property
    def same(self) -> bool:
        return not self.differences and not self.damage

    @property
    def difference(self) -> Difference | None:
        """The first difference: of the requests and turns as they came, then of the rest."""
        return self.differences[0] if self.differences else None

    def __bool__(self) -> bool:
        return self.same

    def __str__(self) -> str:
        """Readable, a line for each thing to say."""
        counts = f"{self.equal} of {self.requests} requests equal byte for byte, {self.turns} turns"
        if self.same:
            lines = [f"same: {counts}"]
        elif self.difference is None:
            lines = [f"same, but the record was changed: {counts}"]
        else:
            lines = [f"differs: {self.difference}", counts]
            if (more := len(self.differences) - 1) > 0:
                lines.append(f"{more} further difference{'' if more == 1 else 's'}, which may follow from it")
        lines += [f"damaged: {line}" for line in self.damage]
        if not self.complete:
            lines.append("the record has no end: the run was killed, or the file was cut")
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])

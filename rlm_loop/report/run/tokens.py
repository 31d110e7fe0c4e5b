"""What each model call of a run cost, its input by cause: in time linear in the trace.

The ledger of a run has a row for each call, cause and turn of origin, which is quadratic in turns; for a picture of
2,000 turns the sums by cause are enough, and they follow from the sums of the call before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rlm_loop.accounting.attribution import Part, apportion, reconcile
from rlm_loop.accounting.charges import restored
from rlm_loop.accounting.tree import node_of
from rlm_loop.messages import Message, Prompt, Usage
from rlm_loop.report.run.reading import UNREADABLE
from rlm_loop.traces.reader import RunRecord, message_of, reply_of

#: Input whose cause cannot be told, because the trace lacks what it takes.
UNKNOWN = "not attributed"


@dataclass(frozen=True)
class Spent:
    """One model call: who made it in which turn, its usage, and its input tokens by cause.

    `exact` is whether the causes were counted by the model's own tokenizer rather than shared out by length.
    """

    node: str
    turn: int
    usage: Usage
    causes: Mapping[str, int]
    exact: bool


def spent_of(record: RunRecord) -> Iterator[Spent]:
    """Every call of a run that got a reply, in order; sub-calls included."""
    prompts, counted = _Prompts(), _Counted()
    for event in record.events:
        path = node_of(event)
        if event["event"] != "reply":
            prompts.take(event, path)
            continue
        try:
            usage = reply_of(event["reply"]).usage or Usage(None, None)
        except UNREADABLE:
            usage = Usage(None, None)
        tokens = usage.input_tokens if isinstance(usage.input_tokens, int) else 0
        charged: Mapping[str, Any] = event.get("charged") or {}
        try:
            if charged["parts"] is None:
                causes: Mapping[str, int] = _sums(apportion(prompts.of(event["request"], path), tokens))
            else:
                parts, causes = counted.of(charged)
                if usage.input_tokens is not None and sum(causes.values()) != usage.input_tokens:
                    causes = _sums(reconcile(parts, usage.input_tokens))
            exact = bool(charged["exact"])
        except UNREADABLE:
            causes, exact = ({UNKNOWN: tokens} if tokens else {}), False
        yield Spent(path, int(event.get("turn") or 0), usage, causes, exact)


class _Prompts:
    """Whole requests, as the events of a trace build them up."""

    def __init__(self) -> None:
        self._bodies: dict[str, Message] = {}
        self._settings: dict[str, Mapping[str, Any]] = {}
        self._grown: dict[str, Prompt] = {}

    def take(self, event: Mapping[str, Any], caller: str) -> None:
        try:
            match event["event"]:
                case "message":
                    self._bodies[event["hash"]] = message_of(event["message"])
                case "settings":
                    self._settings[event["hash"]] = event
                case "request":
                    before = self._known(event["base"] or "", caller) or Prompt()
                    added = (self._bodies[h] for h in event["added"])
                    messages = (*before.messages[: event.get("kept")], *added)
                    whole = Prompt(messages, tuple(self._settings[event["settings"]]["tools"]))
                    # requests of equal bytes may differ in their causes: each caller has its own
                    self._grown[event["digest"]] = self._grown[f"{caller} {event['digest']}"] = whole
                case _:
                    pass
        except UNREADABLE:
            self._grown.pop(str(event.get("digest")), None)
            self._grown.pop(f"{caller} {event.get('digest')}", None)

    def of(self, digest: str, caller: str) -> Prompt:
        found = self._known(digest, caller)
        if found is None:
            raise KeyError(digest)
        return found

    def _known(self, digest: str, caller: str) -> Prompt | None:
        return self._grown.get(f"{caller} {digest}", self._grown.get(digest))


class _Counted:
    """Parts of calls, each kept as what it adds to the call before, with their sums."""

    def __init__(self) -> None:
        self._parts: dict[int, tuple[list[Part], Counter[str]]] = {0: ([], Counter())}

    def of(self, charged: Mapping[str, Any]) -> tuple[list[Part], Counter[str]]:
        before, sums = self._parts[charged["after"]]
        now = restored(before, charged["parts"])
        kept = charged["parts"]["kept"]
        after = Counter(sums)
        after.subtract(_sums(before[kept:]))
        after.update(_sums(now[kept:]))
        after = +after
        self._parts[int(charged["call"])] = now, after
        return now, after


def _sums(parts: Sequence[Part]) -> Counter[str]:
    sums: Counter[str] = Counter()
    for part in parts:
        sums[str(part.cause)] += part.tokens
    return sums

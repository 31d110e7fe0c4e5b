"""What a call was charged, as a trace keeps it: only what the caller's call before did not have.

A prompt only grows at its end, so the parts of a call are those of the one before and a few more; a trace that
repeated them all would be quadratic in turns.  Tokens that were not counted but shared out by length
(`ledger.apportion`) are not kept at all: they follow from the prompt and the sum, which are on record.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rlm_loop.ledger import Call, Part, apportion, rows_of
from rlm_loop.messages import Usage
from rlm_loop.trace_reader import RunRecord


def difference(before: Sequence[Part], now: Sequence[Part]) -> dict[str, Any]:
    """`now` as JSON: how many leading parts are those of `before`, and the others as lists of their fields."""
    kept = 0
    for old, new in zip(before, now, strict=False):
        if old != new:
            break
        kept += 1
    return {"kept": kept, "new": [[p.cause, p.origin_turn, p.message, p.tokens] for p in now[kept:]]}


def restored(before: Sequence[Part], stored: Mapping[str, Any]) -> list[Part]:
    """The parts that `difference` made `stored` of."""
    return [*before[: stored["kept"]], *(Part(*fields) for fields in stored["new"])]


def calls_of(record: RunRecord) -> Iterator[Call]:
    """Every model call of a recorded run, sub-calls included, with its rows as they were counted."""
    parts: dict[int, Sequence[Part]] = {0: ()}
    for event, prompt, reply in record.replies():
        charged: Mapping[str, Any] = event["charged"]
        number, usage = int(charged["call"]), reply.usage or Usage(None, None)
        if charged["parts"] is None:
            parts[number] = apportion(prompt, usage.input_tokens or 0)
        else:
            parts[number] = restored(parts[charged["after"]], charged["parts"])
        who = (number, event["turn"], event["depth"], str(charged["purpose"]))
        rows = rows_of(parts[number], *who, charged["sent"], usage.cached_tokens)
        yield Call(*who, usage, rows, bool(charged["exact"]), reply.seconds, reply.waited, event.get("node", "0"))
    for event in record.of("model_error"):
        if "call" in event:  # a call that was under way when the run ended: its cost is not known
            who = (int(event["call"]), event["turn"], event["depth"], str(event["purpose"]))
            yield Call(*who, Usage(None, None), (), False, node=event["node"])

"""What a call was charged, as a trace keeps it: only what the caller's call before did not have.

A prompt only grows at its end, so the parts of a call are those of the one before and a few more; a trace that
repeated them all would be quadratic in turns.  Parts are kept as they were counted: how they are made to sum to what
the provider reported (`attribution`) follows from that number, which is on record, and so do tokens that were not
counted but shared out by length.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rlm_loop.accounting.attribution import Attribution, Part, attribute, rows_of
from rlm_loop.accounting.ledger import Call
from rlm_loop.messages import Prompt, Reply, Usage, common
from rlm_loop.traces.reader import RunRecord, whole

#: Why the cost of a call is not known that was under way when the run ended.
NO_REPLY = "there was no reply before the run ended"


def difference(before: Sequence[Part], now: Sequence[Part]) -> dict[str, Any]:
    """`now` as JSON: how many leading parts are those of `before`, and the others as lists of their fields."""
    kept = common(before, now)
    return {"kept": kept, "new": [[p.cause, p.origin_turn, p.message, p.tokens] for p in now[kept:]]}


def restored(before: Sequence[Part], stored: Mapping[str, Any]) -> list[Part]:
    """The parts that `difference` made `stored` of."""
    return [*before[: stored["kept"]], *(Part(*fields) for fields in stored["new"])]


def accounts_of(record: RunRecord) -> Iterator[tuple[Mapping[str, Any], Prompt, Reply, Attribution]]:
    """Every call that got a reply: its `reply` event, the request, the reply, and where its input tokens went."""
    counted: dict[int, Sequence[Part]] = {0: ()}
    for event, prompt, reply in record.replies():
        with whole(event):
            charged: Mapping[str, Any] = event["charged"]
            number, stored = int(charged["call"]), charged["parts"]
            _ = event["turn"], event["depth"], charged["purpose"]  # what all who ask for accounts look at
            if stored is not None:
                counted[number] = restored(counted[charged["after"]], stored)
            found = attribute(prompt, counted[number] if stored is not None else None, reply.usage)
        yield event, prompt, reply, found


def calls_of(record: RunRecord) -> Iterator[Call]:
    """Every model call of a recorded run, sub-calls included, with its rows as they were counted."""
    for event, prompt, reply, found in accounts_of(record):
        with whole(event):
            charged: Mapping[str, Any] = event["charged"]
            who = (int(charged["call"]), event["turn"], event["depth"], str(charged["purpose"]))
            again = [one if isinstance(one, int) else (int(one[0]), str(one[1])) for one in charged.get("again", ())]
            cache = found.usage.cache_read_tokens, again, found.usage.cache_write_tokens
            rows = rows_of(found.parts, *who, charged["sent"], *cache, prompt.tools)
            where = (reply.seconds, reply.waited, event.get("node", "0"))
            call = Call(*who, found.usage, rows, bool(charged["exact"]), *where, found.counted, found.usage_warning)
        yield call
    for event in record.of("model_error"):
        if "call" in event:  # a call that was under way when the run ended: its cost is not known
            with whole(event):
                who = (int(event["call"]), event["turn"], event["depth"], str(event["purpose"]))
                call = Call(*who, Usage(None, None), (), False, node=event["node"], usage_warning=NO_REPLY)
            yield call

"""The charge of a call as a trace keeps it: only what the caller's call before did not have.

A prompt only grows at its end, so the parts of a call are those of the one before and a few more; a trace that
repeated them all would be quadratic in turns.  Parts are kept as they were counted: how they are made to sum to the
provider's number (`attribution`) follows from that number, which is on record, and so do tokens that were not
counted but shared out by length.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rlm_loop.accounting.attribution import Attribution, Part, attribute
from rlm_loop.accounting.ledger import Call
from rlm_loop.messages import Prompt, Reply, Usage, common
from rlm_loop.traces.reader import RunRecord, whole

#: Why the cost of a call is not known that was under way when the run ended.
NO_REPLY = "there was no reply before the run ended"


def difference(before: Sequence[Part], now: Sequence[Part]) -> dict[str, Any]:
    """`now` as JSON: the number of leading parts that are those of `before`, and the others as lists of fields."""
    kept = common(before, now)
    return {"kept": kept, "new": [[p.cause, p.origin_turn, p.message, p.tokens] for p in now[kept:]]}


def accounts_of(record: RunRecord) -> Iterator[tuple[Mapping[str, Any], Prompt, Reply, Attribution]]:
    """Yield every call that got a reply: its `reply` event, the request, the reply, and the account of its input."""
    counted: dict[int, Sequence[Part]] = {0: ()}
    for event, prompt, reply in record.replies():
        with whole(event):
            charged: Mapping[str, Any] = event["charged"]
            number, stored = int(charged["call"]), charged["parts"]
            _ = event["turn"], event["depth"], charged["purpose"]  # read by all who ask for accounts
            if stored is not None:
                before = counted[charged["after"]][: stored["kept"]]
                counted[number] = [*before, *(Part(*fields) for fields in stored["new"])]
            account = attribute(prompt, None if stored is None else counted[number], reply.usage)
        yield event, prompt, reply, account


def calls_of(record: RunRecord) -> Iterator[Call]:
    """Yield every model call of a recorded run, sub-calls included, with its parts as they were counted."""
    for event, prompt, reply, account in accounts_of(record):
        with whole(event):
            charged: Mapping[str, Any] = event["charged"]
            call = Call(
                *(int(charged["call"]), event["turn"], event["depth"], str(charged["purpose"])),
                *(account.usage, tuple(account.parts), bool(charged["exact"])),
                *(reply.seconds, reply.waited, event.get("node", "0"), account.counted, account.usage_warning),
                sent=charged["sent"],
                again=tuple(one if isinstance(one, int) else (one[0], one[1]) for one in charged.get("again", ())),
                tools=prompt.tools,
            )
            _ = call.rows  # a damaged event is told here
        yield call
    for event in record.of("model_error"):
        if "call" in event:  # it was written off: its cost is not known
            with whole(event):
                who = (int(event["call"]), event["turn"], event["depth"], str(event["purpose"]))
                call = Call(*who, Usage(), (), False, node=event["node"], usage_warning=NO_REPLY)
            yield call

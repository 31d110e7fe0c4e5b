"""A model that gives the replies of a recorded run, and proves that it is asked the same questions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from rlm_loop.accounting.attribution import Part, apportion
from rlm_loop.accounting.charges import accounts_of
from rlm_loop.accounting.limits import BudgetSpent
from rlm_loop.accounting.own_lock import OwnLock
from rlm_loop.messages import Prompt, Reply, common
from rlm_loop.models.base import Diverged, Model, ModelError
from rlm_loop.traces import reader as trace_reader
from rlm_loop.traces.reader import Run

#: The digest of a request, the request itself where it is known, and the reply that it got.
Call = tuple[str, Reply] | tuple[str, Prompt, Reply]


class RecordedModel(Model):
    """Gives recorded replies, each once and only to the request that it was recorded for.

    Requests are compared by `Prompt.digest`, so they are equal byte for byte.  Sub-calls made at the same time
    may come in another order than they were answered in.  Raises `Diverged` at the first request that was not recorded,
    with the number of the call (from 1) and the first message that differs from the next one on record.

    `sizes` are the lengths that prompts were found to have, in tokens by digest; `failures` are requests (digests)
    that got no reply, with the error's text: asked again, they fail again.
    """

    immediate = True
    loop_retry = None

    def __init__(
        self,
        calls: Iterable[Call],
        *,
        name: str = "recorded",
        sizes: Mapping[str, int] | None = None,
        failures: Iterable[tuple[str, str]] = (),
    ) -> None:
        self.prompts: list[Prompt] = []
        self._sizes = dict(sizes or {})
        self._failures = list(failures)
        self._left = [(call[0], call[1] if len(call) == 3 else None, call[-1]) for call in calls]
        self.name = name
        self._parts: Mapping[str, Sequence[Part]] | None = None
        self._lock = OwnLock()

    @classmethod
    def from_trace(cls, path: str | Path, *, run: Run = None) -> RecordedModel:
        """Read the replies of one run of a trace file (the last by default).  Raises `TraceError` for a bad file."""
        return cls.from_record(trace_reader.read(path, run=run), name=Path(path).stem)

    @classmethod
    def from_record(cls, record: trace_reader.RunRecord, *, name: str = "recorded") -> RecordedModel:
        """Take the replies of a run that was read; `name` is for one that names no model.

        Where every prompt of the run was counted exactly, `measure` returns these counts, so that the ledger of the
        new run is exact too.
        """
        model = next((str(e["model"]) for e in record.of("request") if e.get("model")), name)
        sizes = {e["digest"]: e["estimate"] for e in record.of("request") if "estimate" in e}
        for event in record.of("compaction"):
            sizes |= event["sizes"]
        failures = [(e["request"], e["error"]) for e in record.of("model_error")]
        calls = ((event["request"], prompt, reply) for event, prompt, reply in record.replies())
        recorded = cls(calls, name=model, sizes=sizes, failures=failures)
        recorded._parts = _exact_parts(record)
        return recorded

    @property
    def left(self) -> int:
        """The number of recorded replies that have not been asked for."""
        return len(self._left)

    def estimate(self, prompt: Prompt) -> int:
        """Return the recorded size of the prompt, so that what was decided by length is decided alike again."""
        known = self._sizes.get(prompt.digest())
        return super().estimate(prompt) if known is None else known

    def measure(self, prompt: Prompt) -> list[Part] | None:
        """Return the recorded parts; of an unknown prompt (`complete` refuses it) its size, shared out by length."""
        if self._parts is None:
            return None
        known = self._parts.get(prompt.digest())
        return apportion(prompt, self.estimate(prompt)) if known is None else list(known)

    def complete(self, prompt: Prompt, *, max_tokens: int | None = None) -> Reply:
        """Return the recorded reply.  `max_tokens` is not looked at: it shaped the reply when it was recorded."""
        digest = prompt.digest()
        with self._lock:
            if failed := next((f for f in self._failures if f[0] == digest), None):
                self._failures.remove(failed)
                kind, _, said = failed[1].partition(": ")
                if kind == "BudgetSpent":  # the time was up before there was a reply
                    raise BudgetSpent("seconds", said)
                raise ModelError(said or failed[1], self.name)
            for place, (recorded, _, reply) in enumerate(self._left):
                if recorded == digest:
                    del self._left[place]
                    self.prompts.append(prompt)
                    return reply
        number = len(self.prompts) + 1
        if not self._left:
            said = f"was never recorded: the record ends after {number - 1} calls"
        else:
            said = f"differs from the record: {_difference(self._left[0][1], prompt)}"
        raise Diverged(f"call {number} of {self.name} {said}", self.name)

    def __repr__(self) -> str:
        return f"RecordedModel({self.name!r}, {len(self.prompts)} calls, {self.left} left)"


def _exact_parts(record: trace_reader.RunRecord) -> dict[str, Sequence[Part]] | None:
    """Return the parts of every prompt, where each call says them and they are what the provider reported."""
    if not all("charged" in event for event, _, _ in record.replies()):
        return None
    accounts = [(prompt.digest(), account) for _, prompt, _, account in accounts_of(record)]
    exact = bool(accounts) and all(account.exact for _, account in accounts)
    return {digest: account.parts for digest, account in accounts} if exact else None


def _difference(recorded: Prompt | None, asked: Prompt) -> str:
    """Name the first difference between two requests, in one line."""
    if recorded is None:
        return f"another request of {len(asked.messages)} messages (only its digest was recorded)"
    old, new = recorded.to_dict(), asked.to_dict()
    if len(old["messages"]) != len(new["messages"]):
        return f"it has {len(new['messages'])} messages, recorded are {len(old['messages'])}"
    for index, (before, after) in enumerate(zip(old["messages"], new["messages"], strict=True)):
        for key in before | after:
            left, right = before.get(key), after.get(key)
            if left != right:
                texts = isinstance(left, str) and isinstance(right, str)
                left, right = (side if texts else json.dumps(side) for side in (left, right))
                at = common(left, right)
                differ = f"recorded {left[at : at + 40]!r}, asked {right[at : at + 40]!r}"
                return f"message {index} ({after['role']}), {key} from character {at}: {differ}"
    return f"its {', '.join(k for k in sorted({*old, *new}) if old.get(k) != new.get(k))} changed"

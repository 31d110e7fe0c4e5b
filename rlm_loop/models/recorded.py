"""A model that gives the replies of a recorded run, and proves that it is asked the same questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from pathlib import Path

from rlm_loop.accounting.attribution import Part, apportion
from rlm_loop.accounting.charges import accounts_of
from rlm_loop.accounting.scope import OwnLock
from rlm_loop.messages import Message, Prompt, Reply
from rlm_loop.models.base import Diverged, Model, ModelError
from rlm_loop.traces import reader as trace_reader
from rlm_loop.traces.reader import Run

_SHOWN = 60  # characters of each side, from the first that differs


class RecordedModel(Model):
    """Gives the replies of a run that was read, each once and only to the request that it was recorded for.

    Requests are compared by `Prompt.digest`, so they are equal byte for byte.  Sub-calls made at the same time
    may come in another order than they were answered in.  A request that failed fails again.  Raises `Diverged` at the
    first request that was not recorded, with the number of the call (from 1) and the first message that differs from
    the next one on record.
    """

    immediate = True
    loop_retry = None

    def __init__(self, record: trace_reader.RunRecord, *, name: str = "recorded") -> None:
        requests = record.of("request")
        self.name = next((str(e["model"]) for e in requests if e.get("model")), name)
        self.prompts: list[Prompt] = []
        self._sizes = sizes_of(record)
        self._left: list[tuple[str, Prompt, Reply]] = [(e["request"], p, reply) for e, p, reply in record.replies()]
        self._failures = [(e["request"], str(e["error"])) for e in record.of("model_error")]
        self._parts = _exact_parts(record)
        self._lock = OwnLock()

    @classmethod
    def from_trace(cls, path: str | Path, *, run: Run = None) -> RecordedModel:
        """Read the replies of one run of a trace file (the last by default).  Raises `TraceError` for a bad file."""
        return cls(trace_reader.read(path, run=run), name=Path(path).stem)

    def estimate(self, prompt: Prompt) -> int:
        """Return the recorded size of the prompt, so that what was decided by length is decided alike again."""
        known = self._sizes.get(prompt.digest)
        return super().estimate(prompt) if known is None else known

    def measure(self, prompt: Prompt) -> list[Part] | None:
        """Return the parts where every prompt of the run was counted exactly, so that the new ledger is exact too.

        An unknown prompt (`complete` refuses it) has its size, shared out by length.
        """
        if self._parts is None:
            return None
        known = self._parts.get(prompt.digest)
        return apportion(prompt, self.estimate(prompt)) if known is None else list(known)

    def complete(self, prompt: Prompt, *, max_tokens: int | None = None) -> Reply:
        """Return the recorded reply.  `max_tokens` is not looked at: it shaped the reply when it was recorded."""
        digest = prompt.digest
        with self._lock:
            if failed := next((f for f in self._failures if f[0] == digest), None):
                self._failures.remove(failed)
                raise ModelError(failed[1].removeprefix("ModelError: "), self.name)
            if found := next((one for one in self._left if one[0] == digest), None):
                self._left.remove(found)
                self.prompts.append(prompt)
                return found[2]
        said = f"was never recorded: the record ends after {len(self.prompts)} calls"
        if self._left:
            what, old, new, _ = first_difference(self._left[0][1], prompt)
            said = f"differs from the record: {what}: recorded {old}, asked {new}"
        raise Diverged(f"call {len(self.prompts) + 1} of {self.name} {said}", self.name)


def _exact_parts(record: trace_reader.RunRecord) -> Mapping[str, Sequence[Part]] | None:
    """Return the parts of every prompt, where each call says them and they are what the provider reported."""
    if not all("charged" in event for event, _, _ in record.replies()):
        return None
    accounts = [(prompt.digest, account) for _, prompt, _, account in accounts_of(record)]
    exact = bool(accounts) and all(account.exact for _, account in accounts)
    return {digest: account.parts for digest, account in accounts} if exact else None


def sizes_of(record: trace_reader.RunRecord) -> dict[str, int]:
    """Counted or estimated tokens of recorded prompts, by digest."""
    sizes = {event["digest"]: int(event["estimate"]) for event in record.of("request") if "estimate" in event}
    for event in record.of("compaction"):
        sizes |= event["sizes"]
    return sizes


def first_difference(recorded: Prompt, asked: Prompt) -> tuple[str, str, str, int | None]:
    """Return the first place where two requests differ, the text on either side there, and its message (from 0)."""
    both = enumerate(zip_longest(recorded.messages, asked.messages))
    messages = [(f"message {n} ({(was or now).role})", _read(was), _read(now), n) for n, (was, now) in both]
    names = ("tools", "stop", "reply_schema")
    settings = [(name, str(getattr(recorded, name)), str(getattr(asked, name)), None) for name in names]
    what, old, new, index = next(part for part in (*messages, *settings) if part[1] != part[2])
    same = [a == b for a, b in zip_longest(old, new)].index(False)
    shown = slice(same, same + _SHOWN)
    return what, repr(old[shown]), repr(new[shown]), index


def _read(message: Message | None) -> str:
    """Return all of a message that a model reads."""
    if message is None:
        return ""
    calls = [str(message.tool_calls)] if message.tool_calls else []
    return "\n".join([message.text, *calls, message.tool_call_id or "", message.role])

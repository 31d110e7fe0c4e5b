"""A model that gives the replies of a recorded run, and proves that it is asked the same questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from pathlib import Path

from rlm_loop.accounting.attribution import Part, apportion
from rlm_loop.accounting.charges import accounts_of
from rlm_loop.accounting.scope import OwnLock
from rlm_loop.messages import Prompt, Reply, canonical, common
from rlm_loop.models.base import Diverged, Model, ModelError
from rlm_loop.traces import reader as trace_reader
from rlm_loop.traces.reader import Run


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
        self._sizes = {e["digest"]: e["estimate"] for e in requests if "estimate" in e}
        for event in record.of("compaction"):
            self._sizes |= event["sizes"]
        self._left: list[tuple[str, Prompt, Reply]] = [(e["request"], p, reply) for e, p, reply in record.replies()]
        self._failures = [(e["request"], str(e["error"])) for e in record.of("model_error")]
        self._parts = _exact_parts(record)
        self._lock = OwnLock()

    @classmethod
    def from_trace(cls, path: str | Path, *, run: Run = None) -> RecordedModel:
        """Read the replies of one run of a trace file (the last by default).  Raises `TraceError` for a bad file."""
        return cls(trace_reader.read(path, run=run), name=Path(path).stem)

    @property
    def left(self) -> int:
        """The number of recorded replies that have not been asked for."""
        return len(self._left)

    def estimate(self, prompt: Prompt) -> int:
        """Return the recorded size of the prompt, so that what was decided by length is decided alike again."""
        known = self._sizes.get(prompt.digest())
        return super().estimate(prompt) if known is None else known

    def measure(self, prompt: Prompt) -> list[Part] | None:
        """Return the parts where every prompt of the run was counted exactly, so that the new ledger is exact too.

        An unknown prompt (`complete` refuses it) has its size, shared out by length.
        """
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
                raise ModelError(failed[1].removeprefix("ModelError: "), self.name)
            if found := next((one for one in self._left if one[0] == digest), None):
                self._left.remove(found)
                self.prompts.append(prompt)
                return found[2]
        said = f"was never recorded: the record ends after {len(self.prompts)} calls"
        if self._left:
            said = f"differs from the record: {_difference(self._left[0][1], prompt)}"
        raise Diverged(f"call {len(self.prompts) + 1} of {self.name} {said}", self.name)


def _exact_parts(record: trace_reader.RunRecord) -> Mapping[str, Sequence[Part]] | None:
    """Return the parts of every prompt, where each call says them and they are what the provider reported."""
    if not all("charged" in event for event, _, _ in record.replies()):
        return None
    accounts = [(prompt.digest(), account) for _, prompt, _, account in accounts_of(record)]
    exact = bool(accounts) and all(account.exact for _, account in accounts)
    return {digest: account.parts for digest, account in accounts} if exact else None


def _difference(recorded: Prompt, asked: Prompt) -> str:
    """Name the first difference between two requests, in one line."""
    for index, (old, new) in enumerate(zip_longest(recorded.messages, asked.messages)):
        if old is None or new is None:
            return f"it has {len(asked.messages)} messages, recorded are {len(recorded.messages)}"
        before, after = canonical(old.to_dict()), canonical(new.to_dict())
        if before != after:
            at = common(before, after)
            return f"message {index} ({new.role}): recorded {before[at : at + 40]!r}, asked {after[at : at + 40]!r}"
    return "its tools or settings changed"

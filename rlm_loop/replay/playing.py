"""The recorded parts of a replay: a clock, a model and an environment that give what was recorded."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rlm_loop.accounting.ledger import Part
from rlm_loop.accounting.limits import NO_LIMITS, BudgetSpent
from rlm_loop.accounting.scope import Cancelled
from rlm_loop.actions import Action, Observation
from rlm_loop.agents.environment import Environment, Unfinished
from rlm_loop.agents.meter import Meter
from rlm_loop.agents.past_run import value_of
from rlm_loop.messages import Prompt, Reply, Usage
from rlm_loop.models import base
from rlm_loop.models.base import Model, ModelError
from rlm_loop.replay.differences import REDACTED, Difference, between
from rlm_loop.replay.recorded import ROOT, Recorded, RecordedCall, RecordEnds
from rlm_loop.traces.trace import plain


@dataclass
class Progress:
    """How far a replay has come: the time by the record, and the differences found."""

    recorded: Recorded
    seconds: float = 0.0
    answered: int = 0
    """Requests of the root that were answered."""
    equal: int = 0
    """Requests of the root that were equal, byte for byte."""
    redacted: int = 0
    """Of them, those that hold text which was redacted: their hash cannot be checked."""
    difference: Difference | None = None
    """The first."""

    def next_call(self) -> RecordedCall | None:
        calls = self.recorded.root.calls
        return calls[self.answered] if self.answered < len(calls) else None

    def at(self, event: Mapping[str, Any]) -> None:
        """Set the clock to the time of a recorded event."""
        self.seconds = max(0.0, float(event["at"]) - float(self.recorded.start["at"]) - 0.001)

    def clock(self) -> float:
        return self.seconds

    def differs(self, difference: Difference) -> None:
        self.difference = self.difference or difference


class Replies(Model):
    """The recorded replies of the root; each request is compared with the recorded one."""

    immediate = True  # the time is that of the record, which no limit is held against twice

    def __init__(self, progress: Progress, price: tuple[float, float] | None) -> None:
        start = progress.recorded.start
        self._progress, self.price = progress, price
        self.name, self.window = str(start.get("model", "")), start.get("window")
        self._counted = any(call.parts is not None for call in progress.recorded.root.calls)

    def estimate(self, prompt: Prompt) -> int:
        """Tokens that the prompt was found to have when it was recorded."""
        size = self._progress.recorded.sizes.get(prompt.digest())
        return super().estimate(prompt) if size is None else size

    def measure(self, prompt: Prompt) -> Sequence[Part] | None:
        """The recorded parts of the next request, where this is it; `None` where the model did not count."""
        if not self._counted:
            return None
        call = self._progress.next_call()
        if call is None or call.parts is None:
            return [Part("template", 0, -1, self.estimate(prompt))]
        if call.event["digest"] == prompt.digest() or between(call.prompt, prompt, 0) is None:  # the latter: redacted
            return list(call.parts)
        return [Part("template", 0, -1, self.estimate(prompt))]

    def complete(self, prompt: Prompt, *, max_tokens: int | None = None) -> Reply:
        """The recorded reply, or the recorded error; a request that differs is noted, and answered all the same."""
        progress = self._progress
        call = progress.next_call()
        if call is None:
            self._more(prompt)
            raise RecordEnds
        progress.answered += 1
        progress.at(call.event)
        self._compare(call, prompt)
        if call.ended is None:
            raise RecordEnds
        progress.at(call.ended)
        if call.error is not None:
            raise recorded_error(call.error, self.name)
        assert call.reply is not None
        return call.reply

    def _compare(self, call: RecordedCall, prompt: Prompt) -> None:
        progress, turn = self._progress, int(call.event["turn"])
        if prompt.digest() == call.event["digest"]:  # whatever became of the body in the trace: see `damage`
            progress.equal += 1
            return
        different = between(call.prompt, prompt, turn)
        hidden = different is None and any(REDACTED in m.text for m in call.prompt.messages)
        progress.equal += hidden
        progress.redacted += hidden
        if not hidden:
            hashes = call.event["digest"][:12], prompt.digest()[:12]
            progress.differs(different or Difference(turn, "hash", *hashes))

    def _more(self, prompt: Prompt) -> None:
        """Note a request beyond the recorded ones: a difference where the run had come to its end."""
        node = self._progress.recorded.root
        if (end := node.end) is not None:
            today = f"a further request of {len(prompt.messages)} messages"
            self._progress.differs(Difference(node.last, "end", f"{end['stop']} ({end.get('reason', '')})", today))


def recorded_error(error: str, model: str) -> BaseException:
    """An exception as it was recorded (`class: text`): of the same class where that is one of ours."""
    name, _, text = error.partition(": ")
    if name == "KeyboardInterrupt":
        return KeyboardInterrupt()
    if name == "Cancelled":
        return Cancelled(text)
    if name == "BudgetSpent":  # the time was up before there was a reply
        return BudgetSpent("seconds", text)
    kind: Callable[..., BaseException] | None = getattr(base, name, None)
    if isinstance(kind, type) and issubclass(kind, ModelError):
        return kind(text, model)
    return type(name if name.isidentifier() else "Exception", (Exception,), {})(text)


class RecordedEnvironment(Environment):
    """Where nothing is done: an action leads to what it led to."""

    def __init__(self, progress: Progress, meter: Meter, *parts: Any) -> None:
        super().__init__(*parts)
        self._progress, self._node, self._meter = progress, progress.recorded.root, meter
        self._below = usage_below(progress.recorded)

    @property
    def isolation(self) -> str:
        return str((self._node.end or {}).get("isolation", ""))

    def perform(self, actions: Sequence[Action]) -> tuple[Observation, ...]:
        """The recorded observations of this turn; what its sub-calls used is spent."""
        number, end = self._meter.turn, self._node.end
        step = self._node.steps.get(number)
        if step is None:
            self._broken_off()
            raise RecordEnds
        spend(self._meter, self._below.get(number, ()))
        self._progress.at(step.event)
        last = not any(int(call.event["turn"]) > number for call in self._node.calls)
        if end is not None and last and end["stop"] == "seconds":
            self._to_the_end()
        if plain(tuple(actions)) != plain(step.actions):
            old, new = (", ".join(map(_named, each)) for each in (step.actions, actions))
            self._progress.differs(Difference(number, "what the reply asks for", old, new))
            if len(actions) != len(step.actions):
                raise RecordEnds
        if end is not None and last and end["stop"] == "interrupted":
            raise Unfinished(step.observations)
        return step.observations

    def collect(self, expression: str) -> Any:
        return self.partial_artifact()

    def partial_artifact(self) -> Any:
        if self._node.end is None:
            return None
        self._to_the_end()
        return value_of(self._node.end.get("artifact"))

    def _to_the_end(self) -> None:
        assert self._node.end is not None
        progress = self._progress
        progress.seconds += max(0.0, float(self._node.end["seconds"]) - self._meter.account.seconds)

    def _broken_off(self) -> None:
        """The reply is there, but not what came of it: raise what ended the run, where it is known."""
        end = self._node.end
        if end is not None and end["stop"] == "interrupted":
            raise KeyboardInterrupt
        if end is not None and end["stop"] == "failed":
            raise recorded_error(str(end["reason"]), "")


def usage_below(recorded: Recorded) -> dict[int, list[Usage | None]]:
    """What the calls below the root used, by the root's turn in which they were made; `None` for a failed one."""
    below: dict[int, list[Usage | None]] = {}
    since: list[Usage | None] = []
    for event in recorded.record.events:
        kind, path = event["event"], str(event.get("node", ROOT))
        if kind == "reply" and path != ROOT:
            usage = (event["reply"] or {}).get("usage")
            since.append(Usage.nothing() if usage is None else Usage.of(usage))
        elif kind == "model_error" and path != ROOT:
            since.append(None)
        elif kind == "turn" and path == ROOT and not event.get("depth", 0):
            below[int(event["turn"])], since = since, []
    return below


def spend(meter: Meter, usages: Sequence[Usage | None]) -> None:
    """Charge recorded usage to the account of a run; what was recorded is not stopped by a limit."""
    account = meter.account
    limits, account.budget = account.budget, NO_LIMITS
    for usage in usages:
        account.settle(account.reserve(0, None), usage)
        if usage is not None:
            meter.node.spend(usage)
    account.budget = limits


def _named(action: Action) -> str:
    return f"{type(action).__name__}({', '.join(f'{k}={v!r}' for k, v in vars(action).items() if v)})"

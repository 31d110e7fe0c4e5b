"""The model of a replay: it gives recorded replies, and compares each request with the recorded one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from rlm_loop.accounting.ledger import Part
from rlm_loop.accounting.limits import BudgetSpent
from rlm_loop.accounting.scope import Cancelled
from rlm_loop.messages import Prompt, Reply
from rlm_loop.models import base
from rlm_loop.models.base import Model, ModelError
from rlm_loop.replay.differences import REDACTED, Difference, between
from rlm_loop.replay.recorded import ROOT, NodeRecord, Recorded, RecordedCall, RecordEnds


@dataclass
class ReplayState:
    """How far a replay has come: the node that is driven now, the time by the record, and what was found to differ."""

    recorded: Recorded
    seconds: float = 0.0
    path: list[str] = field(default_factory=lambda: [ROOT])
    given: dict[str, int] = field(default_factory=dict[str, int])
    """Calls that were answered so far, by node."""
    difference: Difference | None = None
    """The first."""
    equal: int = 0
    """Requests of the root that were equal, byte for byte."""
    redacted: int = 0
    """Of them, those that hold text which was redacted: their hash cannot be checked."""

    @property
    def node(self) -> NodeRecord:
        return self.recorded.node(self.path[-1])

    def next_call(self) -> RecordedCall | None:
        calls, count = self.node.calls, self.given.get(self.path[-1], 0)
        return calls[count] if count < len(calls) else None

    def at(self, event: Any) -> None:
        """It is now as late as it was when that was recorded."""
        self.seconds = max(0.0, float(event["at"]) - float(self.recorded.start["at"]) - 0.001)

    def clock(self) -> float:
        return self.seconds

    def differs(self, difference: Difference) -> None:
        self.difference = self.difference or difference


class Replies(Model):
    """Recorded replies, by node."""

    loop_retry = None
    immediate = True  # the time is that of the record, which no limit is held against twice

    def __init__(self, course: ReplayState, price: tuple[float, float] | None) -> None:
        self._course, self.price = course, price

    @property
    def name(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        call, node = self._course.next_call(), self._course.node
        event = call.event if call is not None else node.start or self._course.recorded.start
        return str(event.get("model") or self._course.recorded.start.get("model", ""))

    @property
    def window(self) -> int | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The model's, in tokens, where it was recorded."""
        return self._course.recorded.start.get("window")

    def estimate(self, prompt: Prompt) -> int:
        """Return the recorded size of the prompt, else estimate it."""
        known = self._course.recorded.sizes.get(prompt.digest())
        return super().estimate(prompt) if known is None else known

    def complete(self, prompt: Prompt, *, max_tokens: int | None = None) -> Reply:
        """The recorded reply, or the recorded error; a request that differs is noted, and answered all the same."""
        course = self._course
        call = course.next_call()
        if call is None:
            self._more(prompt)
            raise RecordEnds
        course.given[course.path[-1]] = course.given.get(course.path[-1], 0) + 1
        course.at(call.event)
        if course.path == [ROOT]:
            self._compare(call, prompt)
        if call.ended is None:
            raise RecordEnds
        course.at(call.ended)
        if call.error is not None:
            raise error_again(call.error, self.name)
        assert call.reply is not None
        return call.reply

    def _compare(self, call: RecordedCall, prompt: Prompt) -> None:
        course, turn = self._course, int(call.event["turn"])
        if prompt.digest() == call.event["digest"]:  # whatever became of the body in the trace: see `damage`
            course.equal += 1
            return
        found = between(call.prompt, prompt, turn)
        hidden = found is None and any(REDACTED in m.text for m in call.prompt.messages)
        course.equal += hidden
        course.redacted += hidden
        if not hidden:
            course.differs(found or Difference(turn, "hash", call.event["digest"][:12], prompt.digest()[:12]))

    def _more(self, prompt: Prompt) -> None:
        """A request beyond the recorded ones: a difference where the run had come to its end."""
        node = self._course.node
        if (end := node.end) is not None:
            today = f"a further request of {len(prompt.messages)} messages"
            self._course.differs(Difference(node.last, "end", f"{end['stop']} ({end.get('reason', '')})", today))


class CountedReplies(Replies):
    """Replies of a model that counted its prompts: the counts are recorded too."""

    def measure(self, prompt: Prompt) -> list[Part]:
        """The recorded parts of the next request, where this is it."""
        call = self._course.next_call()
        if call is not None and call.parts is not None and call.event["digest"] == prompt.digest():
            return list(call.parts)
        if call is not None and call.parts is not None and between(call.prompt, prompt, 0) is None:
            return list(call.parts)  # redacted
        return [Part("template", 0, -1, self.estimate(prompt))]


def replies_of(course: ReplayState, price: tuple[float, float] | None) -> Replies:
    """The model of a replay; it counts where the recorded one did."""
    counted = any(c.parts is not None for c in course.recorded.calls())
    return (CountedReplies if counted else Replies)(course, price)


def error_again(error: str, model: str) -> BaseException:
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

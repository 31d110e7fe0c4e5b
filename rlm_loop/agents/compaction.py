"""The length of a run's messages: a prompt that has grown too long is shortened, a result that does not fit clipped.

`History` decides when, with the model's tokenizer, its window and the trace at hand; the ways to shorten a prompt are
pure functions.  A turn is left out whole or not at all, so a call is never parted from its result, and what was there
before the first turn (system text, task, tool schemas) is never touched.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Literal, cast, get_args

from rlm_loop.accounting.budget import BudgetSpent
from rlm_loop.actions import Observation
from rlm_loop.agents.meter import Meter
from rlm_loop.dialects.base import Dialect
from rlm_loop.dialects.reader import without_reasoning
from rlm_loop.dialects.wording import LEFT_OUT, OUTPUT_LEFT_OUT, SUMMARISE, SUMMARY_OF
from rlm_loop.messages import Message, Prompt, Span
from rlm_loop.models.base import Diverged, Model, ModelError
from rlm_loop.outcome import Turn
from rlm_loop.repl.text import RECORD_CAP, clip, clip_again

Policy = Literal["drop_outputs", "window", "summary"]

#: What the text that compaction writes is charged to.
CAUSE = "summary"
_RESULTS = frozenset({"tool_result", "repl_output", "error"})
_REPLY = 512  # tokens that are kept for the reply where nothing says how long it may be
_LEAST = 200  # characters that an observation keeps
_TRIES = 6
_CLIPPED = "\n[clipped: it does not fit the model's window; look at less at once]"


@dataclass(frozen=True)
class Compaction:
    """The rule by which a history is made shorter.

    `threshold_tokens` is the longest prompt that is sent as it is (system, task and schemas included; `None`: any
    length), `max_messages` the same in messages.  Beyond it `policy` is applied: `drop_outputs` (results become a short
    mark with their size), `window` (whole turns are left out) or `summary` (they are summarised by one model call of at
    most `summary_tokens`).  The last `keep_turns` turns stay as they are, fewer only where they do not fit.
    `max_messages` alone leaves out no more turns than it has to.
    Raises `ValueError` in one line for anything else.
    """

    policy: Policy = "drop_outputs"
    threshold_tokens: int | None = 6_000
    keep_turns: int = 4
    max_messages: int | None = None
    summary_tokens: int = 300

    def __post_init__(self) -> None:
        if self.policy not in get_args(Policy):
            raise ValueError(f"unknown policy {self.policy!r}; take one of {', '.join(get_args(Policy))}")
        if self.threshold_tokens is None and self.max_messages is None:
            raise ValueError("a Compaction without threshold_tokens and max_messages never happens; set one of them")
        for name in ("threshold_tokens", "max_messages", "keep_turns", "summary_tokens"):
            value = getattr(self, name)
            if value is not None and (type(value) is not int or value < 1):
                raise ValueError(f"{name} of a Compaction is a whole number of at least 1, not {value!r}")


#: Of an agent without a `history`: the oldest turns go only when the model's window is full.
_WHOLE_WINDOW = Compaction("window", threshold_tokens=sys.maxsize)


def plan_of(history: str | int | Compaction | None) -> Compaction | None:
    """The compaction of an agent's `history`: a policy's name, the most messages, or a `Compaction`; `None`: never.

    Raises `ValueError` as `Compaction` does.
    """
    if history is None or isinstance(history, Compaction):
        return history
    if isinstance(history, str):
        return Compaction(cast("Policy", history))
    return Compaction("window", threshold_tokens=None, max_messages=history)


def turns_in(prompt: Prompt) -> list[int]:
    """The turns that a prompt holds, in order."""
    return list(dict.fromkeys(m.turn for m in prompt.messages if m.turn))


def without_outputs(prompt: Prompt, kept: Collection[int]) -> Prompt:
    """The prompt with a mark in place of each result, where that is shorter, of the turns that are not `kept`."""
    stays = {0, *kept}
    messages = [m if m.turn in stays else replace(m, spans=tuple(map(_mark, m.spans))) for m in prompt.messages]
    return replace(prompt, messages=tuple(messages))


def without_turns(prompt: Prompt, kept: Collection[int], *, summary: str | None = None) -> Prompt:
    """The prompt with only the turns that are `kept`, and a line after the task that says so.

    What a later question of a session asked in a turn that is left out follows the task.
    `summary` stands for all turns left out.  Without one, that of an earlier compaction is kept.
    """
    turns = turns_in(prompt)
    if set(turns) <= set(kept):
        return prompt
    brief, rest = list[Message](), list[Message]()
    for message in prompt.messages:
        if message.turn in kept:
            rest.append(message)
        elif stay := tuple(s for s in message.spans if (s.cause == "task" if message.turn else s.cause != CAUSE)):
            _join(brief, Message("user", stay) if message.turn else replace(message, spans=stay))
    out = turns[-1] - len({m.turn for m in rest})  # with those of earlier compactions
    lines = [summary_in(prompt), LEFT_OUT.format(count=out)]
    if summary is not None:
        lines = [SUMMARY_OF.format(count=out) + summary]
    _join(brief, Message("user", tuple(Span(f"\n{line}", CAUSE) for line in lines if line)))
    return replace(prompt, messages=(*brief, *rest))


def _join(messages: list[Message], message: Message) -> None:
    """Append to the messages, a user's to the user's before it: some templates refuse two users in a row."""
    if messages and messages[-1].role == message.role == "user":
        message = replace(messages[-1], spans=(*messages.pop().spans, *message.spans))
    messages.append(message)


def summary_in(prompt: Prompt) -> str | None:
    """The summary that an earlier compaction left in the prompt, its heading included."""
    head = SUMMARY_OF.partition("{")[0]
    texts = [s.text.strip("\n") for m in prompt.messages if not m.turn for s in m.spans if s.cause == CAUSE]
    return next((t for t in texts if t.startswith(head)), None)


def summary_request(prompt: Prompt, dropped: Collection[int], words: int) -> Prompt:
    """The prompt for a summary of the `dropped` turns: they and the task, without tools."""
    spans = [Span("Task:\n", CAUSE)]
    spans += [s for m in prompt.messages if m.role == "user" for s in m.spans if s.cause == "task"]
    if before := summary_in(prompt):
        spans.append(Span(f"\n\n{before}", CAUSE))
    for message in prompt.messages:
        if message.turn in dropped:
            spans.append(Span(f"\n\n[turn {message.turn}, {message.role}]\n", CAUSE))
            spans += message.spans
            spans += [Span(f"\n{c.name}({c.arguments})", "assistant") for c in message.tool_calls]
    spans.append(Span("\n\n" + SUMMARISE.format(words=words), CAUSE))
    return Prompt((Message("user", tuple(spans)),))


def _mark(span: Span) -> Span:
    """A result's mark, on a line of its own where the result was; what is shorter than its mark stays."""
    text = span.text.removeprefix("\n")
    mark = OUTPUT_LEFT_OUT.format(size=len(text))
    if span.cause not in _RESULTS or len(mark) >= len(text):
        return span
    return Span(span.text[: len(span.text) - len(text)] + mark, CAUSE)


def window_of(model: Model) -> int | None:
    """Return the tokens that prompt and reply may have together; `None` where nobody says."""
    try:
        return model.window
    except ModelError:  # a server that cannot be asked: the request will say so
        return None


class History:
    """Shortens the prompt of a run before a request, and clips results that no window holds.

    Each change of the prompt is a `compaction` event in the trace, so a reader knows why a request does not begin with
    the one before.  `turn` in the event is the last turn that had ended.  Where the part that must stay is longer than
    the plan's threshold, the run goes on with it (`over` in the event), and the next compaction is due when half a
    threshold has been added.  Where a summary cannot be made, a window takes its place (`fallback` says why).
    """

    def __init__(self, plan: Compaction | None, meter: Meter) -> None:
        self.plan, self._meter, self._window = plan or _WHOLE_WINDOW, meter, window_of(meter.model)
        self._room: int | None = None  # the longest prompt that leaves room for a reply
        if self._window is not None:
            reply = meter.max_tokens or meter.model.max_tokens or _REPLY
            self._room = self._window - min(int(reply), self._window // 4)
        # compaction is `due` beyond so many tokens
        self._limit = self._due = min(
            [n for n in (self.plan.threshold_tokens, self._room) if n is not None], default=None
        )
        self._sizes: dict[str, int] = {}

    def shortened(self, prompt: Prompt, turns: Sequence[Turn]) -> Prompt:
        """Return the next request; raises `BudgetSpent` where what must stay fills the model's window."""
        if not turns:  # uncounted: counting would load a local model before anybody is told that it loads
            return prompt
        plan = self.plan
        self._sizes.clear()
        long = self._due is not None and self._size(prompt) > self._due
        many = self._many(prompt)
        if not (long or many):
            return prompt
        policy: Policy = "window" if many and plan.policy == "drop_outputs" else plan.policy
        shorter, fallback = None, None
        if policy == "summary":
            try:
                shorter = self._summarised(prompt, turns, long)
            except Diverged:
                raise
            except (ModelError, BudgetSpent) as error:
                fallback = f"no summary: {error}"
            policy = "window" if shorter is None else policy
        shorter = shorter or self._fitting(prompt, turns, policy, long)
        self._record(prompt, shorter, policy, fallback, "tokens" if long else "messages")
        if self._window is not None and self._size(shorter) >= self._window:
            raise BudgetSpent("window", f"the messages fill the model's window of {self._window} tokens")
        return shorter

    def fit(self, dialect: Dialect, prompt: Prompt, turn: Turn) -> Turn:
        """Return the turn, with shorter observations where even the latest turn alone does not fit; the model is told.

        Results of a recorded run were clipped when it was made.
        """
        if self._room is None or self._meter.model.immediate or turn.answer is not None:
            return turn
        for _ in range(_TRIES):
            over = self._size(without_turns(prompt + dialect.format_turn(turn), {turn.index})) - self._room
            longest = max(turn.observations, key=lambda o: len(o.text), default=None)
            if over <= 0 or longest is None or len(longest.text) <= _LEAST:
                break
            clipped = (_shorter(o, over) if o is longest else o for o in turn.observations)
            turn = replace(turn, observations=tuple(clipped))
        return turn

    def _summarised(self, prompt: Prompt, turns: Sequence[Turn], long: bool) -> Prompt | None:
        """Return the prompt with a summary, `None` where no turn can go; raises where the model gives no summary."""
        plan, there = self.plan, turns_in(prompt)
        kept = set(turns_in(self._fitting(prompt, turns, "window", long, reserve=plan.summary_tokens)))
        dropped = [turn for turn in there if turn not in kept]
        if not dropped:
            return None
        apart = self._meter.scoped(self._meter.node, purpose="compaction", max_tokens=plan.summary_tokens)
        reply = apart.complete(summary_request(prompt, dropped, words=plan.summary_tokens * 3 // 5), turn=there[-1])
        text = " ".join(without_reasoning(reply.text).split())
        if not text or reply.finish_reason in ("content_filter", "error"):
            raise ModelError("the reply was empty or withheld")
        return without_turns(prompt, kept, summary=text + (" ..." if reply.cut_off else ""))

    def _fitting(self, prompt: Prompt, turns: Sequence[Turn], policy: Policy, long: bool, reserve: int = 0) -> Prompt:
        """Return the shorter prompt that keeps the most turns within the limits, else the one that keeps the least.

        A turn whose answer still waits to be confirmed stays.
        """
        candidate, plan, there = prompt, self.plan, turns_in(prompt)
        pending = [t.index for t in turns if t.pending is not None][-1:]
        shorten = without_outputs if policy == "drop_outputs" else without_turns
        few = long or plan.policy == "summary"  # a call a turn would be the price of leaving out one at a time
        for count in range(min(plan.keep_turns, len(there)) if few else len(there), 0, -1):
            candidate = shorten(prompt, {*there[-count:], *pending})
            fits = self._limit is None or self._size(candidate) + reserve <= self._limit
            if fits and not self._many(candidate):
                break
        return candidate

    def _many(self, prompt: Prompt) -> bool:
        return self.plan.max_messages is not None and len(prompt.messages) > self.plan.max_messages

    def _record(self, prompt: Prompt, after: Prompt, policy: str, fallback: str | None, due: str) -> None:
        """Write the event; where even this is over the threshold, set the length at which the next one is due."""
        limit, tokens, over = self._limit, None, self._many(after)
        if limit is not None:
            tokens, self._due = self._size(after), limit
            if tokens > limit:
                self._due, over = tokens + limit // 2, True
        then, now = ({t: [m for m in p.messages if m.turn == t] for t in turns_in(p)} for p in (prompt, after))
        self._meter.record(
            "compaction",
            messages_before=len(prompt.messages),
            messages=len(after.messages),
            shortened=[t for t in now if now[t] != then[t]],
            left_out=[t for t in then if t not in now],
            tokens_before=self._sizes.get(prompt.digest()),
            tokens=tokens,
            sizes=dict(self._sizes),
            policy=policy,
            asked=self.plan.policy,
            due=due,
            fallback=fallback,
            over=over,
        )

    def _size(self, prompt: Prompt) -> int:
        """Return the tokens by the model's own tokenizer, else estimated; each prompt is counted once."""
        name = prompt.digest()
        if name not in self._sizes:
            self._sizes[name] = self._meter.model.prompt_tokens(prompt)
        return self._sizes[name]


def _shorter(seen: Observation, over: int) -> Observation:
    """Return the observation with so many tokens less, taken as three characters each, and a line that says so."""
    text = seen.text.removesuffix(_CLIPPED)
    cut, _ = clip_again(text, max(_LEAST, len(text) - 3 * over - len(_CLIPPED)))
    return replace(seen, text=cut + _CLIPPED, truncated=True, full=seen.full or clip(text, RECORD_CAP)[0])

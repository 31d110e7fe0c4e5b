"""The messages of a run: how they grow, and how a long history is made to fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from rlm_loop.accounting.budget import BudgetSpent
from rlm_loop.actions import Answer
from rlm_loop.agents import compaction
from rlm_loop.agents.compaction import Compaction, Policy, turns_in, window_of
from rlm_loop.agents.meter import Meter
from rlm_loop.dialects.base import Dialect, Problem
from rlm_loop.dialects.injectors import Injector, told_first
from rlm_loop.dialects.reader import without_reasoning
from rlm_loop.messages import Message, Prompt, Span
from rlm_loop.models.base import Diverged, ModelError
from rlm_loop.outcome import Turn
from rlm_loop.tools.function import Tool

_REPLY = 512  # tokens that are kept for the reply where nothing says how long it may be
_TRIES = 6  # to clip the results of a turn
#: Of an agent without a `history`: the oldest turns go only when the model's window is full.
_WHOLE_WINDOW = Compaction("window")


@dataclass
class Conversation:
    """Messages between a model and its environment, from which each request is made.

    `dialect` puts tasks, reads replies and shows turns; `compaction` shortens a long history (`None`: not before the
    model's window is full).  `turns` are those that the messages show, and `number` is that of the latest turn of the
    task, shown or not.  A session keeps one conversation for all of its questions.

    Each change of what was said is a `compaction` event in the trace, so a reader knows why a request does not begin
    with the one before.  Where the part that must stay is longer than the threshold, the run goes on with it (`over` in
    the event), and the next compaction is due when half a threshold has been added.  Where a summary cannot be made, a
    window takes its place (`fallback` says why).
    """

    dialect: Dialect
    compaction: Compaction | None = None
    prompt: Prompt = field(default_factory=Prompt)
    turns: list[Turn] = field(default_factory=list[Turn])
    number: int = 0

    def start(
        self,
        problem: Problem,
        tools: Mapping[str, Tool],
        meter: Meter,
        brief: Sequence[Injector] = (),
        *,
        asks: bool = True,
    ) -> None:
        """Put a task, after what was said before; the texts of `brief` follow the question.

        With `asks` off the messages hold the question already.
        """
        self._meter, self._plan, self._window = meter, self.compaction or _WHOLE_WINDOW, window_of(meter.model)
        self._room: int | None = None  # the longest prompt that leaves room for a reply
        if self._window is not None:
            reply = meter.max_tokens or meter.model.max_tokens or _REPLY
            self._room = self._window - min(int(reply), self._window // 4)
        limits = self.compaction and self.compaction.threshold_tokens, self._room
        # compaction is `due` beyond so many tokens
        self._limit = self._due = min([limit for limit in limits if limit is not None], default=None)
        self._sizes: dict[str, int] = {}
        task = told_first(self.dialect, tuple(brief)).format_task(problem, tools)
        if self.prompt.messages:
            asked = [m for m in task.messages if m.role != "system"] if asks else []
            task = replace(task, messages=followed(self.earlier(), asked))
        self.prompt = task

    def next_prompt(self) -> Prompt:
        """Return the next request, shortened where it is too long.

        Raises `BudgetSpent` (`window`) where what must stay fills the model's window.
        """
        prompt, plan = self.prompt, self._plan
        if not self.turns:  # uncounted: counting would load a local model before anybody is told that it loads
            return prompt
        self._sizes.clear()
        long, many = self._due is not None and self._size(prompt) > self._due, self._many(prompt)
        if not (long or many):
            return prompt
        policy: Policy = "window" if many and plan.policy == "drop_outputs" else plan.policy
        after, fallback = None, None
        if policy == "summary":
            try:
                after = self._summarised(long)
            except Diverged:
                raise
            except (ModelError, BudgetSpent) as error:
                fallback = f"no summary: {error}"
            policy = "window" if after is None else policy
        after = after or self._fitting(policy, long)
        self._record(after, policy, fallback, "tokens" if long else "messages")
        if self._window is not None and self._size(after) >= self._window:
            raise BudgetSpent("window", f"the messages fill the model's window of {self._window} tokens")
        self.prompt = after
        return after

    def add(self, turn: Turn) -> Turn:
        """Show a turn to the model from now on; return it with results clipped to what is left of the window."""
        if self._room is not None and turn.answer is None:
            turn = self._clipped(turn, self._room)
        self.turns.append(turn)
        self.number = max(self.number, turn.index)
        self.prompt += self.dialect.format_turn(turn)
        return turn

    def earlier(self) -> tuple[Message, ...]:
        """The messages so far, for a question that follows; a text that was the answer has no result to be told of."""
        messages = self.prompt.messages
        last = self.turns[-1] if self.turns else None
        if last is None or not last.actions or not all(isinstance(action, Answer) for action in last.actions):
            return messages
        ends = messages[-1].role == "user" and messages[-1].turn == last.index
        return messages[:-1] if ends else messages

    def _clipped(self, turn: Turn, room: int) -> Turn:
        """Return the turn, with shorter observations where even it alone does not fit; the model is told.

        Results of a recorded run were clipped when it was made.
        """
        for _ in range(0 if self._meter.model.immediate else _TRIES):
            grown = self.prompt + self.dialect.format_turn(turn)
            over = self._size(compaction.without_turns(grown, {turn.index})) - room
            longest = max(turn.observations, key=lambda o: len(o.text), default=None)
            if over <= 0 or longest is None or len(longest.text) <= compaction.LEAST:
                break
            clipped = (compaction.shorter(o, over) if o is longest else o for o in turn.observations)
            turn = replace(turn, observations=tuple(clipped))
        return turn

    def _summarised(self, long: bool) -> Prompt | None:
        """Return the prompt with a summary, `None` where no turn can go; raises where the model gives no summary."""
        most, there = self._plan.summary_tokens, turns_in(self.prompt)
        kept = set(turns_in(self._fitting("window", long, reserve=most)))
        dropped = [turn for turn in there if turn not in kept]
        if not dropped:
            return None
        apart = self._meter.scoped(self._meter.node, purpose="compaction", max_tokens=most)
        reply = apart.complete(compaction.summary_request(self.prompt, dropped, words=most * 3 // 5), turn=there[-1])
        text = " ".join(without_reasoning(reply.text).split())
        if not text or reply.finish_reason in ("content_filter", "error"):
            raise ModelError("the reply was empty or withheld")
        return compaction.without_turns(self.prompt, kept, summary=text + (" ..." if reply.cut_off else ""))

    def _fitting(self, policy: Policy, long: bool, reserve: int = 0) -> Prompt:
        """Return the shorter prompt that keeps the most turns within the limits, else the one that keeps the least.

        A turn whose answer still waits to be confirmed stays.
        """
        after, plan, there = self.prompt, self._plan, turns_in(self.prompt)
        pending = [t.index for t in self.turns if t.pending is not None][-1:]
        shorten = compaction.without_outputs if policy == "drop_outputs" else compaction.without_turns
        few = long or plan.policy == "summary"  # a call a turn would be the price of leaving out one at a time
        for count in range(min(plan.keep_turns, len(there)) if few else len(there), 0, -1):
            after = shorten(self.prompt, {*there[-count:], *pending})
            if (self._limit is None or self._size(after) + reserve <= self._limit) and not self._many(after):
                break
        return after

    def _many(self, prompt: Prompt) -> bool:
        return self._plan.max_messages is not None and len(prompt.messages) > self._plan.max_messages

    def _record(self, after: Prompt, policy: str, fallback: str | None, due: str) -> None:
        """Write the event; where even this is over the threshold, set the length at which the next one is due."""
        before, limit, tokens, over = self.prompt, self._limit, None, self._many(after)
        if limit is not None:
            tokens, self._due = self._size(after), limit
            if tokens > limit:
                self._due, over = tokens + limit // 2, True
        then, now = ({t: [m for m in p.messages if m.turn == t] for t in turns_in(p)} for p in (before, after))
        self._meter.record(
            "compaction",
            messages_before=len(before.messages),
            messages=len(after.messages),
            shortened=[t for t in now if now[t] != then[t]],
            left_out=[t for t in then if t not in now],
            tokens_before=self._sizes.get(before.digest),
            tokens=tokens,
            sizes=dict(self._sizes),
            policy=policy,
            asked=self._plan.policy,
            due=due,
            fallback=fallback,
            over=over,
        )

    def _size(self, prompt: Prompt) -> int:
        """Return the tokens by the model's own tokenizer, else estimated; each prompt is counted once."""
        name = prompt.digest
        if name not in self._sizes:
            self._sizes[name] = self._meter.model.prompt_tokens(prompt)
        return self._sizes[name]


def followed(messages: Sequence[Message], asked: Sequence[Message]) -> tuple[Message, ...]:
    """The messages and a question after them, as part of the latest turn.

    It is put into the last message where that is the user's too, since some templates refuse two users in a row.
    """
    before, rest = list(messages), list(asked)
    last = max((m.turn for m in before), default=0)
    if before and rest and before[-1].role == rest[0].role == "user":
        spans = list(rest.pop(0).spans)
        spans[:1] = [Span("\n\n" + spans[0].text, spans[0].cause)] if spans else []
        before[-1] = replace(before[-1], spans=(*before[-1].spans, *spans))
    return (*before, *(replace(m, turn=last) for m in rest))

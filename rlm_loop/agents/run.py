"""The loop: one question under way, until an answer, a limit, or somebody else's fault.

A session, a retry, a sub-call, a replay and a fork make further `Run`s; they change no loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from rlm_loop.accounting.budget import BudgetSpent
from rlm_loop.accounting.call_tree import PATIENCE
from rlm_loop.actions import Action, CallTool, FinalAnswer, Malformed, Note, RunCode
from rlm_loop.agents.conversation import Conversation
from rlm_loop.agents.environment import Environment
from rlm_loop.agents.meter import Meter
from rlm_loop.agents.stopping import stop_reason
from rlm_loop.dialects.reader import is_prose, without_reasoning
from rlm_loop.outcome import Outcome, Stop, Turn
from rlm_loop.tasks.base import Task
from rlm_loop.tools.function import describe
from rlm_loop.tools.hooks import NO_HOOKS
from rlm_loop.traces.trace import TraceError


@dataclass
class Run:
    """A question under way: `conversation` speaks, `environment` acts, and `meter` is the only way to a model."""

    task: Task
    conversation: Conversation
    environment: Environment
    meter: Meter
    turns: list[Turn] = field(default_factory=list[Turn])
    began: float = 0.0
    """Seconds on the account's clock when this run began; a sub-agent begins later than the whole."""
    outcome: Outcome | None = None
    """The outcome, once the run is over."""

    def solve(self) -> Outcome:
        """Take turns until there is an answer or a limit is reached.

        Raises `Interrupted` on Ctrl-C, and what a model or we are at fault for, with `outcome`, `usage`, `trace` and
        `partial_answer` set on it.
        """
        try:
            stop, reason = self._take_turns()
            return self.finish(stop, reason, self.environment.collect(self.task.collect))
        except KeyboardInterrupt:
            raise Interrupted(self.finish(Stop.INTERRUPTED, "interrupted", self.environment.patch_so_far())) from None
        except Exception as error:
            done = self.finish(Stop.FAILED, describe(error), self.environment.patch_so_far())
            vars(error).update(outcome=done, usage=done.usage, trace=done.trace, partial_answer=done.answer)
            raise

    def _take_turns(self) -> tuple[Stop, str]:
        try:
            while (over := stop_reason(self.turns, self.meter.account)) is None:
                self.step()
            return over
        except BudgetSpent as spent:
            return Stop(spent.kind), spent.reason

    def step(self) -> None:
        """Take one turn: ask, read the reply, act, record, show what came of it."""
        meter, number = self.meter, self.conversation.number + 1
        began = meter.account.seconds
        self._tell("on_step_start", turn_index=number)
        prompt = self.conversation.next_prompt()
        reply = meter.complete(prompt, turn=number)  # billed before it is read
        actions = tuple(self.conversation.dialect.parse_reply(reply, self.environment.tools))
        observations = self.environment.perform(actions)
        turn = self.conversation.add(Turn(number, reply, actions, observations, meter.account.seconds - began))
        self.turns.append(turn)
        done = {"actions": actions, "observations": turn.observations, "seconds": turn.seconds}
        meter.record("turn", **done, spent=meter.account.spent, steps_remaining=self._steps_left())
        if self.environment.interrupted:  # a turn that Ctrl-C ends is a turn too
            raise KeyboardInterrupt
        self._tell("on_step_end", turn=turn)

    def finish(self, stop: Stop, reason: str, artifact: Any) -> Outcome:
        """The outcome of the turns so far, and its event in the trace.

        Raises `Cancelled` for a sub-agent that nobody waits for any more.
        """
        meter, account, place = self.meter, self.meter.account, self.environment
        meter.node.scope.check()
        left = account.seconds_left()  # calls of sub-calls are not waited for beyond the run's limit
        meter.node.end_children(None if left is None else min(left, PATIENCE))
        best = best_answer(self.turns)
        outcome = Outcome(
            answer=None if best is None else best.value,
            stop=stop,
            turns=tuple(self.turns),
            usage=meter.ledger.usage_of(meter.node.path) if meter.node.depth else meter.ledger.usage,
            ledger=meter.ledger,
            artifact=artifact,
            answer_form=None if best is None else best.form,
            evidence=place.evidence,
            over_budget=account.over(),
            reason=reason,
            seconds=account.seconds - self.began,
            working_seconds=max(0.0, account.working_seconds - self.began),
            trace=meter.trace.path,
            run=meter.trace.run,
            question=self.task.question,
            model=meter.model.name,
            agent=self.conversation.dialect.name,
            isolation=place.isolation,
            unfinished=meter.unfinished,
        )
        try:
            record_end(outcome, meter)
        except TraceError as error:  # the trace's disk is full, say: what was done is not lost with it
            if stop not in (Stop.FAILED, Stop.INTERRUPTED):
                raise
            outcome = replace(outcome, notes=(f"the trace has no end: {error}",))
        self.outcome = outcome
        if not meter.node.depth and meter.hooks is not NO_HOOKS:
            meter.hooks.notify("on_run_end", outcome=outcome)
        return outcome

    def _steps_left(self) -> int | None:
        """Turns that this run may still take; `None` without a limit."""
        steps = self.meter.account.budget.steps
        return None if steps is None else max(0, int(steps) - len(self.turns))

    def _tell(self, event: str, **values: Any) -> None:
        if self.meter.hooks is not NO_HOOKS:
            where = {"node": self.meter.node.path, "steps_remaining": self._steps_left()}
            self.meter.hooks.notify(event, **values, **where)


class Interrupted(KeyboardInterrupt):
    """The user interrupted a run; `outcome` holds what was done until then."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__("the run was interrupted; .outcome holds what was done until then")
        self.outcome = outcome

    def _render_traceback_(self) -> list[str]:
        """Return the one line that IPython shows."""
        done = f"interrupted after {self.outcome.steps} turn{'' if self.outcome.steps == 1 else 's'}"
        notes = getattr(self, "__notes__", ["what was done is in sys.last_value.outcome"])
        return [f"Interrupted: {'; '.join([done, *notes])}"]


def best_answer(turns: Sequence[Turn]) -> FinalAnswer | None:
    """The answer given; else the last pending one; else the last reply that is prose and asked for nothing.

    Code and calls of an unfinished turn are no answer: they are in `Outcome.last_reply`.
    """
    if turns and (given := turns[-1].answer) is not None:
        return given
    texts = (without_reasoning(t.reply.text).strip() for t in reversed(turns) if not any(map(_no_answer, t.actions)))
    prose = (FinalAnswer(text) for text in texts if is_prose(text))
    pending = (turn.pending for turn in reversed(turns) if turn.pending is not None)
    return next(chain(pending, prose), None)


def _no_answer(action: Action) -> bool:
    """True for an action that acts, or that says that there is no answer."""
    gives_up = isinstance(action, Malformed) and (Note.REFUSAL in action.notes or Note.BLOCKED in action.notes)
    return gives_up or isinstance(action, (RunCode, CallTool))


#: The facts of an outcome that its event has.
_AT_END = ("stop", "reason", "answer", "answer_form", "artifact", "usage", "over_budget", "steps", "isolation")


def record_end(outcome: Outcome, meter: Meter) -> None:
    """Write the event of the end of a run."""
    facts = {name: getattr(outcome, name) for name in (*_AT_END, "seconds", "working_seconds")}
    meter.trace.record("run_end", node=meter.node.path, depth=meter.node.depth, **facts)

"""Several attempts at one task on one account: each a node of the call tree, its calls and events kept apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from rlm_loop.accounting.budget import Budget
from rlm_loop.accounting.ledger import Ledger
from rlm_loop.agents.agent import FirstRequest
from rlm_loop.agents.attempts.checks import Judge, passed_tests, patch_of
from rlm_loop.agents.meter import Meter
from rlm_loop.agents.run import record_end
from rlm_loop.agents.session import Exchange
from rlm_loop.dialects.base import Dialect
from rlm_loop.outcome import Outcome, Stop, Turn
from rlm_loop.repl.text import clip
from rlm_loop.tasks.base import CheckResult, Task

_KEPT = 2000  # characters of a check's feedback in a trace


class Attempting(Protocol):
    """What can make one of several attempts: the agents, and what is put around them."""

    @property
    def name(self) -> str: ...

    def settings(self) -> Mapping[str, Any]: ...

    def limits(self) -> Budget: ...

    def dialect(self) -> Dialect: ...

    def first_request(self, task: Task) -> FirstRequest: ...

    def attempt_on(
        self,
        task: Task,
        meter: Meter,
        *,
        exchange: Exchange | None = None,
        limits: Budget | None = None,
    ) -> Outcome: ...


@dataclass(frozen=True)
class Tried:
    """One attempt: its node, its own outcome (usage and ledger without the others'), and what the check said of it.

    `conversation` are the turns that a model would see that went on with it.
    """

    node: str
    agent: str
    outcome: Outcome
    check: CheckResult | None = None
    conversation: tuple[Turn, ...] = ()

    @property
    def patch(self) -> str:
        return patch_of(self.outcome)

    @property
    def passed(self) -> bool:
        return self.check is not None and self.check.passed

    def about(self) -> dict[str, Any]:
        """The attempt as JSON types, for a result and for the trace."""
        check = self.check
        return {
            "node": self.node,
            "agent": self.agent,
            "model": self.outcome.model,
            "stop": str(self.outcome.stop),
            "steps": self.outcome.steps,
            "input_tokens": self.outcome.usage.input_tokens,
            "output_tokens": self.outcome.usage.output_tokens,
            "patch_characters": len(self.patch),
            "passed": None if check is None else check.passed,
            "tests_passed": passed_tests(check) if check is not None and check.tests else None,
        }


class Attempts:
    """The attempts made so far at `task` by what is called `name`, on the account, ledger and trace of `model`.

    The first of them is given `first`, which says how many turns others took before.
    """

    def __init__(
        self,
        name: str,
        task: Task,
        model: Meter,
        judge: Judge,
        first: Exchange,
    ) -> None:
        self.name, self.task, self.model, self.judge = name, task, model, judge
        self.first = first
        self.tried: list[Tried] = []
        self._calls = len(model.ledger.calls)

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The turns of all attempts, in order."""
        return tuple(turn for one in self.tried for turn in one.outcome.turns)

    def spent(self) -> str | None:
        """Why no further attempt may begin; `None` while one may."""
        steps = self.model.account.budget.steps
        if steps is not None and len(self.turns) >= steps:
            return f"the limit of {steps} steps is reached"
        over = self.model.account.exceeded()
        if over is not None:
            return over[1]
        last = self.tried[-1].outcome if self.tried else None
        # what is left of a limit may not cover even one call, without the limit being reached
        return last.reason if last is not None and not last.usage.calls else None

    def make(self, agent: Attempting, earlier: Exchange | None = None) -> Tried:
        """One more attempt, checked.  What it raises goes on up, with what was done of it kept here."""
        given = replace(earlier or self.first, number=self.first.number + len(self.turns))
        node, trace = self.model.node.attempt(), self.model.trace
        who = {"node": node.path, "depth": node.depth}
        trace.record(
            "attempt_start",
            **who,
            kind="agent",
            agent=agent.name,
            after=given.number,
            patch=trace.text(given.patch),
            handed_over=[turn.index for turn in given.turns],
        )
        node.begin(lambda: None)
        begin = self.model.account.seconds
        outcome: Outcome | None = None
        try:
            outcome = agent.attempt_on(
                self.task,
                replace(self.model, node=node, turn=0),
                exchange=given,
                limits=self._limits(agent),
            )
            one = replace(self._kept(agent, node.path, outcome, given), check=self.judge(self.task, outcome))
            self.tried[-1] = one
        except BaseException as error:
            partial: object = getattr(error, "outcome", None)
            if outcome is None and isinstance(partial, Outcome):
                self._kept(agent, node.path, partial, given)
            kind = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
            told = {"kind": kind, "message": f"{type(error).__name__}: {error}"}
            trace.record("attempt_end", **who, ok=False, error=told, seconds=self.model.account.seconds - begin)
            raise
        finally:
            node.end_children()
            node.over()
        said = None if one.check is None else clip(one.check.feedback, _KEPT)[0]
        seconds = self.model.account.seconds - begin
        trace.record("attempt_end", ok=outcome.answered, seconds=seconds, feedback=said, **{**one.about(), **who})
        return one

    def outcome(self, chosen: Tried | None, *, stop: Stop | None = None, reason: str = "") -> Outcome:
        """The whole: the chosen attempt's answer and patch, and the turns, usage and ledger of all."""
        best = None if chosen is None else chosen.outcome
        account, ledger = self.model.account, Ledger(list(self.model.ledger.calls[self._calls :]))
        oracle = self.judge.oracle
        over = account.exceeded()
        outcome = Outcome(
            answer=None if best is None else best.answer,
            stop=stop or (Stop(over[0]) if best is None and over is not None else best.stop if best else Stop.STEPS),
            turns=self.turns,
            usage=ledger.usage,
            ledger=ledger,
            artifact="" if best is None else best.artifact,
            answer_form=None if best is None else best.answer_form,
            evidence={
                **((best.evidence if best is not None else None) or {}),
                "attempts": [one.about() for one in self.tried],
                "chosen": None if chosen is None else self.tried.index(chosen),
                "check": None if chosen is None or chosen.check is None else chosen.check.passed,
                "oracle": oracle,
                "conversation": [] if chosen is None else [turn.index for turn in chosen.conversation],
            },
            over_budget=account.over(),
            reason=reason or ("" if best is None else best.reason),
            seconds=account.seconds,
            working_seconds=account.working_seconds,
            trace=self.model.trace.path,
            question=self.task.question,
            model=", ".join(dict.fromkeys(one.outcome.model for one in self.tried)),
            agent=self.name,
            notes=("oracle: the task's hidden score judged the attempts",) if oracle else (),
            isolation="" if best is None else best.isolation,
        )
        record_end(outcome, self.model, evidence=outcome.evidence)
        return outcome

    def _limits(self, agent: Attempting) -> Budget:
        """The agent's limits, with no more steps than the whole has left."""
        limits, whole = agent.limits(), self.model.account.budget.steps
        if whole is None:
            return limits
        left = max(0, int(whole) - len(self.turns))
        return replace(limits, steps=left if limits.steps is None else min(left, limits.steps))

    def _kept(self, agent: Attempting, node: str, outcome: Outcome, given: Exchange) -> Tried:
        calls = [c for c in self.model.ledger.calls if c.node == node or c.node.startswith(node + ".")]
        ledger = Ledger(calls)
        there = (*given.turns, *outcome.turns)
        chosen: Sequence[int] | None = (outcome.evidence or {}).get("conversation")
        conversation = there if chosen is None else tuple(turn for turn in there if turn.index in set(chosen))
        one = Tried(node, agent.name, replace(outcome, usage=ledger.usage, ledger=ledger), None, conversation)
        self.tried.append(one)
        return one


def best_of_tried(tried: Sequence[Tried]) -> Tried | None:
    """The first that passed; else the one with the most tests passed, of equals the latest that changed something."""
    if not tried:
        return None
    passed = next((one for one in tried if one.passed), None)
    return passed or max(reversed(tried), key=lambda one: (passed_tests(one.check), bool(one.patch.strip())))

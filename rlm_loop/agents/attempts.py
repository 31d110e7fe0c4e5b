"""Several attempts at a task as one run: try again with what failed (`retry`), or hand on to a stronger model
(`escalate`, as SOFAI does, arXiv 2110.01834).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from rlm_loop.accounting.budget import Account, Budget
from rlm_loop.accounting.ledger import Ledger
from rlm_loop.accounting.limits import NO_LIMITS
from rlm_loop.agents.agent import Agent, FirstRequest, Unasked
from rlm_loop.agents.meter import Meter
from rlm_loop.agents.patches import Check, judged, patch_of, require_check
from rlm_loop.agents.question import with_context
from rlm_loop.agents.record import record_start
from rlm_loop.agents.run import Interrupted, attach, record_end
from rlm_loop.dialects.injectors import Told
from rlm_loop.models.names import Seeded, model_name
from rlm_loop.outcome import Outcome, Stop, Turn
from rlm_loop.repl.contexts.fingerprint import context_fingerprint
from rlm_loop.repl.text import clip
from rlm_loop.tasks.base import CheckResult, Task
from rlm_loop.traces.trace import Trace
from rlm_loop.traces.values import plain
from rlm_loop.workspace import Workspace

#: Start of a further attempt: in a clean checkout (`fresh`), or in one with the best patch so far (`patched`).
Begin = Literal["fresh", "patched"]

_FAILED = "A fix was tried, and the check still fails:\n{feedback}\n{state} Find out why and make it right."
_STATE = {"fresh": "The files are as they were before it.", "patched": "The files hold that fix."}
_FEEDBACK = 2000  # characters of a check's feedback


@dataclass(frozen=True)
class _Tried:
    """An attempt that was made: its own outcome, and the check's verdict."""

    node: str
    agent: str
    outcome: Outcome
    check: CheckResult | None = None

    @property
    def patch(self) -> str:
        return patch_of(self.outcome)

    @property
    def passed(self) -> bool:
        return self.check is not None and self.check.passed

    @property
    def tests_passed(self) -> int:
        return 0 if self.check is None else sum(result == "passed" for result in self.check.tests.values())

    def about(self) -> dict[str, Any]:
        """The attempt as JSON types, for a result and for the trace."""
        outcome, check = self.outcome, self.check
        return {
            "node": self.node,
            "agent": self.agent,
            "model": outcome.model,
            "stop": str(outcome.stop),
            "steps": outcome.steps,
            "passed": None if check is None else check.passed,
            "tests_passed": self.tests_passed if check is not None and check.tests else None,
        }


@dataclass(frozen=True)
class Attempts:
    """Attempts that follow each other until one passes its check; made by `retry` and `escalate`.

    It takes the place of an agent in a study and in `generate_patch`.  `check` judges a checkout (by default the
    task's own visible check); `budget` limits all attempts together, besides each agent's own.
    """

    kind: str
    steps: tuple[tuple[Agent, Begin | None], ...]
    check: Check | None = None
    budget: Budget = NO_LIMITS
    seed: int | None = None

    @property
    def name(self) -> str:
        """Name in tables and traces."""
        return f"{self.kind}({', '.join(dict.fromkeys(agent.name for agent, _ in self.steps))})"

    def agents(self) -> list[Agent]:
        """The agent of each attempt, with the seed and the model that a study gave."""
        return [_with(agent, None, self.seed) for agent, _ in self.steps]

    def settings(self) -> dict[str, Any]:
        """The settings that identify it, as JSON types: those of its agents, and how the attempts follow each other."""
        made = [
            {"agent": agent.settings(), "model": model_name(agent.model), "begin": begin}
            for agent, (_, begin) in zip(self.agents(), self.steps, strict=True)
        ]
        check = getattr(self.check, "__qualname__", None) or plain(self.check)
        return {"agent": self.kind, "attempts": made, "check": check, "budget": plain(self.budget)}

    def first_request(self, task: Task) -> FirstRequest:
        """The first request of the first agent; no model is called."""
        return self.agents()[0].first_request(task)

    def attempt(self, task: Task, *, trace: str | Path | Trace | None = None) -> Outcome:
        """Work on a task.  The outcome covers all attempts; its patch and answer are those of the best attempt.

        Raises as an agent's `attempt` does, with the outcome of all attempts, and `ValueError` where the task has no
        check to judge an attempt by.
        """
        require_check(task, self.check)
        task = with_context(task)
        record = trace.for_run() if isinstance(trace, Trace) else Trace(trace)
        names = ", ".join(dict.fromkeys(model_name(agent.model) for agent in self.agents()))
        nobody = Unasked(names, f"{names} stands for the models of several attempts and cannot be asked")
        meter = Meter(nobody, Account(self.budget, price=(0.0, 0.0)), Ledger(), record)  # each attempt has its price
        try:
            about = self.settings(), names, self.budget, context_fingerprint(task.context)
            record_start(record, task, self.name, *about)
            return self._run(task, meter)
        finally:
            if not isinstance(trace, Trace):
                record.close()

    def _run(self, task: Task, meter: Meter) -> Outcome:
        tried: list[_Tried] = []
        reason = ""
        try:
            for agent, (_, begin) in zip(self.agents(), self.steps, strict=True):
                if tried and (tried[-1].passed or (reason := _spent(meter, tried))):
                    break
                self._attempt(agent, begin, task, meter, tried)
        except KeyboardInterrupt:
            raise Interrupted(self._outcome(task, meter, tried, Stop.INTERRUPTED, "interrupted")) from None
        except Exception as error:
            attach(error, self._outcome(task, meter, tried, Stop.FAILED, f"{type(error).__name__}: {error}"))
            raise
        return self._outcome(task, meter, tried, None, reason)

    def _attempt(self, agent: Agent, begin: Begin | None, task: Task, meter: Meter, tried: list[_Tried]) -> None:
        """Make one attempt as a node of the call tree, judge it, and add it to `tried`, also where it breaks off."""
        told: tuple[Told, ...] = ()
        put, number = task, len(_turns(tried))
        if tried and begin is not None:
            before = best_of(tried)
            told = (_what_failed(before, begin),)
            if begin == "patched" and task.workspace is not None:
                put = replace(task, workspace=_patched(task.workspace, before.patch))
        node, trace, began = meter.node.attempt(), meter.trace, meter.account.seconds
        who = {"node": node.path, "depth": node.depth}
        trace.record("attempt_start", **who, kind="agent", agent=agent.name, after=number)
        node.begin(lambda: None)

        def keep(outcome: Outcome) -> _Tried:
            ledger = Ledger([c for c in meter.ledger.calls if f"{c.node}.".startswith(f"{node.path}.")])
            tried.append(_Tried(node.path, agent.name, replace(outcome, usage=ledger.usage, ledger=ledger)))
            return tried[-1]

        ended: dict[str, Any] = {"ok": False}
        try:
            limited = replace(agent, budget=_left(agent.budget, meter, number))
            one = keep(limited.attempt_on(put, replace(meter, node=node, turn=number), told))
            check = judged(task, self.check, one.outcome)
            one = tried[-1] = replace(one, check=check)
            feedback = clip(check.feedback, _FEEDBACK)[0]
            ended = {**one.about(), "ok": one.outcome.answered, "feedback": feedback}
        except BaseException as error:
            partial: object = getattr(error, "outcome", None)
            if isinstance(partial, Outcome):
                keep(partial)
            kind = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
            ended["error"] = {"kind": kind, "message": f"{type(error).__name__}: {error}"}
            raise
        finally:
            node.end_children()
            node.over()
            trace.record("attempt_end", **{**ended, **who}, seconds=meter.account.seconds - began)

    def _outcome(self, task: Task, meter: Meter, tried: list[_Tried], stop: Stop | None, reason: str) -> Outcome:
        """All attempts as one: turns, usage and ledger of all; answer and patch of the best one.

        Where `stop` says that they broke off, that is the latest one with a patch.
        """
        chosen = best_of(tried) if stop is None else next((t for t in reversed(tried) if t.patch.strip()), None)
        chosen = chosen or (tried[-1] if tried else None)
        account = meter.account
        best = Outcome(None, Stop.FAILED, (), meter.ledger.usage, meter.ledger) if chosen is None else chosen.outcome
        outcome = replace(
            best,
            stop=stop or best.stop,
            turns=_turns(tried),
            usage=meter.ledger.usage,
            ledger=meter.ledger,
            artifact="" if chosen is None else best.artifact,
            evidence={
                **(best.evidence or {}),
                "attempts": [one.about() for one in tried],
                "chosen": None if chosen is None else tried.index(chosen),
                "check": None if chosen is None or chosen.check is None else chosen.check.passed,
            },
            over_budget=account.over(),
            reason=reason or best.reason,
            seconds=account.seconds,
            working_seconds=account.working_seconds,
            trace=meter.trace.path,
            question=task.question,
            model=", ".join(dict.fromkeys(one.outcome.model for one in tried)),
            agent=self.name,
        )
        record_end(outcome, meter, evidence=outcome.evidence)
        return outcome


@dataclass(frozen=True)
class Retry(Attempts):
    """Attempts of one agent; `model` takes the place of the agent's, as a study's does."""

    model: Any = None

    def agents(self) -> list[Agent]:
        return [_with(agent, self.model, self.seed) for agent, _ in self.steps]


def retry(
    agent: Agent, times: int = 1, *, check: Check | None = None, budget: Budget = NO_LIMITS, begin: Begin = "patched"
) -> Attempts:
    """Up to `times` further attempts, each told the check's feedback on the best one so far, until one passes.

    The best is the first that passed, else the one with the most tests passed, else the last that changed something.
    """
    if times < 0 or begin not in _STATE:
        raise ValueError('times must be 0 or more, and begin "fresh" or "patched"')
    again: tuple[Agent, Begin | None] = (agent, begin)
    return Retry("retry", ((agent, None), *[again] * times), check, budget, model=agent.model)


def escalate(
    fast: Agent | Attempts,
    strong: Agent,
    *,
    check: Check | None = None,
    budget: Budget = NO_LIMITS,
    begin: Begin | None = None,
) -> Attempts:
    """Let the fast agent (or its attempts) try first, and the strong one where no attempt passed the check.

    Without `begin` the strong agent starts as if nobody had tried; else it is told what failed, as in `retry`.
    """
    if begin is not None and begin not in _STATE:
        raise ValueError('begin must be None, "fresh" or "patched"')
    if isinstance(fast, Attempts) and (fast.check is not None or fast.budget != NO_LIMITS):
        raise ValueError("give check= and budget= to escalate: they hold for all of its attempts")
    earlier = fast.steps if isinstance(fast, Attempts) else ((fast, None),)
    return Attempts("escalate", (*earlier, (strong, begin)), check, budget)


def best_of(tried: Sequence[_Tried]) -> _Tried:
    """The first that passed; else the one with the most tests passed, of equals the latest that changed something."""
    passed = next((one for one in tried if one.passed), None)
    return passed or max(reversed(tried), key=lambda one: (one.tests_passed, bool(one.patch.strip())))


def _what_failed(before: _Tried, begin: Begin) -> Told:
    feedback = "" if before.check is None else before.check.feedback.strip()
    text = _FAILED.replace("{state}", _STATE[begin if before.patch.strip() else "fresh"])
    return Told(text.replace("{feedback}", clip(feedback or "(it does not say why)", _FEEDBACK)[0]), "repair")


def _patched(make: Callable[[], Workspace], patch: str) -> Callable[[], Workspace]:
    def opened() -> Workspace:
        space = make()
        try:
            space.apply(patch)
        except BaseException:
            space.close()
            raise
        return space

    return opened


def _turns(tried: Sequence[_Tried]) -> tuple[Turn, ...]:
    return tuple(turn for one in tried for turn in one.outcome.turns)


def _spent(meter: Meter, tried: Sequence[_Tried]) -> str:
    """The reason why no further attempt may begin; empty without one."""
    steps = meter.account.budget.steps
    if steps is not None and len(_turns(tried)) >= steps:
        return f"the limit of {steps} steps is reached"
    if (over := meter.account.exceeded()) is not None:
        return over[1]
    last = tried[-1].outcome  # a limit may not cover even one call, without being reached
    return last.reason if not last.usage.calls else ""


def _left(limits: Budget, meter: Meter, taken: int) -> Budget:
    """The limits of an agent, with no more steps than all attempts have left."""
    whole = meter.account.budget.steps
    if whole is None:
        return limits
    left = max(0, int(whole) - taken)
    return replace(limits, steps=left if limits.steps is None else min(left, limits.steps))


def _with(agent: Agent, model: Any, seed: int | None) -> Agent:
    """The agent with another model; a model that is named gets the seed."""
    model = agent.model if model is None else model
    if seed is not None and isinstance(model, str):
        model = Seeded(model, seed)
    return agent if model is agent.model else replace(agent, model=model)

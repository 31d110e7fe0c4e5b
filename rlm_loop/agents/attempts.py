"""Several attempts at a task as one run: try again with what failed (`retry`), or hand on to a stronger model
(`escalate`, as SOFAI does, arXiv 2110.01834).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from rlm_loop.accounting.budget import Account, Budget
from rlm_loop.accounting.ledger import Ledger
from rlm_loop.accounting.limits import NO_LIMITS
from rlm_loop.actions import RunCode
from rlm_loop.agents.agent import Agent, FirstRequest, Unasked
from rlm_loop.agents.meter import Meter
from rlm_loop.agents.patches import Check, Judge, patch_of
from rlm_loop.agents.question import with_context
from rlm_loop.agents.record import record_start
from rlm_loop.agents.run import Interrupted, attach, record_end
from rlm_loop.agents.session import Exchange
from rlm_loop.dialects.base import Dialect
from rlm_loop.dialects.injectors import Injected
from rlm_loop.models.names import Seeded, model_name
from rlm_loop.outcome import Outcome, Stop, Turn
from rlm_loop.repl.contexts.fingerprint import context_fingerprint
from rlm_loop.repl.text import clip
from rlm_loop.tasks.base import CheckResult, Task
from rlm_loop.traces.trace import Trace
from rlm_loop.traces.values import plain

#: Start of a further attempt: in a clean checkout (`fresh`), in one with the old patch (`patched`), or with the old
#: patch and the old conversation (`continue`).
Begin = Literal["fresh", "patched", "continue"]
HandOver = Literal["fresh", "continue", "best"]

_STATE: dict[str, str] = {
    "fresh": "The files are as they were before it.",
    "patched": "The files hold that fix.",
    "continue": "The files are as you left them.",
}
_NEW_REPL = " The REPL was started anew: its variables are gone."
_KEPT = 2000  # characters of a check's feedback in a trace


@dataclass(frozen=True)
class RepairTemplate:
    """`text` with `{feedback}` (`limit` characters of the check's feedback at most) and `{state}` (of the files)."""

    text: str = "A fix was tried, and the check still fails:\n{feedback}\n{state} Find out why and make it right."
    limit: int = 2000

    def __post_init__(self) -> None:
        if self.limit < 1 or "{feedback}" not in self.text:
            raise ValueError("a repair template needs {feedback} in its text and a limit of 1 character or more")

    def exchange(self, begin: Begin, before: _Tried) -> Exchange:
        """The start of an attempt that follows another."""
        goes_on, turns = begin == "continue", before.conversation
        state = _STATE[begin if before.patch.strip() or goes_on else "fresh"]
        if goes_on and any(isinstance(action, RunCode) for turn in turns for action in turn.actions):
            state += _NEW_REPL
        feedback = "" if before.check is None else before.check.feedback.strip()
        text = self.text.replace("{state}", state)
        text = text.replace("{feedback}", clip(feedback or "(it does not say why)", self.limit)[0])
        return Exchange(turns=turns if goes_on else (), text=text, patch="" if begin == "fresh" else before.patch)


@dataclass(frozen=True)
class _Step:
    """An attempt to make by `agent`, after the latest or the `best` one; without `begin` it is told nothing."""

    agent: Agent
    begin: Begin | None = None
    best: bool = False


@dataclass(frozen=True)
class _Tried:
    """An attempt that was made: its own outcome, the check's verdict, and the turns that a model would see after it."""

    node: str
    agent: str
    outcome: Outcome
    conversation: tuple[Turn, ...]
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
            "input_tokens": outcome.usage.input_tokens,
            "output_tokens": outcome.usage.output_tokens,
            "patch_characters": len(self.patch),
            "passed": None if check is None else check.passed,
            "tests_passed": self.tests_passed if check is not None and check.tests else None,
        }


@dataclass(frozen=True)
class Attempts:
    """Attempts that follow each other until one passes its check; made by `retry` and `escalate`.

    It takes the place of an agent in a study and in `generate_patch`.  `check` judges a checkout (by default the
    task's own visible check); `oracle` lets the task's hidden score judge, and is recorded.  `budget` limits all
    attempts together, besides each agent's own.
    """

    kind: str
    steps: tuple[_Step, ...]
    check: Check | None = None
    oracle: bool = False
    budget: Budget | None = None
    template: RepairTemplate = field(default_factory=RepairTemplate)
    seed: int | None = None

    def __post_init__(self) -> None:
        self._judge()

    @property
    def name(self) -> str:
        """Name in tables and traces."""
        return f"{self.kind}({', '.join(dict.fromkeys(agent.name for agent in self.agents()))})"

    def agents(self) -> list[Agent]:
        """The agent of each attempt, with the seed and the model that a study gave."""
        return [_with(step.agent, seed=self.seed) for step in self.steps]

    def limits(self) -> Budget:
        """The limits of all attempts together."""
        return self.budget or NO_LIMITS

    def dialect(self) -> Dialect:
        """The dialect of the last agent."""
        return self.agents()[-1].dialect()

    def settings(self) -> dict[str, Any]:
        """The settings that identify it, as JSON types: those of its agents, and how the attempts follow each other."""
        made = [
            {"agent": agent.settings(), "model": model_name(agent.model), "begin": step.begin, "best": step.best}
            for agent, step in zip(self.agents(), self.steps, strict=True)
        ]
        judged = self._judge().settings()
        template, budget = plain(self.template), plain(self.limits())
        return {"agent": self.kind, "attempts": made, "template": template, **judged, "budget": budget}

    def first_request(self, task: Task) -> FirstRequest:
        """The first request of the first agent; no model is called."""
        return self.agents()[0].first_request(task)

    def attempt(self, task: Task, *, trace: str | Path | Trace | None = None) -> Outcome:
        """Work on a task.  The outcome covers all attempts; its patch and answer are those of the chosen attempt.

        Raises as an agent's `attempt` does, with the outcome of all attempts, and `ValueError` where the task gives
        nothing to judge an attempt by.
        """
        self._judge().ready(task)
        task = with_context(task)
        record = trace.for_run() if isinstance(trace, Trace) else Trace(trace)
        try:
            names = ", ".join(dict.fromkeys(model_name(agent.model) for agent in self.agents()))
            nobody = Unasked(names, f"{names} stands for the models of several attempts and cannot be asked")
            account = Account(self.limits(), price=(0.0, 0.0))  # each attempt has its model's own price
            context = context_fingerprint(task.context)
            record_start(record, task, self.name, self.settings(), names, self.limits(), context)
            return self._run(task, Meter(nobody, account, Ledger(), record))
        finally:
            if not isinstance(trace, Trace):
                record.close()

    def _judge(self) -> Judge:
        return Judge(self.check, self.oracle)

    def _run(self, task: Task, meter: Meter) -> Outcome:
        tried: list[_Tried] = []
        reason = ""
        try:
            for step, agent in zip(self.steps, self.agents(), strict=True):
                if tried and tried[-1].passed:
                    break
                if tried and (reason := _spent(meter, tried) or ""):
                    break
                given = Exchange()
                if tried and step.begin is not None:
                    before = best_of(tried) if step.best else tried[-1]
                    given = self.template.exchange(step.begin, before)
                _attempt(agent, task, meter, self._judge(), given, tried)
        except KeyboardInterrupt:
            raise Interrupted(self._outcome(task, meter, tried, Stop.INTERRUPTED, "interrupted")) from None
        except Exception as error:
            attach(error, self._outcome(task, meter, tried, Stop.FAILED, f"{type(error).__name__}: {error}"))
            raise
        return self._outcome(task, meter, tried, None, reason)

    def _outcome(self, task: Task, meter: Meter, tried: list[_Tried], stop: Stop | None, reason: str) -> Outcome:
        """All attempts as one: turns, usage and ledger of all; answer and patch of the chosen one.

        Where `stop` says that they broke off, that is the latest one with a patch.
        """
        chosen = best_of(tried) if stop is None else next((t for t in reversed(tried) if t.patch.strip()), None)
        chosen = chosen or (tried[-1] if tried else None)
        account, base = meter.account, Outcome(None, Stop.FAILED, (), meter.ledger.usage, meter.ledger)
        best = base if chosen is None else chosen.outcome
        evidence = {
            **(best.evidence or {}),
            "attempts": [one.about() for one in tried],
            "chosen": None if chosen is None else tried.index(chosen),
            "check": None if chosen is None or chosen.check is None else chosen.check.passed,
            "oracle": self.oracle,
        }
        outcome = replace(
            base,
            answer=best.answer,
            stop=stop or best.stop,
            turns=_turns(tried),
            artifact="" if chosen is None else best.artifact,
            answer_form=best.answer_form,
            evidence=evidence,
            over_budget=account.over(),
            reason=reason or best.reason,
            seconds=account.seconds,
            working_seconds=account.working_seconds,
            trace=meter.trace.path,
            question=task.question,
            model=", ".join(dict.fromkeys(one.outcome.model for one in tried)),
            agent=self.name,
            notes=("oracle: the task's hidden score judged the attempts",) if self.oracle else (),
            isolation=best.isolation,
        )
        record_end(outcome, meter, evidence=outcome.evidence)
        return outcome


@dataclass(frozen=True)
class Retry(Attempts):
    """Attempts of one agent; `model` takes the place of the agent's, as a study's does."""

    model: Any = None

    def agents(self) -> list[Agent]:
        return [_with(agent, model=self.model, seed=self.seed) for agent in (step.agent for step in self.steps)]


def retry(
    agent: Agent,
    times: int = 1,
    *,
    check: Check | None = None,
    oracle: bool = False,
    budget: Budget | None = None,
    begin: Begin = "patched",
    template: RepairTemplate | None = None,
) -> Attempts:
    """Up to `times` further attempts, each told the check's feedback on the one before, until one passes.

    `begin` is their start: `fresh` in a clean checkout, `patched` in one with the old patch (both in a new
    conversation), `continue` with the old conversation and the old patch.  The chosen attempt is the first that
    passed, else the one with the most tests passed, else the last that changed something.
    """
    if times < 0 or begin not in ("fresh", "patched", "continue"):
        raise ValueError('times must be 0 or more, and begin "fresh", "patched" or "continue"')
    steps = (_Step(agent), *[_Step(agent, begin)] * times)
    return Retry("retry", steps, check, oracle, budget, template or RepairTemplate(), model=agent.model)


def escalate(
    fast: Agent | Attempts,
    strong: Agent,
    hand_over: HandOver = "fresh",
    *,
    check: Check | None = None,
    oracle: bool = False,
    budget: Budget | None = None,
    template: RepairTemplate | None = None,
) -> Attempts:
    """Make one attempt of `fast` (several: `escalate(retry(fast, 2), strong)`); where none passes, one of `strong`.

    `hand_over`: `fresh` tells the strong model nothing; `continue` lets it go on in the same conversation and files,
    with the check's feedback; `best` gives it a new conversation, the files with the best patch, and the feedback.
    """
    if hand_over not in ("fresh", "continue", "best"):
        raise ValueError(f'hand_over must be "fresh", "continue" or "best", got {hand_over!r}')
    earlier = fast.steps if isinstance(fast, Attempts) else (_Step(fast),)
    if isinstance(fast, Attempts) and (fast.check or fast.oracle or fast.budget):
        raise ValueError("give check=, oracle= and budget= to escalate: they hold for all of its attempts")
    last = earlier[-1].agent
    if hand_over == "continue" and type(_inner(last.dialect())) is not type(_inner(strong.dialect())):
        raise ValueError(f'hand_over="continue" needs two agents that speak alike, not {last.name} and {strong.name}')
    begin: Mapping[str, Begin | None] = {"fresh": None, "continue": "continue", "best": "patched"}
    steps = (*earlier, _Step(strong, begin[hand_over], best=True))
    return Attempts("escalate", steps, check, oracle, budget, template or RepairTemplate())


def best_of(tried: Sequence[_Tried]) -> _Tried:
    """The first that passed; else the one with the most tests passed, of equals the latest that changed something."""
    passed = next((one for one in tried if one.passed), None)
    return passed or max(reversed(tried), key=lambda one: (one.tests_passed, bool(one.patch.strip())))


def _attempt(agent: Agent, task: Task, meter: Meter, judge: Judge, given: Exchange, tried: list[_Tried]) -> None:
    """Make one attempt as a node of the call tree, judge it, and add it to `tried`, also where it breaks off."""
    given = replace(given, number=len(_turns(tried)))
    node, trace, begin = meter.node.attempt(), meter.trace, meter.account.seconds
    who = {"node": node.path, "depth": node.depth}
    about = {"agent": agent.name, "after": given.number, "patch": trace.text(given.patch)}
    trace.record("attempt_start", **who, kind="agent", **about, handed_over=[t.index for t in given.turns])
    node.begin(lambda: None)

    def keep(outcome: Outcome) -> _Tried:
        calls = [c for c in meter.ledger.calls if c.node == node.path or c.node.startswith(node.path + ".")]
        ledger = Ledger(calls)
        outcome = replace(outcome, usage=ledger.usage, ledger=ledger)
        tried.append(_Tried(node.path, agent.name, outcome, (*given.turns, *outcome.turns)))
        return tried[-1]

    try:
        inner = replace(meter, node=node, turn=0)
        outcome = agent.attempt_on(task, inner, exchange=given, limits=_left(agent.budget, meter, tried))
        keep(outcome)
        tried[-1] = one = replace(tried[-1], check=judge(task, outcome))
    except BaseException as error:
        partial: object = getattr(error, "outcome", None)
        if isinstance(partial, Outcome):
            keep(partial)
        kind = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
        failure = {"kind": kind, "message": f"{type(error).__name__}: {error}"}
        trace.record("attempt_end", **who, ok=False, error=failure, seconds=meter.account.seconds - begin)
        raise
    finally:
        node.end_children()
        node.over()
    feedback = None if one.check is None else clip(one.check.feedback, _KEPT)[0]
    seconds = meter.account.seconds - begin
    trace.record("attempt_end", ok=outcome.answered, seconds=seconds, feedback=feedback, **{**one.about(), **who})


def _turns(tried: Sequence[_Tried]) -> tuple[Turn, ...]:
    return tuple(turn for one in tried for turn in one.outcome.turns)


def _spent(meter: Meter, tried: Sequence[_Tried]) -> str | None:
    """The reason why no further attempt may begin, or `None`."""
    steps = meter.account.budget.steps
    if steps is not None and len(_turns(tried)) >= steps:
        return f"the limit of {steps} steps is reached"
    if (over := meter.account.exceeded()) is not None:
        return over[1]
    last = tried[-1].outcome  # a limit may not cover even one call, without being reached
    return last.reason if not last.usage.calls else None


def _left(limits: Budget, meter: Meter, tried: Sequence[_Tried]) -> Budget:
    """The limits of an agent, with no more steps than all attempts have left."""
    whole = meter.account.budget.steps
    if whole is None:
        return limits
    left = max(0, int(whole) - len(_turns(tried)))
    return replace(limits, steps=left if limits.steps is None else min(left, limits.steps))


def _with(agent: Agent, *, model: Any = None, seed: int | None = None) -> Agent:
    """The agent with another model; a model that is named gets the seed."""
    model = agent.model if model is None else model
    if seed is not None and isinstance(model, str):
        model = Seeded(model, seed)
    return agent if model is agent.model else replace(agent, model=model)


def _inner(dialect: Dialect) -> Dialect:
    return _inner(dialect.dialect) if isinstance(dialect, Injected) else dialect

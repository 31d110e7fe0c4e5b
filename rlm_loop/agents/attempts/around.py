"""Several attempts as one run: a study takes an `Around` for an agent; it makes its attempts with other agents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

from rlm_loop.accounting.budget import Account, Budget
from rlm_loop.accounting.ledger import Ledger
from rlm_loop.accounting.limits import NO_LIMITS
from rlm_loop.agents.agent import FirstRequest, Unasked
from rlm_loop.agents.attempts.attempts import Attempting, Attempts, Tried
from rlm_loop.agents.attempts.checks import Check, Judge
from rlm_loop.agents.meter import Meter
from rlm_loop.agents.question import with_context
from rlm_loop.agents.record import record_start
from rlm_loop.agents.run import Interrupted, attach
from rlm_loop.agents.session import Exchange
from rlm_loop.dialects.base import Dialect
from rlm_loop.models.names import Seeded
from rlm_loop.outcome import Outcome, Stop
from rlm_loop.repl.contexts.fingerprint import context_fingerprint
from rlm_loop.tasks.base import Task
from rlm_loop.traces.trace import Trace, plain


@dataclass(frozen=True, kw_only=True)
class Around:
    """Makes several attempts and returns them as one run.  A study needs `attempt` and `settings` of it.

    A subclass runs the attempts in `_go`, names the agents that make them in `_roles`, and adds in `_how` what else
    identifies it.
    """

    check: Check | None = None
    oracle: bool = False
    budget: Budget | None = None
    seed: int | None = None

    @property
    def name(self) -> str:
        """Its name in tables and traces."""
        return f"{type(self).__name__.lower()}({', '.join(agent.name for agent in self.agents())})"

    def limits(self) -> Budget:
        """The limits of all attempts together; where none are given each has its agent's own."""
        return self.budget or NO_LIMITS

    def dialect(self) -> Dialect:
        """How the last of the agents speaks."""
        return self.agents()[-1].dialect()

    def settings(self) -> dict[str, Any]:
        """What identifies it, as JSON types: the settings of its agents, and how the attempts follow one another."""
        inner = {role: _identity(agent) for role, agent in self._roles().items()}
        judged = Judge(self.check, self.oracle).settings()
        return {"agent": type(self).__name__, **inner, **self._how(), **judged, "budget": plain(self.limits())}

    def attempt(self, task: Task, *, trace: str | Path | Trace | None = None) -> Outcome:
        """Work on a task.  The outcome covers all attempts; its patch and answer are those of the chosen attempt.

        Raises as an agent's `attempt` does, with the outcome of all attempts until then, and `ValueError` where the
        task gives nothing to judge an attempt by.
        """
        self._ready(task)
        task = with_context(task)
        record = trace.for_run() if isinstance(trace, Trace) else Trace(trace)
        try:
            names = ", ".join(dict.fromkeys(_model_names(self.agents())))
            account = Account(self.limits(), price=(0.0, 0.0))  # each attempt brings its model's own price
            nobody = Unasked(names, f"{names} stands for the models of several attempts and cannot be asked")
            model = Meter(nobody, account, Ledger(), record)
            context = context_fingerprint(task.context)
            record_start(record, task, self.name, self.settings(), names, self.limits(), context)
            return self._run(task, model, Exchange())
        finally:
            if not isinstance(trace, Trace):
                record.close()

    def first_request(self, task: Task) -> FirstRequest:
        """The first request of the first agent.  No model is called."""
        return self.agents()[0].first_request(task)

    def attempt_on(
        self,
        task: Task,
        meter: Meter,
        *,
        exchange: Exchange | None = None,
        limits: Budget | None = None,
    ) -> Outcome:
        """Make one attempt for another `Around`, as an agent does."""
        self._ready(task)
        account = meter.account.scope(self.limits() if limits is None else limits)
        return self._run(task, replace(meter, account=account), exchange or Exchange())

    def _run(self, task: Task, meter: Meter, first: Exchange) -> Outcome:
        attempts = Attempts(self.name, task, meter, self._judge(), first)
        try:
            chosen, reason = self._go(attempts)
        except KeyboardInterrupt:
            raise Interrupted(_broken_off(attempts, Stop.INTERRUPTED, "interrupted")) from None
        except Exception as error:
            attach(error, _broken_off(attempts, Stop.FAILED, f"{type(error).__name__}: {error}"))
            raise
        return attempts.outcome(chosen, reason=reason)

    def _ready(self, task: Task) -> None:
        self._judge().ready(task)

    def agents(self) -> list[Attempting]:
        """The agents that make the attempts, with the model and the seed that were given."""
        return list(self._roles().values())

    def _roles(self) -> Mapping[str, Attempting]:
        raise NotImplementedError

    def _how(self) -> Mapping[str, Any]:
        raise NotImplementedError

    def _judge(self) -> Judge:
        return Judge(self.check, self.oracle)

    def _go(self, attempts: Attempts) -> tuple[Tried | None, str]:
        """Make the attempts; returns the chosen one, and why it went no further (empty: it is right)."""
        raise NotImplementedError


def shaped(agent: Attempting, model: Any = None, seed: int | None = None) -> Attempting:
    """The agent with another model; a model that is named is made with the seed."""
    if not is_dataclass(agent):
        return agent
    record: Any = agent
    known = {f.name for f in fields(record) if f.init}
    wanted: dict[str, Any] = {"model": model} if model is not None and "model" in known else {}
    if seed is not None and "seed" in known:
        wanted["seed"] = seed
    elif seed is not None and "model" in known and isinstance(name := wanted.get("model", record.model), str):
        wanted["model"] = Seeded(name, seed)
    return replace(record, **wanted) if wanted else agent


def _identity(agent: Attempting) -> dict[str, Any]:
    return {name: value for name, value in agent.settings().items() if name != "seed"}


def _model_names(agents: list[Attempting]) -> list[str]:
    names: list[str] = []
    for agent in agents:
        if isinstance(agent, Around):
            names += _model_names(agent.agents())
        else:
            model: Any = getattr(agent, "model", "")
            names.append(model if isinstance(model, str) else str(getattr(model, "name", "")))
    return names


def _broken_off(attempts: Attempts, stop: Stop, reason: str) -> Outcome:
    """What was done until a crash or Ctrl-C; its patch is the last one that there is."""
    latest = next((one for one in reversed(attempts.tried) if one.patch.strip()), None)
    return attempts.outcome(latest or (attempts.tried[-1] if attempts.tried else None), stop=stop, reason=reason)

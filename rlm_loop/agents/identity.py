"""What identifies a strategy in studies and traces: its settings as JSON types, by the names that they had at first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import Any

from rlm_loop.accounting.budget import Budget
from rlm_loop.dialects.base import Dialect
from rlm_loop.traces.trace import plain

#: Settings that came later, and what was done before: an agent that does so is the one that it was.
UNTOLD: Mapping[str, Any] = MappingProxyType(
    {
        "allow": None,
        "localise": None,
        "sub_models": (),
        "may_block": False,
        "context_tokens": 60,
        "temperature": None,
    }
)


def settled(budget: Budget) -> dict[str, Any]:
    """A budget as it identifies a strategy: `repeated` only where it is not what it was before it could be set."""
    own: dict[str, Any] = plain(budget)
    if own["repeated"] == 2:
        del own["repeated"]
    return own


def _as_recorded(dialect: dict[str, Any]) -> dict[str, Any]:
    """A dialect's settings by the names that studies and traces of 0.1 have: another name would be another study.

    What they did not have is told only where it is on.
    """
    named = {"action_mode": "hands"}
    return {
        named.get(k, k): _as_recorded(v) if k == "dialect" else v
        for k, v in dialect.items()
        if k not in ("finish_with_result", "may_block") or v
    }


def identifying(agent: Any, dialect: Dialect) -> dict[str, Any]:
    """Everything but the model, hooks and tools' code."""
    skipped = {"model", "hooks", "tools", "repl", "verify", "answer_type", "approve", "budget", "sub_budget"}
    own = {f.name: getattr(agent, f.name) for f in fields(agent) if f.name not in skipped}
    for name, before in UNTOLD.items():
        if own[name] == before:
            del own[name]
    own = plain(own)
    sub_budget = None if agent.sub_budget is None else settled(agent.sub_budget)
    own |= {"budget": settled(agent.budget), "sub_budget": sub_budget}
    return {"agent": type(agent).__name__, "dialect": _as_recorded(plain(dialect)), **own}

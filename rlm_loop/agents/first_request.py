"""The first request of a run, made without a model: what a comparison can be checked by before it starts."""

from __future__ import annotations

from dataclasses import dataclass

from rlm_loop.accounting.budget import Account, Budget
from rlm_loop.accounting.ledger import Ledger
from rlm_loop.agents.metered import Metered
from rlm_loop.agents.recursion import Recursion
from rlm_loop.agents.runner import prepared
from rlm_loop.agents.setup import RunSetup
from rlm_loop.dialects.base import Dialect
from rlm_loop.messages import Prompt, Reply
from rlm_loop.models.base import Model, ModelError
from rlm_loop.tools.function import Tool
from rlm_loop.traces.trace import Trace


@dataclass(frozen=True)
class FirstRequest:
    """What a run would send first, and what it was made of; no model is called for it."""

    prompt: Prompt
    tools: tuple[Tool, ...]
    dialect: Dialect


@dataclass
class Unasked(Model):
    """Stands for a model that is never called, and says why."""

    name: str
    reason: str = "only the request was to be made; no model is called for it"

    def complete(self, prompt: Prompt, *, max_tokens: int | None = None) -> Reply:
        raise ModelError(self.reason, self.name)


def first_request(setup: RunSetup, model_name: str, recursion: Recursion) -> FirstRequest:
    """The first request of a run, made as the run makes it: the workspace is opened, no REPL is started."""
    model = Metered(Unasked(model_name), Account(Budget(), price=(0.0, 0.0)), Ledger(), Trace())
    with prepared(setup, model, recursion) as (speaks, problem, place):
        return FirstRequest(speaks.format_task(problem, place.tools), tuple(place.tools.values()), speaks)

"""SubcallRunner a human, or a rule, before an action runs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rlm_loop.actions import CallTool, RunCode

#: What an agent's `approve=` is: `True` or `None` let the action run, `False` or a reason (text) refuse it.
Approve = Callable[["RunCode | CallTool"], "bool | str | None"]

#: Sub-calls ask a model and touch nothing; what sub-agents then do is asked for itself.
UNASKED = frozenset({"final_answer", "llm_query", "llm_query_batched"})

_ONE_AT_A_TIME = threading.RLock()  # cells call tools from threads, and a terminal has one line


@dataclass(frozen=True)
class Approval:
    """`approve` with a record of what it said; calling it gives the reason of a refusal, or `None`.

    An `approve` that raises, or says anything else, refuses: what nobody approved does not run.  Ctrl-C passes.
    """

    approve: Approve
    record: Callable[..., None]

    def __call__(self, action: RunCode | CallTool) -> str | None:
        with _ONE_AT_A_TIME:
            try:
                reason = _reason(self.approve(action))
            except Exception as error:
                reason = f"not approved: nobody could be asked ({type(error).__name__}: {error})"
            who = getattr(self.approve, "__name__", type(self.approve).__name__)
            self.record(action=action, approved=reason is None, reason=reason, asked=who)
        return reason


def _reason(said: Any) -> str | None:
    if said is None or said is True:
        return None
    if said is False or said == "":
        return "not approved"
    if isinstance(said, str):
        return f"not approved: {said}"
    raise TypeError(f"approve returns True, False or a reason, not {said!r:.40}")

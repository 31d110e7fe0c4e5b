"""The rules of an agent: which actions may run, and which answers count."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast

from rlm_loop.accounting.limits import Budget
from rlm_loop.actions import CallTool, RunCode
from rlm_loop.models.base import Model

#: `Rules.approve`: `True` or `None` let an action run; `False`, a reason (text) or an exception refuse it.
Approve = Callable[[RunCode | CallTool], bool | str | None]

Beyond = Literal["error", "flat", "text"]


@dataclass(frozen=True)
class Rules:
    """Which actions of a model may run, and how it may end.

    - `allow`: names of the tools that may run; others are not offered, and a call of one is `denied` (`None`: all may).
    - `approve`: called with each cell and tool call before it runs, also those of sub-agents and inside cells.  A
      refused action is `denied`, with the reason.
    - `require_code`: ask once for code before a text answer counts.
    - `one_action`: run only the first action of a reply; the others are skipped.
    - `may_block`: tell the model that it may end with a line `BLOCKED: reason`, and read such a line.

    Raises `ValueError` or `TypeError` for values that cannot be meant.
    """

    allow: Sequence[str] | None = None
    approve: Approve | None = None
    require_code: bool = False
    one_action: bool = False
    may_block: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.allow, str):
            raise ValueError(f"allow must be a list of tool names, got the text {self.allow!r}")
        if self.allow is not None:
            object.__setattr__(self, "allow", tuple(self.allow))
        if self.approve is not None and not callable(self.approve):
            raise TypeError(f"approve must be a function of the action, got {self.approve!r:.60}")


@dataclass(frozen=True)
class SubCalls:
    """How a model may ask models: `llm_query` and `llm_query_batched`.

    - `depth`: levels of sub-calls: 0 forbids them, 1 makes each one plain completion, more makes agents of them.
    - `beyond`: what happens beyond: `"error"`, `"flat"` (a plain completion) or `"text"` (a fallback string).
    - `model`: answers instead of the agent's own, with a temperature of its own.
    - `models`: others that a cell may name in `llm_query(..., model=)`: a list of names, or a mapping from your names
      to models or their names.
    - `budget`: limits each sub-call with all below it, besides what is left of the whole run.
    - `concurrency`: model calls of the whole tree at one time, at most.
    - `cache`: make identical sub-calls once.

    Raises `ValueError` or `TypeError` for values that cannot be meant.
    """

    depth: int = 1
    beyond: Beyond = "error"
    model: str | Model | None = None
    models: Mapping[str, str | Model] | Sequence[str | tuple[str, str | Model]] = ()
    budget: Budget | None = None
    concurrency: int = 8
    cache: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.depth, bool) or not isinstance(self.depth, int) or self.depth < 0:
            raise ValueError(f"the depth of sub-calls (max_depth) must be 0 or more levels, got {self.depth!r}")
        if self.beyond not in ("error", "flat", "text"):
            raise ValueError(f'beyond must be "error", "flat" or "text", got {self.beyond!r}')
        if isinstance(self.concurrency, bool) or not isinstance(self.concurrency, int) or self.concurrency < 1:
            raise ValueError(f"concurrency must be a whole number of at least 1, got {self.concurrency!r}")
        if self.model is not None and not isinstance(self.model, (str, Model)):
            raise TypeError(
                f"model of sub-calls must be a name or a Model (derive yours from it), got {self.model!r:.60}"
            )
        if self.budget is not None and not isinstance(self.budget, Budget):
            raise TypeError(f"budget of sub-calls must be a Budget such as Budget(steps=5), got {self.budget!r:.60}")
        if isinstance(named := self.models, str):
            raise ValueError(f"models must be a list of names or a mapping to models, got the text {named!r}")
        pairs = named.items() if isinstance(named, Mapping) else [(m, m) if isinstance(m, str) else m for m in named]
        object.__setattr__(self, "models", tuple((str(name), model) for name, model in pairs))

    @property
    def listed(self) -> dict[str, str | Model]:
        """The models that a cell may name, by the user's names."""
        return dict(cast("Sequence[tuple[str, str | Model]]", self.models))  # pairs, since it was made

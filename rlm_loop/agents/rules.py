"""The rules of an agent: which actions may run (`approve`), and which answers count (a type, `verify`)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rlm_loop.accounting.budget import Budget
from rlm_loop.actions import CallTool, FinalAnswer, RunCode
from rlm_loop.models.base import Model

if TYPE_CHECKING:
    from pydantic import TypeAdapter

#: `Rules.approve`: `True` or `None` let an action run; `False`, a reason (text) or an exception refuse it.
Approve = Callable[[RunCode | CallTool], bool | str | None]


@dataclass(frozen=True)
class Rules:
    """The actions of a model that may run, and how it may end.

    - `allow`: names of the tools that may run; others are not offered, and a call of one is `denied` (`None`: all may).
    - `approve`: called with each cell and tool call before it runs, also those of sub-agents and inside cells.  A
      refused action is `denied`, with the reason.
    - `require_code`: ask once for code before a text answer counts.
    - `one_action`: run only the first action of a reply; the others are skipped.
    - `may_block`: tell the model that it may end with a line `BLOCKED: reason`, and read such a line.

    Raises `ValueError` for a text in place of a list.
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


@dataclass(frozen=True)
class SubCalls:
    """The way in which a model may ask models: `llm_query` and `llm_query_batched`.

    - `depth`: levels of sub-calls: 0 forbids them, 1 makes each one plain completion, more makes agents of them.
    - `model`: answers instead of the agent's own, with a temperature of its own.
    - `models`: others that a cell may name in `llm_query(..., model=)`: your names, with models or their names.
    - `budget`: limits each sub-call with all below it, besides what is left of the whole run.
    - `concurrency`: model calls of the whole tree at one time, at most.

    Raises `ValueError` for numbers that cannot be meant.
    """

    depth: int = 1
    model: str | Model | None = None
    models: Mapping[str, str | Model] | Sequence[tuple[str, str | Model]] = ()
    budget: Budget | None = None
    concurrency: int = 8

    def __post_init__(self) -> None:
        for name, least in (("depth", 0), ("concurrency", 1)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")
        object.__setattr__(self, "models", tuple(dict(self.models).items()))


def adapter_of(answer_type: Any) -> TypeAdapter[Any]:
    """Return what checks an answer against its type; raises `TypeError` for what pydantic knows no type in."""
    from pydantic import PydanticUserError, TypeAdapter

    try:
        return TypeAdapter(answer_type)
    except (PydanticUserError, NameError) as error:
        said = f"answer_type is a type that pydantic checks, not {answer_type!r:.60}"
        raise TypeError(f"{said}; verify= takes a function of the answer") from error


def typed(answer: FinalAnswer, answer_type: Any) -> tuple[FinalAnswer, str | None]:
    """Return the answer as its type, and why it is refused (`None`: it fits); texts are read as the type if possible.

    `answer_type` is anything that pydantic validates.
    """
    from pydantic import ValidationError

    adapter, reason = adapter_of(answer_type), None
    for read in (adapter.validate_python, *([adapter.validate_json] if isinstance(answer.value, str) else [])):
        try:
            return replace(answer, value=read(answer.value)), None
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = "".join(f"{step}." for step in first["loc"])[:-1]
            reason = reason or f"The answer does not fit: {where + ': ' if where else ''}{first['msg']}."
    return answer, reason


def refusal(answer: FinalAnswer, verify: Callable[[Any], bool | str | None]) -> str | None:
    """Return why `verify` refuses an answer, or `None`; an exception is a reason too."""
    try:
        verdict = verify(answer.value)
    except Exception as error:
        verdict = f"{type(error).__name__}: {error}"
    if isinstance(verdict, str) and verdict:
        return verdict
    # a check may return numpy.True_, 1 or a match
    return None if verdict is None or verdict else "The answer did not pass its check."


#: Sub-calls ask a model and touch nothing; what sub-agents then do is asked for itself.
UNASKED = frozenset({"final_answer", "llm_query", "llm_query_batched"})

_ONE_AT_A_TIME = threading.RLock()  # cells call tools from threads, and a terminal has one line


def approval(approve: Approve, record: Callable[..., None]) -> Callable[[RunCode | CallTool], str | None]:
    """Return a function that gives the reason of a refusal, or `None`, and records what `approve` said.

    An `approve` that raises, or says anything else, refuses: what nobody approved does not run.  Ctrl-C passes.
    """
    who = getattr(approve, "__name__", type(approve).__name__)

    def refused(action: RunCode | CallTool) -> str | None:
        if isinstance(action, CallTool) and action.name in UNASKED:
            return None
        with _ONE_AT_A_TIME:
            try:
                said = approve(action)
            except Exception as error:
                said = f"nobody could be asked ({type(error).__name__}: {error})"
            allowed = said is None or said is True
            reason = None if allowed else f"not approved: {said}" if said else "not approved"
            record(action=action, approved=reason is None, reason=reason, asked=who)
        return reason

    return refused

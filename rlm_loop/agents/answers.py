"""What the user has to say: `approve` of an action before it runs, a type or `verify` of an answer before it counts."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from rlm_loop.actions import CallTool, FinalAnswer, RunCode
from rlm_loop.agents.rules import Approve

if TYPE_CHECKING:
    from pydantic import TypeAdapter


def adapter_of(answer_type: Any) -> TypeAdapter[Any]:
    """What checks an answer against its type; raises `TypeError` for what pydantic knows no type in."""
    from pydantic import PydanticSchemaGenerationError, PydanticUserError, TypeAdapter

    try:
        return TypeAdapter(answer_type)
    except (PydanticSchemaGenerationError, PydanticUserError, NameError) as error:
        raise TypeError(
            f"answer_type is a type that pydantic checks, such as int or list[str], not {answer_type!r:.60} "
            f"({str(error).partition(chr(10))[0]:.120}); verify= takes a function of the answer"
        ) from error


@dataclass
class AnswerCheck:
    """Accept an answer, or say in one line why not (`stopping` ends a run whose answers keep being refused).

    `answer_type` is anything that pydantic validates (strings are read as the type where they can be), `verify` a
    function of the answer that returns `True`, `False`, or a line saying what is wrong (an exception counts as one).
    """

    answer_type: Any = None
    verify: Callable[[Any], bool | str | None] | None = None
    evidence: dict[str, Any] | None = field(default=None, init=False)

    def __call__(self, given: FinalAnswer) -> tuple[FinalAnswer, str | None]:
        """The answer, converted to its type, and why it is refused (`None`: it is accepted)."""
        problem = None
        if self.answer_type is not None:
            given, problem = self._typed(given)
        if problem is None and self.verify is not None:
            problem = self._verified(given.value, self.verify)
        return given, problem

    def _typed(self, given: FinalAnswer) -> tuple[FinalAnswer, str | None]:
        from pydantic import ValidationError

        adapter = adapter_of(self.answer_type)
        try:
            return replace(given, value=adapter.validate_python(given.value)), None
        except ValidationError as error:
            if isinstance(given.value, str):
                try:
                    return replace(given, value=adapter.validate_json(given.value)), None
                except ValidationError:
                    pass
            first = error.errors(include_url=False)[0]
            where = ".".join(str(step) for step in first["loc"])
            return given, f"The answer does not fit: {where + ': ' if where else ''}{first['msg']}."

    def _verified(self, value: Any, verify: Callable[[Any], bool | str | None]) -> str | None:
        try:
            said = verify(value)
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
        if said is None or (not isinstance(said, str) and said):  # a check may say numpy.True_, 1 or a match
            self.evidence = {"verify": getattr(verify, "__name__", "verify")}
            return None
        return said if isinstance(said, str) and said else "The answer did not pass its check."


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
        if isinstance(action, CallTool) and action.name in UNASKED:
            return None
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

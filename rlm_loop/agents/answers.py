"""Checking an answer before it counts: a type that pydantic can validate, and a function of the user's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from rlm_loop.actions import FinalAnswer


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
        given, problem = self._typed(given)
        return given, problem or self._verified(given.value)

    def _typed(self, given: FinalAnswer) -> tuple[FinalAnswer, str | None]:
        if self.answer_type is None:
            return given, None
        from pydantic import TypeAdapter, ValidationError

        adapter = TypeAdapter[Any](self.answer_type)
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

    def _verified(self, value: Any) -> str | None:
        if self.verify is None:
            return None
        try:
            said = self.verify(value)
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
        if said is None or said is True:
            self.evidence = {"verify": getattr(self.verify, "__name__", "verify")}
            return None
        return said if isinstance(said, str) and said else "The answer did not pass its check."

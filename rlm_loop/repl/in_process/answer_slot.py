"""`final_answer` in a namespace of this process, by the rules that `worker.py` keeps in its own."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

from rlm_loop.repl.worker import (
    FinalAnswer,
    _uses_of_answer,  # pyright: ignore[reportPrivateUsage]
    portable,
)

NAME = "final_answer"


class AnswerSlot:
    """Unset, set by the running cell, or left by an earlier one.

    The unset marker, or an answer of an earlier cell, is found in `shown` (the namespace's builtins); so an
    assignment by this cell is simply the name being in the namespace, whatever its value.
    """

    def __init__(self, names: dict[str, Any], shown: MutableMapping[str, Any]) -> None:
        self._names, self._shown = names, shown
        self.unset = FinalAnswer(names)
        self._before: Any = self.unset

    def begin(self, code: str) -> None:
        """Before a cell: an earlier answer moves out of the namespace, where it could be taken for this cell's."""
        unset = self.unset
        if NAME in self._names:
            unset.earlier = self._names.pop(NAME)
        calls, deletes = _uses_of_answer(code)
        visible = unset if calls else unset.earlier  # a value could be read, but not called
        self._before = unset
        if deletes:  # else `del` would not find it
            self._names[NAME] = self._before = visible
            unset.earlier = visible = unset
        self._shown[NAME] = visible

    def given(self, cap: int) -> dict[str, Any] | None:
        """What this cell set, in the form in which values cross; `None` where it set nothing."""
        if NAME not in self._names or self._names[NAME] is self._before:
            return None
        return portable(self._names[NAME], cap)

    def forget(self) -> None:
        """No answer was given: a new run begins."""
        self._names.pop(NAME, None)
        self.unset.earlier = self._shown[NAME] = self.unset

    def hide(self) -> None:
        """Take the name out of both."""
        if NAME in self._names:
            self.unset.earlier = self._names.pop(NAME)
        self._shown.pop(NAME, None)

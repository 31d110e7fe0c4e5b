"""Shared by the adapters: our `final_answer` in another project's words, scripted replies, times."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from suite.case import Played, ReplyCase, Seen

_ASSIGNED = re.compile(r"^([ \t]*)((?:if [^:\n]*: )?)final_answer = (.*)$", re.MULTILINE)
_CALLED = re.compile(r"\bfinal_answer\((.*)\)")


def in_their_words(code: str, template: str) -> str:
    """Return code with each answer written as the template says, such as `SUBMIT({value})`."""

    def assign(m: re.Match[str]) -> str:
        lines = template.replace("{value}", m[3]).split("\n")
        return m[1] + m[2] + "; ".join(lines) if m[2] else "\n".join(m[1] + line for line in lines)

    return _ASSIGNED.sub(assign, _CALLED.sub(lambda m: template.replace("{value}", m[1]), code))


class Subject:
    """A project's interpreter; `_run` is its own."""

    def run(self, code: str, hasty: bool = False) -> Seen:
        began = time.monotonic()
        seen = self._run(code, hasty)
        return replace(seen, seconds=time.monotonic() - began)

    _run: Callable[[str, bool], Seen]

    def set(self, name: str, value: Any, reserved: bool = False) -> None:
        raise NotImplementedError("nothing stays from cell to cell")

    def new_run(self) -> None: ...

    def close(self) -> None: ...


class OutOfReplies(Exception):
    """The loop asked for a reply that the script does not have."""


class Script:
    """The replies of a case, in another project's words; records what the model was told."""

    def __init__(self, case: ReplyCase, template: str, fence: str = "```python") -> None:
        self._texts = [in_their_words(text, template).replace("```python", fence) for text in case.texts]
        self.taken = 0
        self.told: list[str] = []

    def next(self, told: str = "") -> str:
        if self.taken:
            self.told.append(told)
        if self.taken == len(self._texts):
            raise OutOfReplies
        self.taken += 1
        return self._texts[self.taken - 1]

    def played(self, answer: tuple[Any, ...], stop: str) -> Played:
        return Played(answer, stop, self.taken, "\n" + "\n".join(self.told))

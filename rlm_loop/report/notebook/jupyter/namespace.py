"""Which variables of a notebook an agent is given as its context."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from types import ModuleType
from typing import Any

from rlm_loop.agents import Agent
from rlm_loop.agents.background import BackgroundRun
from rlm_loop.agents.conversation import Conversation
from rlm_loop.outcome import Outcome

_QUOTED = re.compile(r"`([A-Za-z_]\w*)`")
_NO_DATA = (ModuleType, type, Agent, Conversation, BackgroundRun, Outcome)
_WORD = re.compile(r"[A-Za-z_]\w*")


class NoSuchVariable(ValueError):
    """A name that was asked for is not in the notebook."""


def context_of(names: Sequence[str], namespace: Mapping[str, Any]) -> Any:
    """The variables that were asked for by name: one as it is, several as a dict by their names.

    Raises `NoSuchVariable`.
    """
    missing = [name for name in names if name not in namespace]
    if missing:
        raise NoSuchVariable(f"there is no variable {', '.join(missing)} in this notebook; run the cell that makes it")
    if len(names) == 1:
        return namespace[names[0]]
    return {name: namespace[name] for name in names}


def named_in(text: str, namespace: Mapping[str, Any], hidden: Collection[str] = ()) -> list[str]:
    """The variables that a text names, in the order of naming.

    Data only: no modules, functions, classes, agents, sessions, runs or outcomes, and nothing that begins with an
    underscore or is in `hidden` (IPython's own).  A name of one letter counts only in `backticks`, since "a" is a word
    as well.
    """
    quoted = set(_QUOTED.findall(text))
    words = [word for word in _WORD.findall(text) if len(word) > 1 or word in quoted]
    return [
        name
        for name in dict.fromkeys(words)
        if name in namespace and not name.startswith("_") and name not in hidden and _is_data(namespace[name])
    ]


def _is_data(value: Any) -> bool:
    if isinstance(value, _NO_DATA) or hasattr(value, "complete"):  # such as a model
        return False
    return not callable(value)

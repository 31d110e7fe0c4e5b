"""Hooks: objects that are told of the events of a run while it goes on.

A hook is any object with some of these methods; each is given, by keyword, those of the values that it takes:

| method | values |
|---|---|
| `on_run_start` | `task`, `agent`, `model`, `question`, `ledger`, `trace` |
| `on_run_end` | `outcome` |
| `on_run_error` | `error`, `trace` |
| `on_step_start` | `turn_index`, `node`, `steps_remaining` |
| `on_step_end` | `turn`, `node`, `steps_remaining` |
| `on_text` | `kind`, `text`, `node` |
| `on_tool_start` | `tool`, `arguments`, `node` |
| `on_tool_end` | `tool`, `result`, `node` |
| `on_subcall_start` | `node`, `depth`, `kind`, `model`, `prompt` |
| `on_subcall_end` | `node`, `depth`, `ok`, `error`, `answer`, `seconds`, `usage` |

`on_text` is told of a reply while the model writes it; `kind` says what the text is (`models.base.Kind`).  A hook
that has it (and not as `None`) makes the models stream that can, from their threads; reply and costs are the same.

`on_run_end` is told of a run that was interrupted or failed as well: `outcome` holds what was done until then.
`on_run_error` is told instead where there is none, since the run never got to its first turn.  `ledger` is the run's
own, which grows while it goes on, `trace` where it is recorded.  `steps_remaining` are the turns left, the one that
starts included, `None` without a limit.  `node` is the place in the tree of sub-calls: `0` for the root, `0.1` for its
first sub-call.  A call that cannot be understood never starts, and ends all the same.  Sub-calls, and tools that cells
call from threads, are told of from those threads.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterable
from typing import Any

from rlm_loop.traces.logs import exception

_log = logging.getLogger("rlm_loop.tools.hooks")


class Hooks:
    """The hooks of one run."""

    def __init__(self, objects: Iterable[object] = ()) -> None:
        self._objects = tuple(objects)

    def hears(self, event: str) -> list[Callable[..., Any]]:
        """Return the methods of the hooks that hear of an event."""
        return [method for hook in self._objects if (method := getattr(hook, event, None))]

    def notify(self, event: str, **values: Any) -> None:
        """Call every hook that has a method `event`; one that raises is logged and never ends the run."""
        for method in self.hears(event):
            try:
                taken = inspect.signature(method).parameters
                every = any(p.kind is p.VAR_KEYWORD for p in taken.values())
                method(**{name: value for name, value in values.items() if every or name in taken})
            except Exception as error:
                exception(_log, f"a hook raised in {event}", error, node=values.get("node"))


NO_HOOKS = Hooks()

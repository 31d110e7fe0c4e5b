"""What cells ask of the host: each call with its result, kept so that a cell can be run again without making it again.

A trace holds a hash of the arguments (they may be as large as the context) and the result as it went back to the cell.
"""

from __future__ import annotations

import functools
import hashlib
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rlm_loop.repl.worker import form_of

MOST = 262_144
"""Characters that are kept of a result, or of an argument that has no exact form."""


@dataclass
class CellCall:
    """A call of a host tool by a cell.

    `asked` is a hash of the arguments.  `outcome` has a `value` (in the form that `repl.worker.decode` reads), an
    `error` (class and text of what was raised) or the `end` of the whole cell; `left_out` is the length of one that is
    too long to keep.  It is `None` where the cell was over before the tool.
    """

    name: str
    asked: str
    outcome: Mapping[str, Any] | None = None

    def asks(self, args: Any, kwargs: Any) -> bool:
        """Whether the call was made with these arguments, given in the forms that cross."""
        return self.asked == _sha256(args, kwargs)


class Noted:
    """Host functions that note the calls which cells make of them; safe to call from threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: list[CellCall] = []

    def told(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, its calls noted under a name."""

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            noted = CellCall(name, asked(args, kwargs))
            with self._lock:
                self._calls.append(noted)
            try:
                value = function(*args, **kwargs)
            except Exception as error:
                noted.outcome = {"error": f"{type(error).__name__}: {error}"}
                raise
            except BaseException as error:
                noted.outcome = {"end": f"{type(error).__name__}: {error}"}
                raise
            noted.outcome = _kept(value)
            return value

        return call

    def taken(self) -> list[CellCall]:
        """The calls since the last look, in the order in which they came."""
        with self._lock:
            calls, self._calls = self._calls, []
        return calls


def asked(args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """SHA-256 of what a host tool is called with."""
    return _sha256([form_of(a, MOST) for a in args], {k: form_of(v, MOST) for k, v in kwargs.items()})


def _sha256(args: Any, kwargs: Any) -> str:
    form = [args, dict(sorted(kwargs.items()))]
    return hashlib.sha256(json.dumps(form, separators=(",", ":"), default=repr).encode()).hexdigest()


def _kept(value: Any) -> Mapping[str, Any]:
    form = form_of(value, MOST)
    length = len(json.dumps(form))
    return {"value": form} if length <= MOST else {"left_out": length}

"""Identical sub-calls are made once, where the user asked for that."""

from __future__ import annotations

import threading
from collections.abc import Hashable
from dataclasses import dataclass, field

from rlm_loop.accounting.scope import Scope
from rlm_loop.messages import Usage


@dataclass
class Known:
    """An answer that was given, and what it cost."""

    text: str
    cost: Usage


@dataclass
class _Pending:
    waiting: list[threading.Event] = field(default_factory=list[threading.Event])


class SubcallCache:
    """Answers by what was asked.  Who asks the same at the same time waits for the first; failures are not kept."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_key: dict[Hashable, Known | _Pending] = {}

    def find(self, key: Hashable, scope: Scope) -> Known | None:
        """The answer; `None` where there is none, and then the caller must call `keep` or `fail`.

        Raises `Cancelled` where the scope ends while an answer is waited for.
        """
        while True:
            with self._lock:
                entry = self._by_key.get(key)
                if entry is None:
                    self._by_key[key] = _Pending()
                    return None
                if isinstance(entry, Known):
                    return entry
                event = threading.Event()
                entry.waiting.append(event)
            with scope.waking(event.set):
                event.wait()
            scope.check()

    def known(self, key: Hashable) -> bool:
        return isinstance(self._by_key.get(key), Known)

    def keep(self, key: Hashable, text: str, cost: Usage) -> None:
        self._settle(key, Known(text, cost))

    def fail(self, key: Hashable) -> None:
        """There was no answer: the next one who asks makes the call."""
        self._settle(key, None)

    def _settle(self, key: Hashable, known: Known | None) -> None:
        with self._lock:
            entry = self._by_key.pop(key, None)
            if known is not None:
                self._by_key[key] = known
        if isinstance(entry, _Pending):
            for event in entry.waiting:
                event.set()

"""The REPL of a conversation: opened when a cell first needs it, and open until the conversation is over."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rlm_loop.repl.base import CellResult, Session


class KeptSession:
    """Passes everything on to the session that `make` gives.  Closing it closes that one where it is `owned`.

    A context that is set again is the very same object: it crosses into the REPL once.
    """

    def __init__(self, make: Callable[[], Session], *, owned: bool) -> None:
        self._make, self._owned = make, owned
        self._session: Session | None = None
        self._context: Any = None

    @property
    def _open(self) -> Session:
        if self._session is None:
            self._session = self._make()
        return self._session

    def run(self, code: str, *, timeout: float | None = None, grace: float | None = None) -> CellResult:
        return self._open.run(code, timeout=timeout, grace=grace)

    def set(self, name: str, value: Any, *, reserved: bool = False) -> None:
        if name == "context" and self._context is value:
            return
        self._open.set(name, value, reserved=reserved)
        if name == "context":
            self._context = value

    def get(self, expression: str, *, timeout: float | None = None) -> Any:
        return self._open.get(expression, timeout=timeout)

    def add_tools(self, tools: Mapping[str, Callable[..., Any]]) -> None:
        self._open.add_tools(tools)

    def new_run(self) -> None:
        self._open.new_run()

    def close(self) -> None:
        session, self._session = self._session, None
        if session is not None and self._owned:
            session.close()

    def __getattr__(self, name: str) -> Any:
        """What some kinds of session have besides: `last`, `isolation`, `remove_tools`."""
        session: Session | None = self.__dict__.get("_session")
        if session is None:
            raise AttributeError(name)
        return getattr(session, name)

"""A lock that a copy of its object has anew."""

from __future__ import annotations

import threading
from types import TracebackType


class OwnLock:
    """A `threading.Lock` for `with`.  The object that holds it can be copied and sent to another process.

    `threading.Lock` itself refuses both (`cannot pickle '_thread.lock' object`), since a lock is of one place; a
    copy is guarded by one of its own.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def __enter__(self) -> bool:
        return self._lock.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._lock.release()

    def __reduce__(self) -> tuple[type[OwnLock], tuple[()]]:
        return OwnLock, ()

"""A lock of which a copy is another lock."""

from __future__ import annotations

import threading


class OwnLock:
    """A `threading.Lock` for `with`, whose owner can be copied and pickled: the copy gets a lock of its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def __enter__(self) -> bool:
        return self._lock.__enter__()

    def __exit__(self, *error: object) -> None:
        self._lock.release()

    def __reduce__(self) -> tuple[type[OwnLock], tuple[()]]:
        return OwnLock, ()

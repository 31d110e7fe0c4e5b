"""A lock of which a copy is another lock."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    _RLock: Any = object
else:
    _RLock = type(threading.RLock())


class OwnLock(_RLock):
    """A lock for `with`, whose owner can be copied and pickled: the copy gets a lock of its own."""

    def __reduce__(self) -> tuple[type[OwnLock], tuple[()]]:
        return OwnLock, ()

"""Which variables of a namespace are new, changed or gone since a moment before."""

from __future__ import annotations

import hashlib
import pickle
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rlm_loop.repl.contexts.fingerprint import Sink

_UNSEEN = object()
_ATOMS = (type(None), bool, int, float, complex, str, bytes, range, types.ModuleType, types.FunctionType, type)


@dataclass(frozen=True)
class Changes:
    """Names of variables.  `changed` ones are bound to another object, or the object's contents differ.

    `unchecked` ones are bound to the same object, of which the contents could not be compared: they are too large,
    or do not pickle.
    """

    new: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.new or self.changed or self.deleted)

    def __str__(self) -> str:
        parts = {"new": self.new, "changed": self.changed, "deleted": self.deleted}
        said = [f"{what}: {', '.join(names)}" for what, names in parts.items() if names]
        if self.unchecked:
            said.append(f"not compared: {', '.join(self.unchecked)}")
        return "; ".join(said) or "no variable changed"


class Snapshot:
    """A namespace at a moment: identities and digests, so that it keeps no value alive.

    `public` says which names count; contents up to `limit` bytes (of their pickle) are compared.  Pickling runs code
    of the values' classes.
    """

    def __init__(self, names: Mapping[str, Any], public: Callable[[str], bool], limit: int) -> None:
        self._public, self._limit = public, limit
        self._seen = {n: (id(v), self._digest(v)) for n, v in list(names.items()) if public(n)}

    def changes(self, names: Mapping[str, Any]) -> Changes:
        """The variables that differ from the state at the beginning."""
        now = {n: v for n, v in list(names.items()) if self._public(n)}
        changed: list[str] = []
        unchecked: list[str] = []
        for name in (n for n in self._seen if n in now):
            identity, digest = self._seen[name]
            if id(now[name]) != identity:
                changed.append(name)
            elif digest is _UNSEEN:
                unchecked.append(name)
            elif self._digest(now[name]) != digest:
                changed.append(name)
        new = tuple(n for n in now if n not in self._seen)
        deleted = tuple(n for n in self._seen if n not in now)
        return Changes(new, tuple(changed), deleted, tuple(unchecked))

    def _digest(self, value: Any) -> object:
        if isinstance(value, _ATOMS):
            return None  # cannot change without being another object, or is not data
        sink = Sink(hashlib.blake2b(digest_size=16), lambda size: size <= self._limit)
        try:
            pickle.Pickler(sink, pickle.HIGHEST_PROTOCOL).dump(value)
        except Exception:
            return _UNSEEN
        return sink.hash.digest()

"""A folder as a dict from relative path to text."""

from __future__ import annotations

import os

from .files import is_text, listing, open_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


class Folder(dict):  # type: ignore[type-arg]
    """A folder as a dict from relative path to text, `bytes` for a file that is none.  Each use reads the file anew.

    It cannot be changed; `dict(context)` is a copy in memory that can.
    """

    __slots__ = ("_hidden", "_root")

    def __init__(self, root: str, hidden: bool) -> None:
        super().__init__(dict.fromkeys(listing(root, hidden)))
        self._root, self._hidden = root, hidden

    def __getitem__(self, name: str) -> str | bytes:
        if not dict.__contains__(self, name):
            raise KeyError(name)
        path = os.path.join(self._root, *name.split("/"))
        with open_file(path, repr(name)) as f:
            raw = f.read()
        return raw.decode("utf-8", "surrogateescape") if is_text(raw) else raw

    def get(self, name: Any, default: Any = None) -> Any:
        return self[name] if name in self else default  # noqa: SIM401

    def __iter__(self) -> Iterator[str]:
        return dict.__iter__(self)

    def values(self) -> Any:
        return _Values(self)

    def items(self) -> Any:
        return _Items(self)

    def copy(self) -> dict[str, str | bytes]:
        return {name: self[name] for name in self}

    def __eq__(self, other: object) -> bool:
        return self.copy() == other

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None  # type: ignore[assignment]

    def __or__(self, other: Any) -> Any:
        return {**self.copy(), **other}

    def __ror__(self, other: Any) -> Any:
        return {**other, **self.copy()}

    def __repr__(self) -> str:
        names = list(self)
        shown = ", ".join(map(repr, names[:20])) + (f" and {len(names) - 20:,} more" if len(names) > 20 else "")
        return f"<dict of {len(names):,} files, each read when it is asked for: {shown}>"

    def __reduce__(self) -> Any:
        return dict, (self.copy(),)

    def _fixed(self, *_: Any, **__: Any) -> Any:
        raise TypeError("the files cannot be changed here: make a copy with dict(context)")

    __setitem__ = __delitem__ = __ior__ = update = pop = popitem = clear = setdefault = _fixed  # type: ignore


class _Values:
    def __init__(self, folder: Folder) -> None:
        self._folder = folder

    def __len__(self) -> int:
        return len(self._folder)

    def __iter__(self) -> Iterator[Any]:
        return (self._folder[name] for name in self._folder)


class _Items(_Values):
    def __iter__(self) -> Iterator[Any]:
        return ((name, self._folder[name]) for name in self._folder)

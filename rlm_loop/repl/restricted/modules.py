"""Modules as restricted cells see them: only what a module offers by name, and no way from there to other modules."""

from __future__ import annotations

import contextlib
import functools
import importlib
import sys
import types
from collections.abc import Callable, Iterable
from typing import Any

_ANALYSIS = (
    "__future__ abc base64 binascii bisect calendar cmath collections collections.abc contextlib copy csv dataclasses "
    "datetime decimal difflib enum fractions functools hashlib heapq html io itertools json math numbers operator "
    "pprint random re statistics string struct sys textwrap time types typing unicodedata zoneinfo"
)
ANALYSIS = tuple(_ANALYSIS.split())
"""Modules that restricted cells may import unless a session says otherwise."""

# Of these only so much: the rest opens files, makes code, reaches frames or changes the process.
_ONLY = {
    "io": "StringIO BytesIO",
    "types": "SimpleNamespace MappingProxyType",
    "sys": "maxsize float_info int_info version version_info getsizeof getrecursionlimit exit byteorder",
    "time": "time time_ns perf_counter perf_counter_ns monotonic process_time sleep strftime strptime gmtime localtime "
    "mktime ctime asctime struct_time",
}
_WITHOUT = {
    "typing": "get_type_hints ForwardRef",  # evaluates annotations, unguarded
    "string": "Formatter",
    "contextlib": "redirect_stdout redirect_stderr chdir",
    "enum": "global_enum global_enum_repr global_str global_flag_repr",
    "hashlib": "file_digest",
    "operator": "attrgetter methodcaller",
    "functools": "update_wrapper",
}


def wraps(wrapped: Any) -> Callable[[Any], Any]:
    """`functools.wraps` without a choice of attributes: it would read any, past the guard."""
    return functools.wraps(wrapped)


class Facade(types.ModuleType):
    """Stands for a module.  Attributes are looked up when asked for; a module among them is a facade or not there."""

    def __init__(self, module: types.ModuleType, permitted: Callable[[str], bool]) -> None:
        super().__init__(module.__name__, module.__doc__)
        public = getattr(module, "__all__", None) or [n for n in dir(module) if not n.startswith("_")]
        only = _ONLY.get(module.__name__, "").split() or public
        without = _WITHOUT.get(module.__name__, "").split()
        self.__all__ = sorted(n for n in public if n in only and n not in without)
        self._module, self._permitted = module, permitted  # cells read no private parts

    def __getattr__(self, name: str) -> Any:
        module, full = self._module, f"{self.__name__}.{name}"
        if name == "wraps" and module is functools:
            return wraps
        if name in self.__all__ or (full in sys.modules and self._permitted(full)):
            value = getattr(module, name)
            if not isinstance(value, types.ModuleType):
                return value
            if value.__name__.startswith(f"{self.__name__}."):
                return Facade(value, self._permitted)
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r} in a restricted session")

    def __dir__(self) -> list[str]:
        return list(self.__all__)


def importer(allowed: Iterable[str]) -> Callable[..., Any]:
    """`__import__` for a session: facades of the allowed modules.

    A package that is not of the standard library is allowed with its submodules.
    """
    names = frozenset(allowed)
    listed = ", ".join(sorted(n for n in names if n != "__future__" and "." not in n))

    def permitted(name: str) -> bool:
        package = name.partition(".")[0]
        return name in names or (package in names and package not in sys.stdlib_module_names)

    @functools.cache
    def facade(name: str) -> Facade:
        return Facade(importlib.import_module(name), permitted)

    def import_(
        name: str, globals: Any = None, locals: Any = None, fromlist: tuple[str, ...] | None = (), level: int = 0
    ) -> Any:
        if level or not permitted(name):
            raise ImportError(f"{name!r} cannot be imported here, only {listed}")
        found = facade(name)
        for item in fromlist or ():
            if permitted(f"{name}.{item}"):
                with contextlib.suppress(ImportError):  # an attribute, or the import statement says what is missing
                    importlib.import_module(f"{name}.{item}")
        return found if fromlist else facade(name.partition(".")[0])

    return import_

"""Modules as restricted cells see them: only what a module offers by name, and no way from there to other modules."""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Callable, Iterable, Mapping
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


class Facade(types.ModuleType):
    """Stands for a module.  Attributes are looked up when asked for; a module among them is a facade or not there."""

    def __init__(self, module: types.ModuleType, instead: Mapping[str, Any], whole: bool) -> None:
        super().__init__(module.__name__, module.__doc__)
        public = getattr(module, "__all__", None) or [n for n in dir(module) if not n.startswith("_")]
        only = _ONLY.get(module.__name__, "").split()
        public = [n for n in public if (not only or n in only) and n not in _WITHOUT.get(module.__name__, "").split()]

        def look_up(name: str) -> Any:
            if name in instead:
                return instead[name]
            if name in public or (whole and f"{module.__name__}.{name}" in sys.modules):
                value = getattr(module, name)
                if not isinstance(value, types.ModuleType):
                    return value
                if value.__name__.startswith(module.__name__ + "."):
                    return Facade(value, {}, whole)
            raise AttributeError(f"module {module.__name__!r} has no attribute {name!r} in a restricted session")

        super().__setattr__("_look_up", look_up)
        super().__setattr__("__all__", sorted({*public, *instead}))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._look_up(name)

    def __dir__(self) -> list[str]:
        return list(self.__all__)

    def __repr__(self) -> str:
        return f"<module {self.__name__!r}, restricted>"


def importer(allowed: Iterable[str], instead: Mapping[str, Mapping[str, Any]]) -> Callable[..., Any]:
    """`__import__` for a session: its own facades of the allowed modules.

    A package that is not of the standard library is allowed with its submodules.  `instead` gives replacements for
    single names of modules.
    """
    names = frozenset(allowed)
    facades: dict[str, Facade] = {}

    def facade(name: str) -> Facade:
        if name not in facades:
            whole = name.partition(".")[0] not in _STDLIB
            facades[name] = Facade(importlib.import_module(name), instead.get(name, {}), whole)
        return facades[name]

    def permitted(name: str) -> bool:
        top = name.partition(".")[0]
        return name in names or (top in names and top not in _STDLIB)

    def import_(
        name: str, globals: Any = None, locals: Any = None, fromlist: tuple[str, ...] | None = (), level: int = 0
    ) -> Any:
        if level or not permitted(name):
            raise ImportError(f"{name!r} cannot be imported here, only {listed}")
        if not fromlist:
            importlib.import_module(name)
            return facade(name.partition(".")[0])
        found = facade(name)
        for item in fromlist:
            if not hasattr(found, item) and permitted(f"{name}.{item}"):
                try:
                    setattr(found, item, facade(f"{name}.{item}"))
                except ImportError:
                    continue  # the import statement says what is missing
        return found

    listed = ", ".join(sorted(n for n in names if n != "__future__" and "." not in n))
    return import_


_STDLIB = sys.stdlib_module_names

"""A hash of how a task is judged, so that a study whose scorer or truths changed is not taken for the same one."""

from __future__ import annotations

import ast
import functools
import hashlib
import inspect
import pickle
import re
import sys
import sysconfig
import textwrap
from collections.abc import Mapping, Set
from contextlib import suppress
from dataclasses import fields, is_dataclass
from pathlib import PurePath
from types import CodeType, FunctionType, MethodType
from typing import Any

from rlm_loop.messages import digest


def mark_of(value: Any) -> str:
    """Return the hash of a scorer, or of any value.

    A scorer with an attribute `version` is its name and that.  Another one of the user's is its name, its source
    without comments (the byte code of a lambda) and the values that it holds: defaults, what it closes over, fields,
    arguments of a `partial`.  Other functions that it calls and files that it reads are not covered: give it a
    `version`.  Code of this package and of installed ones is its name: their versions are part of a study's identity.
    """
    return digest(_described(value, ()))[:16]


def _described(value: Any, above: tuple[int, ...]) -> Any:
    def of(part: Any) -> Any:
        return _described(part, (*above, id(value)))

    if id(value) in above:
        return "again"
    if callable(value) and isinstance(version := getattr(value, "version", None), str | int):
        return ["version", getattr(value, "__qualname__", type(value).__qualname__), str(version)]
    match value:
        case str() | int() | float() | None:
            return [type(value).__name__, repr(value)]
        case bytes():
            return ["bytes", hashlib.sha256(value).hexdigest()]
        case list() | tuple():
            return [type(value).__name__, *map(of, value)]
        case Mapping():
            return ["mapping", *sorted((digest(of(k)), of(v)) for k, v in value.items())]
        case Set():
            return ["set", *sorted(digest(of(v)) for v in value)]
        case re.Pattern():
            return ["pattern", str(value.pattern), value.flags]
        case PurePath():
            return ["path", value.name]
        case functools.partial():
            return ["partial", of(value.func), of(value.args), of(value.keywords)]
        case MethodType():
            return ["method", of(value.__func__), of(value.__self__)]
        case FunctionType():
            held = inspect.getclosurevars(value).nonlocals
            return [
                "function",
                value.__qualname__,
                _source(value),
                *map(of, (value.__defaults__, value.__kwdefaults__, held)),
            ]
        case type():
            return ["class", value.__qualname__, _source(value), *map(of, value.__bases__)]
        case _:
            return [*of(type(value)), of(_state(value))]


def _state(value: Any) -> Any:
    if is_dataclass(value):
        return {f.name: getattr(value, f.name, None) for f in fields(value) if f.compare}
    if hasattr(value, "__dict__"):
        return vars(value)
    try:
        return pickle.dumps(value, protocol=4)
    except Exception:  # whatever an object's own __reduce__ raises
        return None


def _source(value: FunctionType | type) -> str:
    """Return the source, of a lambda the byte code; empty for code that is installed."""
    if _installed(value.__module__):
        return ""
    if value.__name__ != "<lambda>":  # its line may hold others
        with suppress(OSError, TypeError):  # of code that was made by `exec`
            return ast.unparse(ast.parse(textwrap.dedent(inspect.getsource(value))))
    return _compiled(value.__code__) if isinstance(value, FunctionType) else ""


def _compiled(code: CodeType) -> str:
    inner = [_compiled(c) if isinstance(c, CodeType) else _described(c, ()) for c in code.co_consts]
    return digest([code.co_code.hex(), inner, list(code.co_names)])


@functools.cache
def _installed(module: str | None) -> bool:
    """Return whether a module is of this package, of an installed one, or of the standard library."""
    if module is None or module.partition(".")[0] in {"rlm_loop", "builtins", *sys.stdlib_module_names} - {"__main__"}:
        return True
    file = getattr(sys.modules.get(module), "__file__", None)
    paths = sysconfig.get_paths()
    return file is not None and file.startswith((paths["purelib"], paths["platlib"]))

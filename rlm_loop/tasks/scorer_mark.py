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
from collections.abc import Iterator, Mapping, Set
from dataclasses import fields, is_dataclass
from pathlib import PurePath
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from rlm_loop.messages import digest

_DEEP = 24
_PLAIN = (str, int, float, bool, type(None))


def mark_of(value: Any) -> str:
    """The hash of a scorer, or of any value.

    Of a user's function it covers the qualified name, the source without comments and docstrings (the byte code where
    there is no source), defaults, what it closes over, and the functions, classes and plain values of its module (or
    of another one of the user's) that it names.  Of an object it covers the class and the values of its fields, of
    `partial` and bound methods all parts.  Code of this package and of installed ones is covered by its name only:
    their versions are part of a study's identity.  Files that a scorer reads are not covered.
    """
    return digest(_value(value, (), _DEEP))[:16]


def _value(value: Any, above: tuple[int, ...], left: int) -> Any:
    if isinstance(value, _PLAIN):
        return [type(value).__name__, repr(value)]
    if isinstance(value, bytes):
        return ["bytes", hashlib.sha256(value).hexdigest()]
    if id(value) in above or not left:
        return "again"
    return _made(value, (*above, id(value)), left - 1)


def _made(value: Any, above: tuple[int, ...], left: int) -> Any:
    def of(part: Any) -> Any:
        return _value(part, above, left)

    match value:
        case list() | tuple():
            return [type(value).__name__, *map(of, value)]
        case Mapping():
            return ["mapping", *sorted((digest(of(k)), of(v)) for k, v in value.items())]
        case Set():
            return ["set", *sorted(digest(of(v)) for v in value)]
        case functools.partial():
            return ["partial", of(value.func), of(value.args), of(value.keywords)]
        case MethodType():
            return ["method", of(value.__func__), of(value.__self__)]
        case FunctionType():
            return ["function", value.__qualname__, *map(of, _function(value))]
        case type():
            return ["class", value.__qualname__, *([] if _installed(value.__module__) else map(of, _class(value)))]
        case re.Pattern():
            return ["pattern", str(value.pattern), value.flags]
        case PurePath():
            return ["path", value.name]
        case ModuleType():
            return ["module", value.__name__]
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


def _function(function: FunctionType) -> Iterator[Any]:
    yield function.__defaults__
    yield function.__kwdefaults__
    yield [cell.cell_contents for cell in function.__closure__ or () if _filled(cell)]
    if _installed(function.__module__):
        return
    code, known = function.__code__, function.__globals__
    yield _text(code)
    for name in sorted(set(_names(code)) & set(known)):
        value = known[name]
        if isinstance(value, (*_PLAIN, bytes, list, tuple, dict, Set, re.Pattern, FunctionType, type)):
            yield [name, value]


def _class(kind: type) -> Iterator[Any]:
    for name, value in sorted(vars(kind).items()):
        inner = getattr(value, "__func__", getattr(value, "fget", getattr(value, "func", value)))
        if isinstance(inner, FunctionType) and inner.__code__.co_filename.startswith("<string>"):
            continue  # made by `dataclass`
        if isinstance(inner, FunctionType) or (isinstance(inner, (*_PLAIN, tuple)) and not name.startswith("__")):
            yield [name, inner]
    yield [base for base in kind.__bases__ if base is not object]


def _filled(cell: Any) -> bool:
    try:
        _ = cell.cell_contents
    except ValueError:
        return False
    return True


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _names(inner)


@functools.lru_cache(maxsize=4096)
def _text(code: CodeType) -> str:
    """The source without what does not run; another version of Python gives the same."""
    try:
        source = textwrap.dedent(inspect.getsource(code))
    except (OSError, TypeError):
        return _compiled(code)
    try:
        tree = ast.parse(source)
    except SyntaxError:  # a lambda in the middle of a statement
        tree = ast.parse("")
    if code.co_name == "<lambda>":  # its line may hold others
        said = {repr(c) for c in code.co_consts if isinstance(c, (*_PLAIN, bytes, tuple)) and c is not None}
        return " ".join([*source.split(), *sorted(said), *code.co_names])
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and ast.get_docstring(node):
            node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(tree)


def _compiled(code: CodeType) -> str:
    inner = [_compiled(c) if isinstance(c, CodeType) else repr(c) for c in code.co_consts]
    return digest([code.co_code.hex(), inner, list(code.co_names)])


@functools.cache
def _installed(module: str | None) -> bool:
    """Whether a module is of this package, of an installed one, or of the standard library."""
    if module is None or module.partition(".")[0] in {"rlm_loop", "builtins", *sys.stdlib_module_names} - {"__main__"}:
        return True
    file = getattr(sys.modules.get(module), "__file__", None)
    paths = sysconfig.get_paths()
    return file is not None and file.startswith((paths["purelib"], paths["platlib"]))

"""The guards of restricted cells: the built-ins that they see, and what their attributes and items go through."""

from __future__ import annotations

import builtins
import functools
import operator
import string
import types
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from RestrictedPython.Guards import guarded_iter_unpack_sequence, guarded_unpack_sequence, safe_builtins

from ..worker import STAND_INS, DepthExceeded, SubCallError
from .modules import Facade, importer
from .policy import PUBLIC, forbidden_attribute

MAIN = "__main__"  # where classes of cells say that they live
_MISSING = object()

_SIGNS = "+ - * / // % ** << >> | ^ & @"
_OPERATORS = "iadd isub imul itruediv ifloordiv imod ipow ilshift irshift ior ixor iand imatmul"
_IN_PLACE: Mapping[str, Callable[[Any, Any], Any]] = {
    f"{s}=": getattr(operator, name) for s, name in zip(_SIGNS.split(), _OPERATORS.split(), strict=True)
}

_AS_THEY_ARE = (
    "print list dict set frozenset tuple bytes bytearray enumerate zip map filter sorted reversed min max sum any all "
    "iter next format ascii bin object property staticmethod classmethod super NotImplemented ExceptionGroup "
    "BaseExceptionGroup StopAsyncIteration TimeoutError FileNotFoundError PermissionError FileExistsError "
    "ConnectionError RecursionError ModuleNotFoundError"
)


def get_attribute(o: Any, name: str, default: Any = _MISSING) -> Any:
    """`getattr` for cells: no way to frames, code, other modules or private parts of what is not theirs."""
    if type(name) is not str:
        raise TypeError("attribute name must be string")
    if name in ("format", "format_map") and (isinstance(o, str) or (isinstance(o, type) and issubclass(o, str))):
        return _formatter(o, name)
    if forbidden_attribute(name) or (name[:1] == "_" and name[:2] != "__" and not _may_be_private(o, name)):
        raise AttributeError(f"the attribute {name!r} cannot be read in a restricted session")
    if isinstance(o, types.ModuleType) and not isinstance(o, Facade):
        raise AttributeError("this module was not imported by a cell; import it, if that is allowed")
    value = getattr(o, name) if default is _MISSING else getattr(o, name, default)
    if value is type:
        return OneArgumentType
    if isinstance(value, types.ModuleType) and not isinstance(value, Facade):
        raise AttributeError(f"the attribute {name!r} is a module; import it, if that is allowed")
    return value


def _may_be_private(o: Any, name: str) -> bool:
    if name in PUBLIC:
        return True
    kind = o if isinstance(o, type) else type(o)
    if kind is super:
        kind = o.__self_class__
    return kind.__module__ == MAIN


def write_guard(o: Any) -> Any:
    """Let cells change any object but modules, classes and functions that are not their own."""
    if isinstance(o, types.ModuleType):
        raise TypeError("modules cannot be changed in a restricted session")
    if isinstance(o, (type, types.FunctionType)) and o.__module__ != MAIN:
        raise TypeError(f"{o.__name__} cannot be changed in a restricted session: it was not made in a cell")
    return o


def set_attribute(o: Any, name: str, value: Any) -> None:
    setattr(write_guard(o), _writable(o, name), value)


def delete_attribute(o: Any, name: str) -> None:
    delattr(write_guard(o), _writable(o, name))


def _writable(o: Any, name: str) -> str:
    if type(name) is not str or forbidden_attribute(name) or (name[:1] == "_" and not _may_be_private(o, name)):
        raise AttributeError(f"the attribute {name!r} cannot be changed in a restricted session")
    return name


def has_attribute(o: Any, name: str) -> bool:
    try:
        get_attribute(o, name)
    except AttributeError:
        return False
    return True


class _Formatter(string.Formatter):
    """`str.format` whose fields are read through the guard."""

    def get_field(self, field_name: str, args: Any, kwargs: Any) -> Any:
        from _string import formatter_field_name_split  # pyright: ignore[reportMissingImports]

        first, rest = formatter_field_name_split(field_name)
        o = self.get_value(first, args, kwargs)
        for is_attribute, key in rest:
            o = get_attribute(o, key) if is_attribute else o[key]
        return o, first


def _formatter(o: Any, name: str) -> Callable[..., str]:
    """`o.format` or `o.format_map`, where `o` is a text or a class of texts."""

    def method(text: str, /, *args: Any, **kwargs: Any) -> str:
        return _Formatter().vformat(text, args, kwargs)

    def of_mapping(text: str, mapping: Mapping[str, Any], /) -> str:
        return _Formatter().vformat(text, (), mapping)

    function = method if name == "format" else of_mapping
    return functools.partial(function, o) if isinstance(o, str) else function


class _TypeLike(type):
    def __call__(cls, o: Any) -> Any:
        kind = builtins.type(o)
        return OneArgumentType if kind is builtins.type else kind

    def __instancecheck__(cls, o: Any) -> bool:
        return isinstance(o, builtins.type)


class OneArgumentType(metaclass=_TypeLike):
    """`type` as far as it tells the type of a value: with three arguments it could make classes past the policy."""

    def __class_getitem__(cls, item: Any) -> Any:
        return builtins.type[item]


OneArgumentType.__name__ = OneArgumentType.__qualname__ = "type"


def wraps(wrapped: Any) -> Callable[[Any], Any]:
    """`functools.wraps` without a choice of attributes: it would read any, past the guard."""
    return functools.wraps(wrapped)


def guarded_open(folder: str) -> Callable[..., Any]:
    """`open` for files in the working folder."""

    def open_(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        if not isinstance(file, str):
            raise TypeError("open() takes the name of a file in the working folder")
        path = Path(folder, file).resolve()
        if not path.is_relative_to(folder):
            raise PermissionError(f"{file!r} is outside the working folder; a restricted session opens no other files")
        if "b" not in mode and len(args) < 2:
            kwargs.setdefault("encoding", "utf-8")
        return builtins.open(path, mode, *args, **kwargs)

    return open_


def _help(o: Any) -> None:
    import pydoc

    print(pydoc.plain(pydoc.render_doc(o)))


def restricted_builtins(imports: Iterable[str], folder: str, names: Mapping[str, Any]) -> dict[str, Any]:
    """The `__builtins__` of cells: `open` works in `folder`, `names` is the namespace."""

    def public() -> dict[str, Any]:
        return {n: v for n, v in names.items() if not n.startswith("_")}

    def dir_(o: Any = _MISSING) -> list[str]:
        return sorted(public()) if o is _MISSING else [n for n in dir(o) if not n.startswith("_")]

    return {
        **{n: v for n, v in safe_builtins.items() if not n.startswith("_")},
        **{n: getattr(builtins, n) for n in _AS_THEY_ARE.split()},
        **STAND_INS,
        "__build_class__": builtins.__build_class__,
        "__import__": importer(imports, {"functools": {"wraps": wraps}}),
        "open": guarded_open(folder),
        "help": _help,
        "dir": dir_,
        "SubCallError": SubCallError,
        "DepthExceeded": DepthExceeded,
        "globals": public,
        "type": OneArgumentType,
        "getattr": get_attribute,
        "hasattr": has_attribute,
        "setattr": set_attribute,
        "delattr": delete_attribute,
        # what the policy's rewriting calls
        "_getattr_": get_attribute,
        "_getitem_": operator.getitem,
        "_getiter_": _itself,
        "_iter_unpack_sequence_": guarded_iter_unpack_sequence,
        "_unpack_sequence_": guarded_unpack_sequence,
        "_write_": write_guard,
        "_inplacevar_": _in_place,
        "_apply_": operator.call,
    }


def _itself(o: Any) -> Any:
    return o


def _in_place(kind: str, old: Any, new: Any) -> Any:
    return _IN_PLACE[kind](old, new)

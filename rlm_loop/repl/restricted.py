"""The REPL in the process of a restricted session: the worker's own, with guards around its cells.

RestrictedPython rewrites a syntax tree so that reading attributes, items and iterators, and writing, go through
guards, and refuses what it does not know.  Here allowed too: annotated and augmented assignment, `nonlocal`,
metaclasses, most double-underscore methods, and names and attributes with one leading underscore (the guards let such
attributes be read on the cells' own classes only).

The process imports this file and `worker.py` by their place, not the package.
"""

from __future__ import annotations

import ast
import builtins
import functools
import operator
import pydoc
import string
import sys
import types
from _string import formatter_field_name_split  # pyright: ignore[reportMissingImports]
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from RestrictedPython.Guards import guarded_iter_unpack_sequence, guarded_unpack_sequence, safe_builtins
from RestrictedPython.transformer import INSPECT_ATTRIBUTES, RestrictingNodeTransformer

from .worker import MISSING, STAND_INS, AnswerSlot, DepthExceeded, Link, Repl, SubCallError

# ---------------------------------------------------------------------------------------------- the language

_METHODS = (
    "init new post_init repr str format bytes bool len length_hint iter next reversed contains hash call index "
    "eq ne lt le gt ge int float complex round trunc floor ceil neg pos abs invert enter exit getitem setitem "
    "delitem missing copy deepcopy getattr class_getitem init_subclass set_name get set delete sizeof dir "
    "add sub mul matmul truediv floordiv mod divmod pow lshift rshift and xor or "
    "radd rsub rmul rmatmul rtruediv rfloordiv rmod rdivmod rpow rlshift rrshift rand rxor ror "
    "iadd isub imul imatmul itruediv ifloordiv imod ipow ilshift irshift iand ixor ior"
)
METHODS = frozenset(f"__{name}__" for name in _METHODS.split())
"""Methods that a class may define, and that may be called by name (`super().__init__()`)."""

READABLE = METHODS | {"__name__", "__qualname__", "__doc__", "__class__", "__version__", "__members__"}
"""Attributes with two underscores that may be read."""

IN_CLASS = frozenset({"__slots__", "__match_args__", "__hash__", "__doc__", "__name__"})
"""Names with two underscores that may be used, most of them in a class."""

#: Single-underscore attributes of the standard library that are part of its interface (named tuples, enums).
PUBLIC = frozenset({"_asdict", "_replace", "_fields", "_make", "_field_defaults", "_value_", "_name_", "_missing_"})


def forbidden_attribute(name: str) -> bool:
    """Return True for an attribute that may be neither read nor written, whatever the object is."""
    return name in INSPECT_ATTRIBUTES or (name.startswith("__") and name not in READABLE)


class Policy(RestrictingNodeTransformer):
    """Transforms one cell; raises `SyntaxError` at the first thing that is not allowed."""

    def __init__(self, file: str) -> None:
        super().__init__()
        self._file = file

    def error(self, node: ast.AST, info: str) -> None:
        place = (self._file, getattr(node, "lineno", 1), None, None)
        raise SyntaxError(f"not allowed in a restricted session: {info.rstrip('.')}", place)

    def check_name(self, node: Any, name: str | None, allow_magic_methods: bool = False) -> None:
        if name is None or not (name.startswith("_") and name.endswith("_") and len(name) > 2):
            return
        if not (name in IN_CLASS or (allow_magic_methods and name in METHODS) or name in PUBLIC):
            self.error(node, f"the name {name!r}")

    def visit_Name(self, node: ast.Name) -> Any:
        self.check_name(node, node.id)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        name = node.attr
        if forbidden_attribute(name):
            self.error(node, f"the attribute {name!r}")
        node.attr = "checked"  # the base class would refuse whatever begins with an underscore
        made: Any = super().visit_Attribute(node)
        if isinstance(made, ast.Call):
            made.args[1].value = name  # type: ignore[attr-defined]
        else:
            made.attr = name
        return made

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        self.check_name(node, node.name)
        return self.node_contents_visit(node)

    visit_Nonlocal = visit_AnnAssign = visit_AugAssign = RestrictingNodeTransformer.node_contents_visit


# ------------------------------------------------------------------------------------------------ modules

# Of these only so much: the rest opens files, makes code, reaches frames or changes the process.
_ONLY = {
    "io": "StringIO BytesIO",
    "types": "SimpleNamespace MappingProxyType",
    "sys": "maxsize float_info int_info version version_info getsizeof getrecursionlimit exit byteorder",
    "time": "time time_ns perf_counter perf_counter_ns monotonic process_time sleep strftime strptime gmtime localtime "
    "mktime ctime asctime struct_time",
}
_WITHOUT = {
    "typing": "get_type_hints ForwardRef",  # evaluates annotations, unguarded, as `singledispatch` does
    "string": "Formatter",
    "contextlib": "redirect_stdout redirect_stderr chdir",
    "enum": "global_enum global_enum_repr global_str global_flag_repr",
    "hashlib": "file_digest",
    "operator": "attrgetter methodcaller",
    "functools": "update_wrapper singledispatch singledispatchmethod",
}


imports: frozenset[str] = frozenset()
"""The modules that the cells of this process may import."""


def allowed(module: str) -> bool:
    """Return True for a listed module, and for each module of a listed package that is not the standard library's."""
    package = module.partition(".")[0]
    return module in imports or (package in imports and package not in sys.stdlib_module_names)


def offered(module: types.ModuleType, name: str) -> bool:
    """Return True for what cells see of a module: what it offers by name, and its own modules that are allowed."""
    value = getattr(module, name, None)
    if isinstance(value, types.ModuleType):
        return value.__name__ == f"{module.__name__}.{name}" and allowed(value.__name__)
    public = getattr(module, "__all__", None) or [n for n in dir(module) if not n.startswith("_")]
    only = _ONLY.get(module.__name__, "").split() or public
    listed = name in public and name in only and name not in _WITHOUT.get(module.__name__, "").split()
    return listed and allowed(module.__name__)


def import_(
    name: str, globals: Any = None, locals: Any = None, fromlist: tuple[str, ...] | None = (), level: int = 0
) -> Any:
    """`__import__` for cells."""
    if level or not allowed(name):
        listed = ", ".join(sorted(n for n in imports if n != "__future__" and "." not in n))
        raise ImportError(f"{name!r} cannot be imported here, only {listed}")
    module = builtins.__import__(name, fromlist=fromlist or ())
    for item in fromlist or ():
        if not offered(module, item):
            raise ImportError(f"cannot import {item!r} from {name!r} in a restricted session")
    return module


# ----------------------------------------------------------------------------------------------- built-ins

_AS_THEY_ARE = (
    "print list dict set frozenset tuple bytes bytearray enumerate zip map filter sorted reversed min max sum any all "
    "iter next format ascii bin object property staticmethod classmethod super NotImplemented ExceptionGroup "
    "BaseExceptionGroup StopAsyncIteration TimeoutError FileNotFoundError PermissionError FileExistsError "
    "ConnectionError RecursionError ModuleNotFoundError"
)


def get_attribute(o: Any, name: str, *default: Any) -> Any:
    """`getattr` for cells: no way to frames, code, other modules or private parts of what is not theirs."""
    value = getattr(o, _permitted(o, name), *default)
    if isinstance(o, types.ModuleType):
        if not offered(o, name):
            raise AttributeError(f"module {o.__name__!r} has no attribute {name!r} in a restricted session")
    elif isinstance(value, types.ModuleType):
        raise AttributeError(f"the attribute {name!r} is a module; import it, if that is allowed")
    if value is str.format or value is str.format_map:
        raise AttributeError("a restricted session formats by the method of a text, as in '{}'.format(1)")
    if isinstance(value, types.BuiltinMethodType) and isinstance(value.__self__, str):
        if value.__name__ == "format":
            return functools.partial(_Formatter().format, value.__self__)
        if value.__name__ == "format_map":
            return functools.partial(_Formatter().vformat, value.__self__, ())
    return type_of if value is type else value


class _Formatter(string.Formatter):
    """`str.format` whose fields are read through the guard: a field may name an attribute."""

    def get_field(self, field_name: str, args: Any, kwargs: Any) -> Any:
        first, rest = formatter_field_name_split(field_name)
        o = self.get_value(first, args, kwargs)
        for is_attribute, key in rest:
            o = get_attribute(o, key) if is_attribute else o[key]
        return o, first


def _permitted(o: Any, name: str) -> str:
    """Return the name of an attribute that cells may reach; raise `AttributeError` for any other.

    Private parts are those of what cells made, and those that are part of an interface.
    """
    kind = o if isinstance(o, type) else type(o)
    own = name in PUBLIC or (o.__self_class__ if kind is super else kind).__module__ == "__main__"
    if type(name) is not str or forbidden_attribute(name) or (name[:1] == "_" != name[1:2] and not own):
        raise AttributeError(f"the attribute {name!r} cannot be read in a restricted session")
    return name


def write_guard(o: Any) -> Any:
    """Let cells change any object but modules, classes and functions that are not their own."""
    if isinstance(o, types.ModuleType):
        raise TypeError("modules cannot be changed in a restricted session")
    if isinstance(o, (type, types.FunctionType)) and o.__module__ != "__main__":
        raise TypeError(f"{o.__name__} cannot be changed in a restricted session: it was not made in a cell")
    return o


def has_attribute(o: Any, name: str) -> bool:
    return get_attribute(o, name, MISSING) is not MISSING


def type_of(o: Any) -> Any:
    """`type` as far as it tells the type of a value: with three arguments it could make classes past the policy."""
    kind = type(o)
    return type_of if kind is type else kind


def _open(folder: str, file: Any, *args: Any, **kwargs: Any) -> Any:
    """`open` for files in the working folder."""
    path = Path(folder, file).resolve() if isinstance(file, str) else Path()
    if not path.is_relative_to(folder):
        raise PermissionError(f"{file!r} is outside the working folder; a restricted session opens no other files")
    return builtins.open(path, *args, **kwargs)


def help_(o: Any) -> None:
    print(pydoc.plain(pydoc.render_doc(o)))


def restricted_builtins(folder: str, names: Mapping[str, Any]) -> dict[str, Any]:
    """The `__builtins__` of cells: `open` works in `folder`, `names` is the namespace."""

    def public() -> dict[str, Any]:
        return {n: v for n, v in names.items() if not n.startswith("_")}

    def dir_(*of: Any) -> list[str]:
        return [n for n in (dir(*of) if of else sorted(names)) if not n.startswith("_")]

    return {
        **{n: v for n, v in safe_builtins.items() if not n.startswith("_")},
        **{n: getattr(builtins, n) for n in _AS_THEY_ARE.split()},
        **STAND_INS,
        "__build_class__": builtins.__build_class__,
        "__import__": import_,
        "open": functools.partial(_open, folder),
        "help": help_,
        "dir": dir_,
        "SubCallError": SubCallError,
        "DepthExceeded": DepthExceeded,
        "globals": public,
        "type": type_of,
        "getattr": get_attribute,
        "hasattr": has_attribute,
        # what the policy's rewriting calls
        "_getattr_": get_attribute,
        "_getitem_": operator.getitem,
        "_getiter_": iter,
        "_iter_unpack_sequence_": guarded_iter_unpack_sequence,
        "_unpack_sequence_": guarded_unpack_sequence,
        "_write_": write_guard,
        "_apply_": operator.call,
    }


class RestrictedRepl(Repl):
    """The REPL of restricted cells."""

    def __init__(self, link: Link, cap: int, allow: list[str]) -> None:
        global imports
        super().__init__(link, cap)
        imports = frozenset(allow)
        self.guarded = restricted_builtins(self.folder, self.names)
        self.names["__builtins__"] = self.guarded
        self.answer = AnswerSlot(self.names, self.guarded)

    def compiled(self, tree: Any, file: str, mode: str) -> types.CodeType:
        return super().compiled(ast.fix_missing_locations(Policy(file).visit(tree)), file, mode)

    def _tidy(self) -> list[str]:
        restored = super()._tidy()
        self.names["__builtins__"] = self.guarded
        return restored

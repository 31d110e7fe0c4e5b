"""The REPL in the process of a restricted session: the worker's own, with guards around its cells.

RestrictedPython rewrites a syntax tree so that reading attributes, items and iterators, and writing, go through
guards, and refuses what it does not know.  Here allowed too: annotated assignment, augmented assignment of items and
attributes, `nonlocal`, metaclasses, most double-underscore methods, and names and attributes with one leading
underscore (the guards let such attributes be read on the cells' own classes only).

The process imports this folder and `worker.py` by their place, not the package.
"""

from __future__ import annotations

import ast
import builtins
import functools
import operator
import pydoc
import string
import types
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from RestrictedPython.Guards import guarded_iter_unpack_sequence, guarded_unpack_sequence, safe_builtins
from RestrictedPython.transformer import INSPECT_ATTRIBUTES, RestrictingNodeTransformer

from ..worker import STAND_INS, AnswerSlot, DepthExceeded, Link, Repl, SubCallError
from .modules import Facade, importer

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

IN_CLASS = frozenset({"__slots__", "__match_args__", "__hash__", "__doc__"})
GLOBAL = frozenset({"__name__", "__doc__"})

#: Single-underscore attributes of the standard library that are part of its interface (named tuples, enums).
PUBLIC = frozenset({"_asdict", "_replace", "_fields", "_make", "_field_defaults", "_value_", "_name_", "_missing_"})


def forbidden_attribute(name: str) -> bool:
    """Return True for an attribute that may be neither read nor written, whatever the object is."""
    if name in INSPECT_ATTRIBUTES:
        return True
    return name.startswith("__") and name.endswith("__") and name not in READABLE


class Policy(RestrictingNodeTransformer):
    """Transforms one cell; raises `SyntaxError` at the first thing that is not allowed."""

    def __init__(self, file: str) -> None:
        super().__init__()
        self._file = file
        self._classes: list[str] = []

    def error(self, node: ast.AST, info: str) -> None:
        place = (self._file, getattr(node, "lineno", 1), None, None)
        raise SyntaxError(f"not allowed in a restricted session: {info.rstrip('.')}", place)

    # -- names

    def gen_tmp_name(self) -> str:
        return f"_guarded{super().gen_tmp_name()}"  # no cell has such a name

    def check_name(self, node: Any, name: str | None, allow_magic_methods: bool = False) -> None:
        if name is None or not (name.startswith("_") and name.endswith("_") and len(name) > 2):
            return
        if not (self._classes and (name in IN_CLASS or (allow_magic_methods and name in METHODS) or name in PUBLIC)):
            self.error(node, f"the name {name!r}")

    def visit_Name(self, node: ast.Name) -> Any:
        if not (isinstance(node.ctx, ast.Load) and node.id in GLOBAL):
            self.check_name(node, node.id)
        return node

    # -- attributes and items

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        name = self._mangled(node.attr)
        if forbidden_attribute(name):
            self.error(node, f"the attribute {name!r}")
        node.attr = "checked"  # the base class would refuse whatever begins with an underscore
        made: Any = super().visit_Attribute(node)
        if isinstance(made, ast.Call):
            made.args[1].value = name  # type: ignore[attr-defined]
        else:
            made.attr = name
        return made

    def _mangled(self, name: str) -> str:
        """Python's own rule for `self.__x` in a class, which it would not apply to a rewritten attribute."""
        if self._classes and name.startswith("__") and not name.endswith("__"):
            return f"_{self._classes[-1].lstrip('_')}{name}"
        return name

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        """Rewrite `a.n += v` as `t = a; u = t.n; u += v; t.n = u`, each guarded: others are read without a guard."""
        if not isinstance(node.target, ast.Attribute):
            return self.node_contents_visit(node)
        o, value, name = self.gen_tmp_name(), self.gen_tmp_name(), node.target.attr
        code = f"{o} = 0\n{value} = {o}.{name}\n{value} += 0\n{o}.{name} = {value}\ndel {o}, {value}"
        made: list[Any] = ast.parse(code).body
        for part in (part for statement in made for part in ast.walk(statement)):
            ast.copy_location(part, node)
        made[0].value, made[2].op, made[2].value = node.target.value, node.op, node.value
        return [self.visit(statement) for statement in made]

    # -- functions and classes

    def visit_arg(self, node: ast.arg) -> Any:
        node.annotation = None  # a text in it might be evaluated, by `functools.singledispatch` for one
        return self.node_contents_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        node.returns = None
        return super().visit_FunctionDef(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        self.check_name(node, node.name)
        self._classes.append(node.name)
        try:
            return self.node_contents_visit(node)
        finally:
            self._classes.pop()

    visit_Nonlocal = visit_AnnAssign = RestrictingNodeTransformer.node_contents_visit


MAIN = "__main__"  # where classes of cells say that they live

_AS_THEY_ARE = (
    "print list dict set frozenset tuple bytes bytearray enumerate zip map filter sorted reversed min max sum any all "
    "iter next format ascii bin object property staticmethod classmethod super NotImplemented ExceptionGroup "
    "BaseExceptionGroup StopAsyncIteration TimeoutError FileNotFoundError PermissionError FileExistsError "
    "ConnectionError RecursionError ModuleNotFoundError"
)


def get_attribute(o: Any, name: str, *default: Any) -> Any:
    """`getattr` for cells: no way to frames, code, other modules or private parts of what is not theirs."""
    value = getattr(o, _permitted(o, name), *default)
    if value is type:
        return OneArgumentType
    if isinstance(value, types.ModuleType) and not isinstance(value, Facade):
        raise AttributeError(f"the attribute {name!r} is a module; import it, if that is allowed")
    if value is str.format or value is str.format_map:
        raise AttributeError("a restricted session formats by the method of a text, as in '{}'.format(1)")
    if isinstance(value, types.BuiltinMethodType) and isinstance(text := value.__self__, str):
        if value.__name__ == "format":
            return functools.partial(_Formatter().format, text)
        if value.__name__ == "format_map":
            return functools.partial(_Formatter().vformat, text, ())
    return value


def _permitted(o: Any, name: str, use: str = "read") -> str:
    """Return the name of an attribute that cells may reach; raise `AttributeError` for any other."""
    if isinstance(o, types.ModuleType) and not isinstance(o, Facade):
        raise AttributeError("this module was not imported by a cell; import it, if that is allowed")
    if type(name) is not str or forbidden_attribute(name) or (name[:1] == "_" != name[1:2] and not _own(o, name)):
        raise AttributeError(f"the attribute {name!r} cannot be {use} in a restricted session")
    return name


def _own(o: Any, name: str) -> bool:
    """Return True for private parts of what cells made, and for those that are part of an interface."""
    kind = o if isinstance(o, type) else type(o)
    return name in PUBLIC or (o.__self_class__ if kind is super else kind).__module__ == MAIN


def write_guard(o: Any) -> Any:
    """Let cells change any object but modules, classes and functions that are not their own."""
    if isinstance(o, types.ModuleType):
        raise TypeError("modules cannot be changed in a restricted session")
    if isinstance(o, (type, types.FunctionType)) and o.__module__ != MAIN:
        raise TypeError(f"{o.__name__} cannot be changed in a restricted session: it was not made in a cell")
    return o


def set_attribute(o: Any, name: str, value: Any) -> None:
    setattr(write_guard(o), _permitted(o, name, "changed"), value)


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


class _TypeLike(type):
    def __call__(cls, o: Any) -> Any:
        kind = builtins.type(o)
        return OneArgumentType if kind is builtins.type else kind

    def __instancecheck__(cls, o: Any) -> bool:
        return isinstance(o, builtins.type)


OneArgumentType = _TypeLike.__new__(_TypeLike, "type", (), {})
"""`type` as far as it tells the type of a value: with three arguments it could make classes past the policy."""


def guarded_open(folder: str) -> Callable[..., Any]:
    """`open` for files in the working folder."""

    def open_(file: Any, *args: Any, **kwargs: Any) -> Any:
        path = Path(folder, file).resolve() if isinstance(file, str) else Path()
        if not path.is_relative_to(folder):
            raise PermissionError(f"{file!r} is outside the working folder; a restricted session opens no other files")
        return builtins.open(path, *args, **kwargs)

    return open_


def _help(o: Any) -> None:
    print(pydoc.plain(pydoc.render_doc(o)))


def restricted_builtins(imports: Iterable[str], folder: str, names: Mapping[str, Any]) -> dict[str, Any]:
    """The `__builtins__` of cells: `open` works in `folder`, `names` is the namespace."""

    def public() -> dict[str, Any]:
        return {n: v for n, v in names.items() if not n.startswith("_")}

    def dir_(*of: Any) -> list[str]:
        return [n for n in dir(*of) if not n.startswith("_")] if of else sorted(public())

    return {
        **{n: v for n, v in safe_builtins.items() if not n.startswith("_")},
        **{n: getattr(builtins, n) for n in _AS_THEY_ARE.split()},
        **STAND_INS,
        "__build_class__": builtins.__build_class__,
        "__import__": importer(imports),
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

    def __init__(self, link: Link, cap: int, imports: list[str]) -> None:
        super().__init__(link, cap)
        self.guarded = restricted_builtins(imports, self.folder, self.names)
        self.names["__builtins__"] = self.guarded
        self.answer = AnswerSlot(self.names, self.guarded)

    def compiled(self, tree: Any, file: str, mode: str) -> types.CodeType:
        return super().compiled(ast.fix_missing_locations(Policy(file).visit(tree)), file, mode)

    def _tidy(self) -> list[str]:
        restored = super()._tidy()
        self.names["__builtins__"] = self.guarded
        return restored

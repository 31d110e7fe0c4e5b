"""The language of restricted cells: RestrictedPython's rules, with what ordinary analysis code needs besides.

RestrictedPython rewrites a syntax tree so that reading attributes, items and iterators, and writing, go through
guards (`guards.py`), and refuses what it does not know.  Here allowed too: annotated assignment, augmented
assignment of items and attributes, `nonlocal`, metaclasses, most double-underscore methods, and names and
attributes with one leading underscore (the guards let such attributes be read on the cells' own classes only).
"""

from __future__ import annotations

import ast
import re
from typing import Any

from RestrictedPython.transformer import (
    INSPECT_ATTRIBUTES,
    IOPERATOR_TO_STR,
    RestrictingNodeTransformer,
    copy_locations,
)

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

_OURS = re.compile(r"_tmp\d+|_print")


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

    def check_name(self, node: Any, name: str | None, allow_magic_methods: bool = False) -> None:
        if name is None or not name.startswith("_") or name == "_":
            return
        if name.endswith("_") and len(name) > 2:
            if self._classes and (name in IN_CLASS or (allow_magic_methods and name in METHODS) or name in PUBLIC):
                return
        elif not _OURS.fullmatch(name):
            return
        self.error(node, f"the name {name!r}")

    def visit_Name(self, node: ast.Name) -> Any:
        if not (isinstance(node.ctx, ast.Load) and node.id in GLOBAL):
            self.check_name(node, node.id)
        return node

    def visit_Global(self, node: ast.Global | ast.Nonlocal) -> Any:
        for name in node.names:
            self.check_name(node, name)
        return node

    visit_Nonlocal = visit_Global

    # -- attributes and items

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        node.attr = self._mangled(node.attr)
        if forbidden_attribute(node.attr):
            self.error(node, f"the attribute {node.attr!r}")
        node = self.node_contents_visit(node)
        guard = "_getattr_" if isinstance(node.ctx, ast.Load) else "_write_"
        args: list[ast.expr] = [node.value]
        if isinstance(node.ctx, ast.Load):
            args.append(ast.Constant(node.attr))
        call = ast.Call(func=ast.Name(guard, ast.Load()), args=args, keywords=[])
        copy_locations(call, node)
        if isinstance(node.ctx, ast.Load):
            return call
        node.value = call
        return node

    def _mangled(self, name: str) -> str:
        """Python's own rule for `self.__x` in a class, which it would not apply to a rewritten attribute."""
        if self._classes and name.startswith("__") and not name.endswith("__"):
            return f"_{self._classes[-1].lstrip('_')}{name}"
        return name

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        """`a[k] += v` becomes `_write_(t0)[t1] = _inplacevar_("+=", _getitem_(t0 := a, t1 := k), v)`.

        The right side comes first in Python, so each part is evaluated once, and in the order of the original.
        """
        if isinstance(node.target, ast.Name):
            return super().visit_AugAssign(node)
        operator = next(text for kind, text in IOPERATOR_TO_STR.items() if isinstance(node.op, kind))
        target, value = node.target, self.visit(node.value)
        assert isinstance(target, (ast.Attribute, ast.Subscript))
        names = [self.gen_tmp_name()]
        load: list[ast.expr] = [ast.NamedExpr(ast.Name(names[0], ast.Store()), self.visit(target.value))]
        place: ast.expr
        written = ast.Call(ast.Name("_write_", ast.Load()), [ast.Name(names[0], ast.Load())], [])
        if isinstance(target, ast.Attribute):
            attribute = self._mangled(target.attr)
            if forbidden_attribute(attribute):
                self.error(node, f"the attribute {attribute!r}")
            load.append(ast.Constant(attribute))
            guard, place = "_getattr_", ast.Attribute(written, attribute, ast.Store())
        else:
            names.append(self.gen_tmp_name())
            load.append(ast.NamedExpr(ast.Name(names[1], ast.Store()), self._as_value(self.visit(target.slice))))
            guard, place = "_getitem_", ast.Subscript(written, ast.Name(names[1], ast.Load()), ast.Store())
        old = ast.Call(ast.Name(guard, ast.Load()), load, [])
        new = ast.Call(ast.Name("_inplacevar_", ast.Load()), [ast.Constant(operator), old, value], [])
        assign = ast.Assign([place], new)
        drop = ast.Assign([ast.Name(n, ast.Store()) for n in names], ast.Constant(None))
        for made in (assign, drop):
            copy_locations(made, node)
        return [assign, drop]

    def _as_value(self, index: ast.expr) -> ast.expr:
        """A slice as an expression of its own."""
        if isinstance(index, ast.Slice):
            parts = [p or ast.Constant(None) for p in (index.lower, index.upper, index.step)]
            return ast.Call(ast.Name("slice", ast.Load()), parts, [])
        if isinstance(index, ast.Tuple):
            return ast.Tuple([self._as_value(e) for e in index.elts], ast.Load())
        return index

    # -- functions and classes

    def visit_arg(self, node: ast.arg) -> Any:
        node.annotation = None  # a text in it might be evaluated, by `functools.singledispatch` for one
        return self.node_contents_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        node.returns = None
        self.check_name(node, node.name, allow_magic_methods=True)
        self.check_function_argument_names(node)
        return self.node_contents_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        self.check_name(node, node.name)
        node.decorator_list = [self.visit(d) for d in node.decorator_list]
        node.bases = [self.visit(b) for b in node.bases]
        for keyword in node.keywords:
            keyword.value = self.visit(keyword.value)
        self._classes.append(node.name)
        try:
            body: list[ast.stmt] = []
            for statement in node.body:
                made = self.visit(statement)
                body += made if isinstance(made, list) else [made]
            node.body = body
        finally:
            self._classes.pop()
        return node

    def _allowed(self, node: ast.AST) -> Any:
        return self.node_contents_visit(node)

    visit_Module = visit_AnnAssign = _allowed

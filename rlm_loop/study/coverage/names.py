"""Which names each statement of a cell reads and binds: read off the code, nothing is run."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

ASKS = frozenset({"llm_query", "llm_query_batched"})
ANSWER = "final_answer"
CONTEXT = "context"

#: Functions that do not change what they are given; a statement that calls another one may.
_HARMLESS = frozenset({"print", "display", "len", "repr", "type", "help", "dir", "assert_", *ASKS})


@dataclass(frozen=True)
class Statement:
    """A top-level statement: the names it reads, binds (changes included) and surely binds anew (`kills`).

    `slices` are the constant slices of `context` in it, as (start, stop); `whole` says that `context` is read in
    another way as well.  `prints` marks what a cell shows (an expression, a `print`), `defines` a function or class.
    """

    line: int
    source: str
    reads: frozenset[str] = frozenset()
    binds: frozenset[str] = frozenset()
    kills: frozenset[str] = frozenset()
    slices: tuple[tuple[int | None, int | None], ...] = ()
    whole: bool = False
    prints: bool = False
    defines: bool = False


def statements(code: str) -> list[Statement]:
    """The statements of a cell in order; none where it is not Python."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    return [_statement(node, code) for node in tree.body]


def _statement(node: ast.stmt, code: str) -> Statement:
    names = _Names()
    names.visit(node)
    source = (ast.get_source_segment(code, node) or "").strip().split("\n")
    slices, whole = _context_reads(node)
    return Statement(
        node.lineno,
        source[0] + (" ..." if len(source) > 1 else ""),
        frozenset(names.reads),
        frozenset(names.binds),
        frozenset(_kills(node)),
        tuple(slices),
        whole,
        _shows(node),
        isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)),
    )


def _kills(node: ast.stmt) -> Iterator[str]:
    """Names that a statement surely binds anew, whatever they were."""
    match node:
        case ast.Assign(targets=targets):
            for target in targets:
                for part in target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]:
                    if isinstance(part, ast.Name):
                        yield part.id
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr()):
            yield name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Expr(value=ast.Call(func=ast.Name(id=name))) if name == ANSWER:
            yield name
        case _:
            pass


def _shows(node: ast.stmt) -> bool:
    calls = [n for n in ast.walk(node) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)]
    return isinstance(node, ast.Expr) or any(getattr(c.func, "id", "") in ("print", "display") for c in calls)


def _context_reads(node: ast.AST) -> tuple[list[tuple[int | None, int | None]], bool]:
    """Constant slices of `context`, and whether it is read in any other way."""
    slices: list[tuple[int | None, int | None]] = []
    inside: set[int] = set()
    for part in ast.walk(node):
        if isinstance(part, ast.Subscript) and _is_context(part.value) and isinstance(part.slice, ast.Slice):
            bounds = [_constant(part.slice.lower), _constant(part.slice.upper)]
            if part.slice.step is None and all(known for known, _ in bounds):
                slices.append((bounds[0][1], bounds[1][1]))
                inside.add(id(part.value))
        elif isinstance(part, ast.Call) and isinstance(part.func, ast.Name) and part.func.id in ("len", "type"):
            inside.update(id(a) for a in part.args if _is_context(a))  # its size is none of its text
    others = [n for n in ast.walk(node) if _is_context(n) and id(n) not in inside]
    return slices, bool(others)


def _is_context(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == CONTEXT and isinstance(node.ctx, ast.Load)


def _constant(node: ast.expr | None) -> tuple[bool, int | None]:
    """Whether a bound of a slice is known, and its value."""
    if node is None:
        return True, None
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError):
        return False, None
    return isinstance(value, int), value if isinstance(value, int) else None


@dataclass
class _Names(ast.NodeVisitor):
    """Collects the names of one scope; what is local to functions and comprehensions inside stays there."""

    reads: set[str] = field(default_factory=set[str])
    binds: set[str] = field(default_factory=set[str])
    shared: set[str] = field(default_factory=set[str])

    def visit_Name(self, node: ast.Name) -> None:
        (self.reads if isinstance(node.ctx, ast.Load) else self.binds).add(node.id)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.generic_visit(node)
        self._changed(node.target)

    def visit_Attribute(self, node: ast.Attribute | ast.Subscript) -> None:
        self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load):
            self._changed(node)

    visit_Subscript = visit_Attribute

    def visit_Expr(self, node: ast.Expr) -> None:
        """A call whose value nobody takes is there for what it does: to its object, or to what it is given."""
        self.generic_visit(node)
        if not isinstance(node.value, ast.Call):
            return
        called = node.value.func
        if isinstance(called, ast.Attribute):
            self._changed(called)
        elif isinstance(called, ast.Name) and called.id == ANSWER:
            self.binds.add(ANSWER)
        elif isinstance(called, ast.Name) and called.id not in _HARMLESS:
            for argument in node.value.args:
                self._changed(argument)

    def visit_Import(self, node: ast.Import) -> None:
        self.binds |= {(a.asname or a.name).split(".")[0] for a in node.names}

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        self.binds |= {a.asname or a.name for a in node.names}

    def visit_Global(self, node: ast.Global) -> None:
        self.shared |= set(node.names)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        self.generic_visit(node)
        self.binds |= {node.name} if node.name else set()

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.binds.add(node.name)
        for outside in (*node.decorator_list, *node.args.defaults, *filter(None, node.args.kw_defaults)):
            self.visit(outside)
        self._scope(node.body, _arguments(node.args))

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._scope([node.body], _arguments(node.args))

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.binds.add(node.name)
        for outside in (*node.decorator_list, *node.bases):
            self.visit(outside)
        self._scope(node.body, set())

    def visit_ListComp(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> None:
        results = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        self._scope([*results, *node.generators], set())

    visit_SetComp = visit_GeneratorExp = visit_DictComp = visit_ListComp

    def _scope(self, parts: Sequence[ast.AST], own: set[str]) -> None:
        inner = _Names()
        for part in parts:
            inner.visit(part)
        self.reads |= inner.reads - (own | inner.binds - inner.shared)
        self.binds |= inner.binds & inner.shared

    def _changed(self, node: ast.AST) -> None:
        """The name at the root of `a.b[c]` is changed: read and bound."""
        while isinstance(node, (ast.Attribute, ast.Subscript)):
            node = node.value
        if isinstance(node, ast.Name):
            self.reads.add(node.id)
            self.binds.add(node.id)


def _arguments(arguments: ast.arguments) -> set[str]:
    found = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    return {a.arg for a in found if a is not None}

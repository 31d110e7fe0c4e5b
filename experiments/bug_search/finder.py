"""Single, small, seeded mutations of Python source: the kind of slip a person makes.

A mutation replaces one stretch of one line and leaves every other byte alone, so its repair is a one-line diff.
Operators after DeMillo et al., "Hints on Test Data Selection" (1978), and the common mutation testing tools.
"""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Iterator

from rlm_loop.tasks.mutation import Mutation, apply

#: Kinds of slips, and what stands for what.
_COMPARE: dict[type[ast.cmpop], tuple[str, tuple[str, ...]]] = {
    ast.Lt: (r"<", ("<=", ">")),
    ast.LtE: (r"<=", ("<", ">=")),
    ast.Gt: (r">", (">=", "<")),
    ast.GtE: (r">=", (">", "<=")),
    ast.Eq: (r"==", ("!=",)),
    ast.NotEq: (r"!=", ("==",)),
    ast.In: (r"in\b", ("not in",)),
    ast.NotIn: (r"not\s+in\b", ("in",)),
    ast.Is: (r"is\b", ("is not",)),
    ast.IsNot: (r"is\s+not\b", ("is",)),
}
_ARITHMETIC: dict[type[ast.operator], tuple[str, tuple[str, ...]]] = {
    ast.Add: (r"\+", ("-",)),
    ast.Sub: (r"-", ("+",)),
    ast.Mult: (r"\*", ("+", "//")),
    ast.Div: (r"/", ("//", "*")),
    ast.FloorDiv: (r"//", ("%", "/")),
    ast.Mod: (r"%", ("//",)),
    ast.Pow: (r"\*\*", ("*",)),
    ast.BitAnd: (r"&", ("|",)),
    ast.BitOr: (r"\|", ("&",)),
    ast.BitXor: (r"\^", ("&",)),
}
_NAMES = (
    ("upper", "lower"), ("isupper", "islower"), ("startswith", "endswith"), ("find", "rfind"), ("lstrip", "rstrip"),
    ("min", "max"), ("any", "all"), ("append", "extend"), ("floor", "ceil"), ("keys", "values"), ("isalpha", "isalnum"),
    ("isdigit", "isalpha"), ("union", "intersection"), ("swapcase", "title"),
)  # fmt: skip
_DROPPED = ("sorted", "set", "abs", "round", "reversed")  # calls that are easily forgotten around their argument
_BLANKS = {"''": "' '", '""': '" "', "' '": "''", '" "': '""'}
_SWAPS: dict[str, str] = {**{b: a for a, b in _NAMES}, **dict(_NAMES)}


Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(tree: ast.Module) -> Iterator[tuple[str, Function]]:
    """The top-level functions and the methods of top-level classes, with dotted names, in the order of the file."""
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    yield f"{node.name}.{inner.name}", inner


def mutations(source: str, function: str, seed: str | int, *, finder: type[Finder] | None = None) -> list[Mutation]:
    """Every mutation of the body of a function that compiles, in an order drawn from `seed`.

    `function` is a top-level one or a method, as `Class.method`.  `finder` knows the kinds of slips: those of this
    module, or more (see `wide_finder`).  Kinds take turns, so that constants, which are everywhere, do not crowd out
    the rest.
    """
    found_by = finder or Finder
    found: list[Mutation] = []
    for name, node in functions(ast.parse(source)):
        if name == function:
            found.extend(m for m in found_by(source).of_function(node) if _compiles(apply(source, m)))
    found = list(dict.fromkeys(found))
    draw = random.Random(str(seed))
    draw.shuffle(found)
    kinds = sorted({m.kind for m in found})
    draw.shuffle(kinds)
    turn: dict[str, int] = {}
    order: dict[Mutation, tuple[int, int]] = {}
    for mutation in found:
        turn[mutation.kind] = turn.get(mutation.kind, 0) + 1
        order[mutation] = (turn[mutation.kind], kinds.index(mutation.kind))
    return sorted(found, key=order.__getitem__)


class Finder:
    """Where a function can be mutated, by node of its syntax tree."""

    def __init__(self, source: str) -> None:
        self._lines = source.split("\n")

    def of_function(self, node: Function) -> Iterator[Mutation]:
        """Mutations of the body of a function, its docstring left alone."""
        documented = ast.get_docstring(node) is not None
        for statement in node.body[1:] if documented else node.body:
            yield from self.walk(statement)

    def walk(self, node: ast.AST) -> Iterator[Mutation]:
        """Mutations of a node and of what is below it."""
        if isinstance(node, ast.JoinedStr):  # before Python 3.12 the positions inside f-strings are wrong
            return
        yield from self._of(node)
        for child in ast.iter_child_nodes(node):
            yield from self.walk(child)

    def _of(self, node: ast.AST) -> Iterator[Mutation]:
        match node:
            case ast.Compare():
                operands = [node.left, *node.comparators]
                for left, operator, right in zip(operands, node.ops, operands[1:], strict=False):
                    yield from self._between(left, right, *_COMPARE[type(operator)], "compare")
            case ast.BoolOp():
                is_and = isinstance(node.op, ast.And)
                pattern, after = (r"and\b", "or") if is_and else (r"or\b", "and")
                for left, right in zip(node.values, node.values[1:], strict=False):
                    yield from self._between(left, right, pattern, (after,), "boolean")
            case ast.BinOp() if type(node.op) in _ARITHMETIC:
                yield from self._between(node.left, node.right, *_ARITHMETIC[type(node.op)], "arithmetic")
            case ast.AugAssign() if type(node.op) in _ARITHMETIC:
                pattern, after = _ARITHMETIC[type(node.op)]
                swaps = tuple(f"{text}=" for text in after)
                yield from self._between(node.target, node.value, pattern + "=", swaps, "arithmetic")
            case ast.Constant(value=bool()):
                yield from self._whole(node, str(not node.value), "constant")
            case ast.Constant(value=int() as value):
                for number in (value + 1, value - 1):
                    if number >= 0:
                        yield from self._whole(node, str(number), "constant")
            case ast.UnaryOp(op=ast.Not() | ast.USub()):
                kind = "negation" if isinstance(node.op, ast.Not) else "sign"
                yield from self._whole(node, self._text(node.operand), kind)
            case ast.Constant(value=str()) if (text := self._text(node)) in _BLANKS:
                yield from self._whole(node, _BLANKS[text], "blank")
            case ast.If() | ast.While() | ast.IfExp():
                yield from self._negated(node.test)
            case ast.comprehension():
                for test in node.ifs:
                    yield from self._negated(test)
            case ast.Return(value=ast.BoolOp() as value):
                yield from self._whole(value, f"not ({self._text(value)})", "negation")
            case ast.Call(func=ast.Name(id="range")):
                for bound in node.args[:2]:
                    yield from self._shift(bound, "range")
            case ast.Call(func=ast.Name(id="len")):
                yield from self._shift(node, "off by one")
            case ast.Call(func=ast.Name(id=name), args=[inner], keywords=[]) if self._may_drop(name, inner):
                yield from self._whole(node, self._text(inner), "call")
            case ast.Call(func=ast.Name(id=name)) if name in _SWAPS:
                yield from self._whole(node.func, _SWAPS[name], "name")
            case ast.Call(func=ast.Attribute(attr=name) as called) if name in _SWAPS:
                text = self._text(called)
                if text.endswith(name):
                    yield from self._whole(called, text.removesuffix(name) + _SWAPS[name], "name")
            case ast.Slice():
                for bound in (node.lower, node.upper):
                    if bound is not None:
                        yield from self._shift(bound, "slice")
            case ast.Break() | ast.Continue():
                yield from self._whole(node, "continue" if isinstance(node, ast.Break) else "break", "flow")
            case _:
                return

    @staticmethod
    def _may_drop(name: str, inner: ast.expr) -> bool:
        twice = isinstance(inner, ast.Call) and isinstance(inner.func, ast.Name) and inner.func.id == name
        return twice or (name in _DROPPED and not isinstance(inner, (ast.GeneratorExp, ast.Starred)))

    def _negated(self, test: ast.expr) -> Iterator[Mutation]:
        if isinstance(test, (ast.Name, ast.Call)):
            yield from self._whole(test, f"not {self._text(test)}", "negation")

    def _shift(self, bound: ast.expr, kind: str) -> Iterator[Mutation]:
        """One more and one less; of a constant the constant itself is the mutation."""
        if not isinstance(bound, ast.Constant):
            text = self._text(bound)
            for step in ("- 1", "+ 1"):
                undone = re.fullmatch(r"(.*\S)\s*" + re.escape("+ 1" if step == "- 1" else "- 1"), text)
                yield from self._whole(bound, undone[1] if undone else f"{text} {step}", kind)

    def _whole(self, node: ast.expr | ast.stmt, after: str, kind: str) -> Iterator[Mutation]:
        if node.lineno == node.end_lineno and (before := self._text(node)) and before != after and "\n" not in after:
            yield Mutation(node.lineno, self._column(node.lineno, node.col_offset), before, after, kind)

    def _between(
        self, left: ast.expr, right: ast.expr, pattern: str, swaps: tuple[str, ...], kind: str
    ) -> Iterator[Mutation]:
        """Replace the operator in the gap between two operands that stand on one line."""
        line = left.end_lineno or left.lineno
        if line != right.lineno:
            return
        start, end = self._column(line, left.end_col_offset or 0), self._column(line, right.col_offset)
        if operator := re.search(pattern, self._lines[line - 1][start:end]):
            for after in swaps:
                yield Mutation(line, start + operator.start(), operator[0], after, kind)

    def _text(self, node: ast.expr | ast.stmt) -> str:
        start, end = self._column(node.lineno, node.col_offset), self._column(node.lineno, node.end_col_offset or 0)
        return self._lines[node.lineno - 1][start:end] if node.lineno == node.end_lineno else ""

    def _column(self, line: int, byte: int) -> int:
        """Characters before a byte offset: `ast` counts UTF-8 bytes."""
        return len(self._lines[line - 1].encode()[:byte].decode())


def _compiles(source: str) -> bool:
    try:
        compile(source, "<mutant>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    return True

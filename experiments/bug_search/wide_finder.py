"""More kinds of slips for whole packages: swapped arguments, a statement or a condition that is missing, and so on.

They come on top of those of `mutate`, whose recorded mutations stay as they are.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from experiments.bug_search.finder import Finder, Function
from rlm_loop.tasks.mutation import Mutation

_ORDER_SAYS_NOTHING = {"isinstance", "issubclass", "hasattr", "getattr", "setattr", "super", "min", "max"}
_EXCEPTIONS = {
    "KeyError": "IndexError",
    "IndexError": "KeyError",
    "ValueError": "TypeError",
    "TypeError": "ValueError",
    "AttributeError": "KeyError",
    "StopIteration": "ValueError",
}
_LONGEST_STRING = 24  # characters; longer ones are messages, which few tests look at


class WideFinder(Finder):
    """The kinds of `mutate` and, with the function as a whole in view, those of this module."""

    def __init__(self, source: str) -> None:
        super().__init__(source)
        self._parameters: list[str] = []
        self._alone: set[ast.stmt] = set()  # statements that are all there is in their block
        self._bound_before: dict[str, int] = {}  # first line on which a name is bound

    def of_function(self, node: Function) -> Iterator[Mutation]:
        """As in `Finder`, and the default values of the parameters."""
        arguments = node.args
        names = [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
        self._parameters = [name for name in names if name not in ("self", "cls")]
        self._bound_before = dict.fromkeys(names, 0)
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
                first = self._bound_before.get(inner.id, inner.lineno)
                self._bound_before[inner.id] = min(first, inner.lineno)
            for block in _blocks(inner):
                if len(block) == 1:
                    self._alone.add(block[0])
        for default in (*arguments.defaults, *(d for d in arguments.kw_defaults if d is not None)):
            if isinstance(default, ast.Constant):
                for found in self.walk(default):
                    yield Mutation(found.line, found.column, found.before, found.after, "default value")
        yield from super().of_function(node)

    def walk(self, node: ast.AST) -> Iterator[Mutation]:
        """Mutations of a node and of what is below it; annotations and docstrings do nothing, and are left alone."""
        match node:
            case ast.arg() | ast.Expr(value=ast.Constant()):
                return
            case ast.AnnAssign():
                if node.value is not None:
                    yield from self.walk(node.value)
            case _:
                yield from super().walk(node)

    def _of(self, node: ast.AST) -> Iterator[Mutation]:
        yield from super()._of(node)
        match node:
            case ast.Call():
                yield from self._call(node)
            case ast.BoolOp():
                yield from self._dropped_condition(node)
            case ast.IfExp():
                yes, test, no = self._text(node.body), self._text(node.test), self._text(node.orelse)
                yield from self._whole(node, f"{no} if {test} else {yes}", "swapped branches")
            case ast.Tuple(elts=[first, second], ctx=ast.Load()):
                yield from self._exchanged(first, second, "swapped items")
            case ast.Name(ctx=ast.Load(), id=name) if name in self._parameters and len(self._parameters) > 1:
                place = self._parameters.index(name)
                yield from self._whole(node, self._parameters[(place + 1) % len(self._parameters)], "wrong variable")
            case ast.ExceptHandler(type=ast.Name(id=name) as caught) if name in _EXCEPTIONS:
                yield from self._whole(caught, _EXCEPTIONS[name], "exception")
            case ast.Raise(exc=ast.Call(func=ast.Name(id=name) as raised)) if name in _EXCEPTIONS:
                yield from self._whole(raised, _EXCEPTIONS[name], "exception")
                yield from self._missing(node)
            case ast.Constant(value=str() as text) if 1 < len(text) <= _LONGEST_STRING:
                yield from self._string(node, text)
            case ast.Expr(value=ast.Call()) | ast.Raise():
                yield from self._missing(node)
            case ast.AugAssign():
                yield from self._missing(node)
                yield from self._between(node.target, node.value, r"\S+=", ("=",), "accumulation")
            case ast.Assign(targets=[target]) if self._may_go(target):
                yield from self._missing(node)
            case ast.If(orelse=[ast.If() as other]):
                yield from self._apart(other)
            case _:
                return

    def _call(self, node: ast.Call) -> Iterator[Mutation]:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name not in _ORDER_SAYS_NOTHING:
            for first, second in zip(node.args, node.args[1:], strict=False):
                yield from self._exchanged(first, second, "swapped arguments")
        if node.keywords and (last := node.keywords[-1]).arg is not None:
            before = node.keywords[-2].value if len(node.keywords) > 1 else node.args[-1] if node.args else None
            text, inner = self._text(node), self._text(last.value)
            if text and inner and before is not None and self._text(before):
                keep = self._column(node.lineno, before.end_col_offset or 0) - self._column(
                    node.lineno, node.col_offset
                )
                yield from self._whole(node, text[:keep] + ")", "missing argument")

    def _dropped_condition(self, node: ast.BoolOp) -> Iterator[Mutation]:
        word = " and " if isinstance(node.op, ast.And) else " or "
        texts = [self._text(value) for value in node.values]
        if all(texts):
            for place in range(len(texts)):
                rest = texts[:place] + texts[place + 1 :]
                yield from self._whole(node, word.join(rest), "missing condition")

    def _string(self, node: ast.Constant, text: str) -> Iterator[Mutation]:
        """Another case, or the last character lost; prefixes, escapes and docstrings are left alone."""
        source = self._text(node)
        if len(source) == len(text) + 2 and source[1:-1] == text:
            for other in (text.swapcase(), text[:-1]):
                yield from self._whole(node, source[0] + other + source[-1], "string")

    def _exchanged(self, first: ast.expr, second: ast.expr, kind: str) -> Iterator[Mutation]:
        starred = isinstance(first, ast.Starred) or isinstance(second, ast.Starred)
        one, two = self._text(first), self._text(second)
        if starred or not one or not two or one == two or first.lineno != second.lineno:
            return
        start = self._column(first.lineno, first.col_offset)
        end = self._column(second.lineno, second.end_col_offset or 0)
        between = self._lines[first.lineno - 1][start + len(one) : end - len(two)]
        yield Mutation(first.lineno, start, one + between + two, two + between + one, kind)

    def _may_go(self, target: ast.expr) -> bool:
        """Whether an assignment can be left out without an unbound name at once."""
        if isinstance(target, ast.Name):
            return self._bound_before.get(target.id, target.lineno) < target.lineno
        return isinstance(target, (ast.Attribute, ast.Subscript))

    def _missing(self, node: ast.stmt) -> Iterator[Mutation]:
        yield from self._whole(node, "pass" if node in self._alone else "", "missing statement")

    def _apart(self, other: ast.If) -> Iterator[Mutation]:
        column = self._column(other.lineno, other.col_offset)
        if self._lines[other.lineno - 1].startswith("elif", column):
            yield Mutation(other.lineno, column, "elif", "if", "branch")


def _blocks(node: ast.AST) -> Iterator[Sequence[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
            yield block

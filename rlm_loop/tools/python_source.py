"""Facts about a piece of Python source, found without running it."""

from __future__ import annotations

import ast
import threading
import warnings
from collections.abc import Mapping
from typing import Any, Literal

_ONE_AT_A_TIME = threading.Lock()  # `warnings.catch_warnings` changes state that all threads share
_LOOK_AT_MOST = 200_000  # characters; a longer block with a label of its own is data, not a mislabelled cell

#: Labels of blocks that are meant to be run, but not by us: a reply with one is no answer.
SHELLS = frozenset(["bash", "sh", "shell", "zsh", "fish", "powershell", "cmd", "bat", "console", "terminal"])
# What a block with one of these labels holds may well compile as Python, and still is what the label says.
_OTHER = """
    output out stdout stderr result results log
    javascript js jsx typescript ts tsx ruby rb r lua go rust rs java kotlin swift scala c h cpp c++ csharp cs c#
    php perl julia matlab sql toml ini cfg conf env properties yaml yml xml html css diff patch dockerfile makefile
    make latex tex csv tsv mermaid regex haskell elixir clojure nim zig dart
"""
OTHER_LANGUAGES = SHELLS | frozenset(_OTHER.split())

# A null byte or a lone surrogate is a ValueError; the last three: too deep for the parser, or too large a number.
_NOT_PYTHON = (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError)


def compiled(code: str, flags: int = 0, name: str = "<reply>") -> Any:
    """Compile a module without a warning.  Raises what `compile` raises."""
    with _ONE_AT_A_TIME, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return compile(code, name, "exec", flags, dont_inherit=True)


def source_state(code: str) -> Literal["compiles", "open string", "broken"]:
    """Say whether `code` compiles as a cell, stops inside a string literal, or is wrong in another way.

    Top-level `await` is allowed, as in a notebook; IPython magics are not Python.  Never raises and never warns.
    """
    try:
        compiled(code, ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    except _NOT_PYTHON as error:
        # CPython's own words: "unterminated triple-quoted string literal", "unexpected EOF ..." after a backslash.
        message = str(error.msg) if isinstance(error, SyntaxError) else ""
        return "open string" if "unterminated" in message or "EOF" in message else "broken"
    return "compiles"


def looks_like_python(code: str) -> bool:
    """Say whether `code` compiles and does something: an assignment, a call, an import, a definition, a loop.

    Words, numbers, JSON and `Result: 42` compile too, but do nothing, so they do not count.
    """
    if len(code) > _LOOK_AT_MOST or source_state(code) != "compiles":
        return False
    return any(map(_acts, compiled(code, ast.PyCF_ONLY_AST).body))


def _acts(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Call | ast.Await)
    if isinstance(statement, ast.AnnAssign):
        return statement.value is not None
    return not isinstance(statement, ast.Pass | ast.Global | ast.Nonlocal)


class _JsonNames(ast.NodeTransformer):
    """Lets JSON's `true`, `false` and `null` stand in a Python literal, as models mix the two."""

    _VALUES: Mapping[str, bool | None] = {"true": True, "false": False, "null": None}

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Constant(self._VALUES[node.id]) if node.id in self._VALUES else node


def _literal(node: ast.expr) -> Any:
    return ast.literal_eval(_JsonNames().visit(node))


def read_literal(code: str) -> Any:
    """Return the value of a Python literal, or raise ValueError.  Nothing is run."""
    try:
        (statement,) = compiled(code, ast.PyCF_ONLY_AST).body
        return _literal(statement.value)
    except (*_NOT_PYTHON, TypeError, AttributeError) as error:  # an unhashable key; a statement without a value
        raise ValueError(f"not a literal: {error}") from error


def read_call(code: str) -> tuple[str, dict[str, Any], list[Any]] | None:
    """Return name, keyword and positional arguments where `code` is one call with literals only, else None."""
    try:
        match compiled(code, ast.PyCF_ONLY_AST).body:
            case [ast.Expr(ast.Call(func=ast.Name(id=name), args=args, keywords=keywords))]:
                named = {keyword.arg: _literal(keyword.value) for keyword in keywords if keyword.arg}
                return (name, named, list(map(_literal, args))) if len(named) == len(keywords) else None
            case _:
                return None
    except (*_NOT_PYTHON, TypeError):
        return None

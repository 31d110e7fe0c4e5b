"""Which names a statement reads and binds."""

from __future__ import annotations

import pytest

from rlm_loop.study.coverage.names import statements

OUTSIDE = {"print", "len", "sum", "range", "open", "sorted"}


@pytest.mark.parametrize(
    ("code", "reads", "binds", "kills"),
    [
        ("x = y + 1", "y", "x", "x"),
        ("x, (a, b) = y", "y", "x a b", "x"),
        ("x: int = y", "int y", "x", "x"),
        ("x: int", "int", "x", ""),
        ("x += y", "x y", "x", ""),
        ("x.append(y)", "x y", "x", ""),
        ("x.a.b(y)", "x y", "x", ""),
        ("x[k] = v", "x k v", "x", ""),
        ("x.name = v", "x v", "x", ""),
        ("del x[0]", "x", "x", ""),
        ("shuffle(x)", "shuffle x", "x", ""),
        ("print(x.y)", "x", "", ""),
        ("z = [w.strip() for w in x if w]", "x", "z", "z"),
        ("z = {k: v for k, v in x.items()}", "x", "z", "z"),
        ("z = sorted(x, key=lambda r: r[0] + w)", "x w", "z", "z"),
        ("for i in x:\n    t += i", "x t i", "i t", ""),
        ("if a:\n    b = c", "a c", "b", ""),
        ("with f(a) as g:\n    h = g.read()", "f a g", "g h", ""),
        ("def f(a, b=c):\n    d = a + e\n    return d", "c e", "f", "f"),
        ("def f():\n    global n\n    n = 1", "", "f n", "f"),
        ("class A(B):\n    x = 1\n    def m(self):\n        return y", "B y", "A", "A"),
        ("import a.b, c as d", "", "a d", ""),
        ("from a import b as c", "", "c", ""),
        ("try:\n    a = b\nexcept E as e:\n    pass", "b E", "a e", ""),
        ("final_answer(x)", "final_answer x", "final_answer", "final_answer"),
        ("(w := x)", "x", "w", ""),
        ("x = llm_query(f'{y}: {z}')", "llm_query y z", "x", "x"),
    ],
)
def test_names(code: str, reads: str, binds: str, kills: str) -> None:
    [found] = statements(code)
    assert (found.reads - OUTSIDE, found.binds, found.kills) == (
        set(reads.split()),
        set(binds.split()),
        set(kills.split()),
    )


@pytest.mark.parametrize(
    ("code", "slices", "whole"),
    [
        ("print(context[:500])", ((None, 500),), False),
        ("x = context[10:-5] + context[3:]", ((10, -5), (3, None)), False),
        ("x = context[i : i + 9]", (), True),
        ("x = context[::2]", (), True),
        ("x = context.split()", (), True),
        ("x = context[5]", (), True),
        ("print(len(context), type(context))", (), False),
        ("x = len(context[:5]) + len(context.split())", ((None, 5),), True),
        ("context = 3", (), False),
    ],
)
def test_how_the_context_is_read(code: str, slices: object, whole: bool) -> None:
    [found] = statements(code)
    assert (found.slices, found.whole) == (slices, whole)


@pytest.mark.parametrize("code", ["x = (", "\0", "print 'old'", "(" * 5000])
def test_what_is_no_python_has_no_statements(code: str) -> None:
    assert statements(code) == []


def test_a_statement_knows_its_line_and_first_line() -> None:
    code = "a = 1\n\nfor i in a:\n    print(i)\n"
    assert [(s.line, s.source, s.prints) for s in statements(code)] == [
        (1, "a = 1", False),
        (3, "for i in a: ...", True),
    ]

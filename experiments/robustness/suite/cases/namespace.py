"""Ordinary work over several cells, which clumsy sessions get wrong, and source texts that are hard to read."""

from __future__ import annotations

from experiments.robustness.suite.case import ENDED_WELL, RAISED, CellCase, CellStep


def _works(name: str, does: str, *cells: str | CellStep, last: str, needs: frozenset[str] = frozenset()) -> CellCase:
    """Cells of which the last one must print `last`."""
    steps = [cell if isinstance(cell, CellStep) else CellStep(cell) for cell in cells]
    steps[-1] = CellStep(steps[-1].code, steps[-1].error, last)
    return CellCase(
        name=name,
        theme="names over cells",
        does=does,
        must=f"the last cell prints {last!r}",
        steps=tuple(steps),
        needs=needs,
    )


def _source(name: str, does: str, code: str, output: str | None = None, *, raises: bool = False) -> CellCase:
    return CellCase(
        name=name,
        theme="source text",
        does=does,
        must=f"it prints {output!r}" if output is not None else "it runs or is an error; the session goes on",
        steps=(CellStep(code, RAISED if raises else ENDED_WELL, output),),
    )


_FAILS = RAISED

CASES = (
    _works(
        "names-before-an-error",
        "binds names, then raises",
        CellStep("a = 1\nb = 2\nraise ValueError", _FAILS),
        "print(a + b)",
        last="3",
    ),
    _works(
        "import-in-a-failing-cell",
        "imports, then raises",
        CellStep("import math\n1 / 0", _FAILS),
        "print(math.floor(2.5))",
        last="2",
    ),
    _works(
        "function-sees-rebinding",
        "a function uses a name that a later cell binds again",
        "x = 1\ndef f(): return x",
        "x = 2",
        "print(f())",
        last="2",
    ),
    _works(
        "helper-defined-later",
        "a function calls one that a later cell defines",
        "def f(): return g()",
        "def g(): return 5",
        "print(f())",
        last="5",
    ),
    _works(
        "mutual-recursion",
        "two functions of two cells call each other",
        "def even(n): return n == 0 or odd(n - 1)",
        "def odd(n): return n != 0 and even(n - 1)",
        "print(even(10))",
        last="True",
    ),
    _works(
        "global-statement",
        "a function writes a global",
        "n = 0\ndef up():\n    global n\n    n += 1",
        "up(); up()",
        "print(n)",
        last="2",
    ),
    _works(
        "nonlocal",
        "a closure counts",
        "def counter():\n    n = 0\n    def up():\n        nonlocal n\n        n += 1\n        return n\n    return up",
        "c = counter()\nc()",
        "print(c())",
        last="2",
    ),
    _works("del", "deletes a name", "y = 1", "del y", CellStep("print('y' in globals())"), last="False"),
    _works("private-names", "uses names with an underscore", "_hidden = 3", "print(_hidden)", last="3"),
    _works(
        "class-over-cells",
        "defines a class, and uses it in the next cell",
        "class A:\n    def __init__(self, v): self.v = v\n    def __repr__(self): return f'A({self.v!r})'",
        "print(A('x'))",
        last="A('x')",
    ),
    _works(
        "inheritance",
        "derives a class over cells, with super()",
        "class A:\n    def f(self): return 1",
        "class B(A):\n    def f(self): return super().f() + 1",
        "print(B().f())",
        last="2",
    ),
    _works(
        "dataclass",
        "defines a dataclass",
        "from dataclasses import dataclass\n@dataclass(order=True)\nclass P:\n    x: int\n    y: int = 2",
        "print(P(1) < P(2), P(1))",
        last="True P(x=1, y=2)",
    ),
    _works(
        "enum",
        "defines an enum",
        "from enum import Enum\nclass C(Enum):\n    RED = 1",
        "print(C.RED, C(1) is C.RED)",
        last="C.RED True",
    ),
    _works(
        "named-tuple",
        "defines a NamedTuple with types",
        "from typing import NamedTuple\nclass P(NamedTuple):\n    x: int",
        "print(P(3))",
        last="P(x=3)",
    ),
    _works(
        "pickle-own-class",
        "pickles an object of a class made in a cell",
        "import pickle\nclass A: pass",
        "print(type(pickle.loads(pickle.dumps(A()))) is A)",
        last="True",
    ),
    _works(
        "generator",
        "takes from a generator over cells",
        "def g():\n    yield 1\n    yield 2\nit = g()",
        "next(it)",
        "print(next(it))",
        last="2",
    ),
    _works(
        "comprehension-scope",
        "uses names of the cell in nested comprehensions",
        "k = 3\nrows = [[i * k for i in range(2)] for _ in range(2)]",
        "print(rows, [x for r in rows for x in r if x])",
        last="[[0, 3], [0, 3]] [3, 3]",
    ),
    _works(
        "walrus-and-match",
        "uses := and match",
        "if (n := 5) > 3:\n    match [n, 'x']:\n        case [int(a), str(b)]: r = (a, b)",
        "print(r)",
        last="(5, 'x')",
    ),
    _works(
        "top-level-await",
        "awaits in a cell",
        "import asyncio\nasync def f():\n    await asyncio.sleep(0)\n    return 7",
        "v = await f()",
        "print(v)",
        last="7",
        needs=frozenset(["await"]),
    ),
    _works(
        "specific-exceptions",
        "catches ZeroDivisionError, KeyError and an own exception",
        "class Own(Exception): pass\nseen = []\nfor e in (ZeroDivisionError, KeyError, Own):\n    try: raise e\n    except (ZeroDivisionError, KeyError): seen.append('known')\n    except Own: seen.append('own')",
        "print(seen)",
        last="['known', 'known', 'own']",
    ),
    _works(
        "return-in-try",
        "returns in `try` with `except Exception` around",
        "def f():\n    try: return 1\n    except Exception: return 2\n    finally: pass",
        "print(f())",
        last="1",
    ),
    _works(
        "break-in-try",
        "breaks out of a loop inside `try`",
        "n = 0\nwhile True:\n    try:\n        n += 1\n        if n == 3: break\n    except Exception: pass",
        "print(n)",
        last="3",
    ),
    _works(
        "defaults-win",
        "a default argument has the name of a global",
        "x = 5\ndef f(x=1, *, y=2): return x + y",
        "print(f())",
        last="3",
    ),
    _works("no-return-is-none", "a function without return", "def f(): 5", "print(f())", last="None"),
    _works(
        "misspelt-name",
        "uses a name that is not there but nearly",
        "total = 3",
        CellStep("try: print(total1)\nexcept NameError: print('NameError')"),
        last="NameError",
    ),
    _works("last-expression", "ends with an expression", "x = 20", "x + 1", last="21", needs=frozenset(["echo"])),
    _works(
        "main-guard",
        "asks whether it is the main program",
        "print('yes' if __name__ == '__main__' else 'no')",
        last="yes",
    ),
    _works("star-import", "imports everything from a module", "from math import *", "print(floor(2.5))", last="2"),
    _works(
        "files-stay",
        "writes a file and reads it in the next cell",
        "with open('note.txt', 'w') as f: f.write('kept')",
        "print(open('note.txt').read())",
        last="kept",
        needs=frozenset(["files"]),
    ),
    _works(
        "threads-in-a-cell",
        "adds up in four threads",
        "import threading\nout = []\nts = [threading.Thread(target=out.append, args=(n,)) for n in range(4)]\nfor t in ts: t.start()\nfor t in ts: t.join()",
        "print(sorted(out))",
        last="[0, 1, 2, 3]",
    ),
    _works(
        "child-process",
        "runs a program",
        "import subprocess\ns = subprocess.run(['echo', 'hi'], capture_output=True, text=True).stdout",
        "print(s.strip())",
        last="hi",
        needs=frozenset(["process"]),
    ),
    _works(
        "context-is-restored",
        "overwrites the context, and looks at it later",
        "context = 'mine'",
        "print(context['a'])",
        last="1",
        needs=frozenset(["reserved"]),
    ),
    _source("empty", "is empty", ""),
    _source("blank", "is blanks and line ends", " \n\t\n\n"),
    _source("comment-only", "is a comment", "# nothing to do"),
    _source("crlf-source", "has Windows line ends", "x = 1\r\nif x:\r\n    print('ok')\r\n", "ok"),
    _source("form-feed-source", "has form feeds and tabs", "\x0cif True:\n\tprint('ok')\n", "ok"),
    _source("no-final-newline", "ends in the middle of a block", "for i in range(2):\n    print(i)", "0\n1"),
    _source(
        "unicode-names",
        "uses names in other scripts",
        "gr\u00f6\u00dfe = 1\n\u03c0 = 3\nprint(gr\u00f6\u00dfe + \u03c0)",
        "4",
    ),
    _source("coding-cookie", "declares a coding of its own", "# -*- coding: ascii -*-\nprint('\u00e9')"),
    _source(
        "future-annotations",
        "imports from __future__",
        "from __future__ import annotations\ndef f(x: Nope): return x\nprint(f(1))",
        "1",
    ),
    _source("long-source", "is 5,000 assignments", "\n".join(f"v = {n}" for n in range(5_000)) + "\nprint(v)", "4999"),
    _source(
        "backticks-in-text", "holds a Markdown fence in a text", "s = '''\n```python\nx\n```\n'''\nprint(len(s))", "17"
    ),
    _source("nul-in-source", "holds a NUL", "x = 1\0", raises=True),
    _source("surrogate-in-source", "holds half a character", "x = '\ud800'", raises=True),
    _source("nested-too-deep", "nests 5,000 parentheses", "(" * 5000, raises=True),
    _source("minus-without-end", "is 100,000 minus signs and a one", "-" * 100_000 + "1", raises=True),
    _source("return-outside", "returns outside a function", "return 5", raises=True),
    _source("bad-indent", "is indented wrongly", "if True:\nprint(1)", raises=True),
    _source("python-2", "prints as in Python 2", "print 'hello'", raises=True),
    CellCase(
        name="shell-magic",
        theme="source text",
        does="uses magics of notebooks",
        must="an error, or what a notebook does; the session goes on",
        steps=(CellStep("%lsmagic\n!ls", frozenset(["none", "raised"])),),
    ),
)

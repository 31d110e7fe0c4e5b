"""Restricted cells: what is refused, what the guards leave open, and what the session itself adds."""

from __future__ import annotations

import collections
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_loop.repl import PythonREPL, RestrictedREPL, SetupFailed

pytest.importorskip("RestrictedPython", reason='needs RestrictedPython: pip install -e ".[restricted]"')


@pytest.fixture(scope="module")
def repl() -> Iterator[RestrictedREPL]:
    with RestrictedREPL(timeout=20) as made:
        yield made


#: Ways out that are closed.  Each would leave something other than an error if it were open.
CLOSED = {
    "a module's module": "import statistics\nstatistics.sys.modules['os']",
    "a submodule's module": "import re\nre.enum.sys",
    "typing's module": "import typing\ntyping.sys",
    "datetime's module": "import datetime\ndatetime.sys",
    "json's files": "import json\njson.codecs.open('/etc/hostname')",
    "random's module": "import random\nrandom._os",
    "from a module": "from statistics import sys",
    "attrgetter": "import operator\noperator.attrgetter('__class__.__base__.__subclasses__')(3)",
    "methodcaller": "import operator\noperator.methodcaller('__reduce_ex__', 4)('')",
    "getattr": "getattr((), '__class' + '__').__base__",
    "hasattr": "assert hasattr((), '__subclasses__')",
    "format": "'{0.__class__.__base__}'.format(())",
    "format_map": "'{a.__dict__}'.format_map({'a': print})",
    "the class's format": "str.format('{0.__globals__}', print)",
    "format of a class": "class S(str):\n def f(self): return super().format(self.f)\nS('{0.__func__}').f()",
    "annotations": "import typing\ndef f(a: '[].__class__.__base__.__subclasses__()'): ...\ntyping.get_type_hints(f)",
    "singledispatch's annotations": "import functools\n@functools.singledispatch\ndef f(a): ...\n"
    "@f.register\ndef g(a: '().__class__.__base__.__subclasses__()[0]'): ...",
    "globals of a function": "(lambda: 0).__globals__",
    "code of a function": "(lambda: 0).__code__",
    "frames of a generator": "def g(): yield\ngetattr(g(), 'gi_' + 'frame')",
    "frames of an error": "try:\n    1/0\nexcept Exception as e:\n    e.__traceback__.tb_frame",
    "match on a private attribute": "match print:\n    case object(__self__=m): print(m.exec)",
    "builtins": "__builtins__",
    "the guards": "_getattr_ = None",
    "a guard as an argument": "def f(_getattr_): return _getattr_",
    "a guard as a keyword": "(lambda *, _write_: 0)",
    "a guard by walrus": "(_getattr_ := 0)",
    "a guard by import": "import math as _getitem_",
    "a guard by global": "def f():\n    global _getattr_\n    _getattr_ = 0\nf()",
    "a guard by except": "try:\n    1/0\nexcept Exception as _getattr_: pass",
    "a guard by match": "match 3:\n    case _getattr_: pass",
    "three arguments of type": "type('X', (), {})",
    "three arguments of its type": "type(int)('X', (), {})",
    "three arguments of a class's class": "int.__class__('X', (), {})",
    "a pattern's": "import abc, json\nC = abc.ABCMeta('C', (), {'__match_args__': ('__globals__',)})\n"
    "C.register(type(json.dumps))\nmatch json.dumps:\n    case C(g): print(g)",
    "changing a module": "import math\nmath.pi = 3",
    "changing a library's class": "import collections\ncollections.Counter.most_common = None",
    "changing it by setattr": "import collections\nsetattr(collections.Counter, 'most_common', None)",
    "changing it in place": "import collections\ncollections.Counter.most_common += 1",
    "deleting from it": "import collections\ndel collections.Counter.most_common",
    "changing a function": "import json\njson.dumps.x = 1",
    "changing a class of its own object": "class A: pass\nA().__class__ = 3",
    "private parts of the library": "import collections\ncollections.OrderedDict()._x",
    "redirecting the process": "import contextlib\ncontextlib.redirect_stdout",
    "files by io": "import io\nio.open('/etc/hostname')",
    "files by a link": "open('link')",
    "files by a number": "open(0)",
    "files above": "open('../secret')",
    "functions from types": "import types\ntypes.FunctionType",
    "frames from sys": "import sys\nsys._getframe()",
    "modules from sys": "import sys\nsys.modules",
    "import by name": "__import__('os')",
    "import from a package": "from os import path",
    "relative import": "from . import x",
    "everything": "from math import *",
    "a compiler": "compile('1', '', 'eval')",
}


@pytest.mark.parametrize("name", CLOSED)
def test_ways_out_that_are_closed(repl: RestrictedREPL, name: str) -> None:
    if name == "files by a link" and not (repl.cwd / "link").is_symlink():
        (repl.cwd / "link").symlink_to("/etc/hostname")
    result = repl.run(CLOSED[name])
    assert (result.error, "RuntimeError" in result.message) == ("runtime", False)
    assert collections.Counter("aab").most_common(1) == [("a", 2)]


#: Gaps that are known: code that gets further than it should.  A gap that is closed leaves this table.
GAPS = {
    "a metaclass": "import abc\nabc.ABCMeta('X', (), {'__getattribute__': lambda self, name: True})().anything",
    "the user's tools are only as safe as they are": "len(read_secret()) > 0",
}


@pytest.mark.parametrize("name", GAPS)
def test_known_gaps(repl: RestrictedREPL, name: str) -> None:
    repl.add_tools({"read_secret": lambda: "secret"})
    assert repl.run(GAPS[name]).output == "True"


def test_a_package_that_is_allowed_is_a_known_gap(tmp_path: Path) -> None:
    pytest.importorskip("numpy")
    target = tmp_path / "out.txt"
    with RestrictedREPL(imports=("numpy",)) as made:
        made.set("target", str(target))
        assert made.run("import numpy as np\na = np.arange(6).reshape(2, 3)\na[0, 1] += 5\nint(a.sum())").output == "20"
        assert made.run("from numpy import linalg\nlinalg.norm(a), np.random.default_rng(0)").error is None
        assert made.run("np.savetxt(target, a)").error is None
    assert target.exists()


def test_restricted_and_free_cells_evaluate_in_the_same_order() -> None:
    code = (
        "log = []\ndef t(x):\n    log.append(x)\n    return x\nclass A: pass\na = A(); a.d = {1: [1, 2, 3]}; a.n = 1\n"
        "t(a).d[t(1)][t(0):t(2)] += [t(9)]\nt(a).n -= t(4)\nd = {'n': 1}\n"
        "def change():\n    d['n'] = 100\n    return 1\nd['n'] += change()\n"
        "for d['n'], (x, *y) in [(5, 'abc')]: pass\nlog = [v if isinstance(v, int) else 'a' for v in log]\n"
        "print(log, a.d, a.n, d, x, y)"
    )
    with RestrictedREPL() as restricted, PythonREPL(timeout=60) as free:
        assert restricted.run(code).output == free.run(code).output


@given(st.text("abc_=+.[]()':\n 1", max_size=30))
def test_any_text_is_a_result(repl: RestrictedREPL, code: str) -> None:
    assert (result := repl.run(code)).error is None or result.message


def test_a_cell_that_has_to_be_killed_costs_no_variable() -> None:
    stubborn = "while True:\n    try:\n        while True: len('')\n    except BaseException: pass"
    with RestrictedREPL(grace=0.2) as made:
        made.run("kept = 1 + 1")
        assert made.run(stubborn, timeout=0.2).error == "timeout"
        assert made.run("print = 3\ndel print\nprint(kept)").output == "2\n"


def test_setup_keeps_to_the_rules() -> None:
    with RestrictedREPL(setup="import os") as made, pytest.raises(SetupFailed, match="'os' cannot be imported"):
        made.run("1")

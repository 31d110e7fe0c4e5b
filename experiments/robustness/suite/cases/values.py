"""Answers and last expressions that are hard to carry: falsy, giant, circular, lying, raising, hanging."""

from __future__ import annotations

from typing import Any

from experiments.robustness.suite.case import (
    ANY_END,
    ENDED_WELL,
    RAISED,
    STOPPED,
    CellCase,
    CellStep,
    Error,
    Keeps,
    Value,
)

_ANSWER = frozenset(["answer"])
_NAMED = frozenset(["answer", "named answer"])
_CALLED = frozenset(["answer", "called answer"])


def _answers(name: str, code: str, value: Value | None, does: str = "", before: str = "") -> CellCase:
    text = f"answers {code}" if len(code) < 40 and not does else does
    return CellCase(
        name=f"answer-{name}",
        theme="answers and values",
        does=text,
        must="the answer arrives, equal to the one given"
        if value is not None
        else "an answer arrives, as it is or as its repr",
        steps=(CellStep(f"{before}\nfinal_answer = {code}", ENDED_WELL, answer=value),),
        needs=_ANSWER,
    )


def _trap(
    name: str,
    does: str,
    code: str,
    use: str = "final_answer = T()",
    error: frozenset[Error] = ANY_END,
    keeps: Keeps = "variables",
    needs: frozenset[str] = frozenset(),
) -> CellCase:
    return CellCase(
        name=name,
        theme="traps in objects",
        does=does,
        must="the cell ends, with the value or with an error, and the session goes on",
        steps=(CellStep(f"{code}\n{use}", error), CellStep("try: del T\nexcept NameError: pass", ANY_END)),
        keeps=keeps,
        needs=needs,
    )


def _deep(levels: int) -> Any:
    value: Any = []
    for _ in range(levels):
        value = [value]
    return value


_STOPS = frozenset(["stops"])

CASES = (
    _answers("none", "None", (None,)),
    _answers("zero", "0", (0,)),
    _answers("false", "False", (False,)),
    _answers("empty-text", "''", ("",)),
    _answers("empty-list", "[]", ([],)),
    _answers("nan", "float('nan')", None),
    _answers("infinity", "float('inf')", (float("inf"),)),
    _answers("tuple", "(1, (2, (3,)))", ((1, (2, (3,))),)),
    _answers("set", "{1, 2, 3}", ({1, 2, 3},)),
    _answers("keys-that-are-no-text", "{1: 'a', (2, 3): 'b', None: 'c'}", ({1: "a", (2, 3): "b", None: "c"},)),
    _answers("bytes", "b'\\x00\\xff'", (b"\x00\xff",)),
    _answers("lone-surrogate", "'\\ud83d'", ("\ud83d",)),
    _answers("nul-and-crlf", "'a\\r\\nb\\x00c'", ("a\r\nb\x00c",)),
    _answers("giant-number", "7 ** 100_000", (7**100_000,)),
    _answers("twenty-megabytes", "'x' * 20_000_000", ("x" * 20_000_000,)),
    _answers(
        "nested-50",
        "value",
        (_deep(50),),
        "answers a list nested 50 deep",
        "value = []\nfor _ in range(50): value = [value]",
    ),
    _answers(
        "nested-100000",
        "value",
        None,
        "answers a list nested 100,000 deep",
        "value = []\nfor _ in range(100_000): value = [value]",
    ),
    _answers("circle", "value", None, "answers a list that holds itself", "value = []\nvalue.append(value)"),
    _answers("circle-of-dicts", "value", None, "answers a dict that holds itself", "value = {}\nvalue['me'] = value"),
    _answers("function", "lambda x: x", None),
    _answers("module", "__import__('os')", None),
    _answers("generator", "(x for x in range(3))", None),
    _answers("class", "int", None),
    _answers("open-file", "open('f', 'w')", None),
    _answers("exception", "ValueError('not raised')", None),
    _answers("decimal-snan", "__import__('decimal').Decimal('sNaN')", None),
    _answers("ellipsis", "...", None),
    CellCase(
        name="answer-by-call",
        theme="answers and values",
        does="calls final_answer(7) inside `try: ... except Exception`",
        must="the cell ends with the answer 7",
        steps=(
            CellStep(
                "try:\n    final_answer(7)\nexcept Exception:\n    pass\nprint('not reached')",
                ENDED_WELL,
                hides=("not reached",),
                answer=(7,),
            ),
        ),
        needs=_CALLED,
    ),
    CellCase(
        name="answer-taken-back",
        theme="answers and values",
        does="sets final_answer and deletes it",
        must="there is no answer",
        steps=(CellStep("final_answer = 1\ndel final_answer", ENDED_WELL, answer=()),),
        needs=_NAMED,
    ),
    CellCase(
        name="answer-then-error",
        theme="answers and values",
        does="sets final_answer and raises",
        must="the cell gave no answer yet: it may be pending",
        steps=(CellStep("final_answer = 1\n1 / 0", RAISED, answer=()),),
        needs=_NAMED,
    ),
    CellCase(
        name="answer-in-a-function",
        theme="answers and values",
        does="sets a local variable that is called final_answer",
        must="there is no answer",
        steps=(CellStep("def f():\n    final_answer = 1\nf()", ENDED_WELL, answer=()),),
        needs=_NAMED,
    ),
    CellCase(
        name="answer-to-itself",
        theme="answers and values",
        does="assigns final_answer to itself before it is set",
        must="there is no answer",
        steps=(CellStep("final_answer = final_answer", ANY_END, answer=()),),
        needs=_NAMED,
    ),
    CellCase(
        name="answer-of-an-earlier-cell",
        theme="answers and values",
        does="sets final_answer, and does something else in the next cell",
        must="the next cell gives no answer",
        steps=(CellStep("final_answer = 1", answer=(1,)), CellStep("x = 2", answer=())),
        needs=_ANSWER,
    ),
    _trap(
        "repr-raises", "a value whose repr raises", "class T:\n    def __repr__(self): raise RuntimeError('no repr')"
    ),
    _trap(
        "repr-raises-shown",
        "a last expression whose repr raises",
        "class T:\n    def __repr__(self): raise RuntimeError('no repr')",
        "T()",
        RAISED,
        needs=frozenset(["echo"]),
    ),
    _trap("repr-exits", "a value whose repr calls sys.exit()", "class T:\n    def __repr__(self): raise SystemExit"),
    _trap("repr-is-no-text", "a value whose repr is a number", "class T:\n    def __repr__(self): return 5"),
    _trap("repr-is-giant", "a value whose repr has 50 MB", "class T:\n    def __repr__(self): return 'r' * 50_000_000"),
    _trap(
        "repr-recurses", "a value whose repr asks for its repr", "class T:\n    def __repr__(self): return repr(self)"
    ),
    _trap(
        "repr-hangs",
        "a value whose repr never ends",
        "class T:\n    def __repr__(self):\n        while True: pass",
        error=frozenset(["none", "stopped"]),
        keeps="told",
        needs=_STOPS | _ANSWER,
    ),
    _trap(
        "repr-hangs-shown",
        "a last expression whose repr never ends",
        "class T:\n    def __repr__(self):\n        while True: pass",
        "T()",
        STOPPED,
        "told",
        _STOPS | {"echo"},
    ),
    _trap(
        "repr-changes-the-answer",
        "a value whose repr sets another answer",
        "class T:\n    def __repr__(self):\n        global final_answer\n        final_answer = 'other'\n        return 'T'",
    ),
    _trap(
        "str-hangs",
        "an exception whose text never ends",
        "class T(Exception):\n    def __str__(self):\n        while True: pass",
        "raise T",
        STOPPED,
        "told",
        _STOPS,
    ),
    _trap(
        "del-raises",
        "an object whose `__del__` raises",
        "class T:\n    def __del__(self): raise RuntimeError('in del')",
        "t = T(); del t",
        ENDED_WELL,
    ),
    _trap(
        "del-exits",
        "an object whose `__del__` calls sys.exit()",
        "class T:\n    def __del__(self): raise SystemExit",
        "t = T(); del t",
    ),
    _trap(
        "del-hangs",
        "an object whose `__del__` never ends",
        "class T:\n    def __del__(self):\n        while True: pass",
        "t = T(); del t",
        frozenset(["none", "stopped"]),
        "told",
        _STOPS,
    ),
    _trap(
        "eq-raises",
        "a value that refuses to be compared",
        "class T:\n    def __eq__(self, o): raise RuntimeError('no ==')\n    def __hash__(self): raise RuntimeError('no hash')\n    def __bool__(self): raise RuntimeError('no bool')\n    def __len__(self): return -1",
    ),
    _trap(
        "eq-hangs",
        "a value whose comparison never ends",
        "class T:\n    def __eq__(self, o):\n        while True: pass\n    __hash__ = None",
        error=ANY_END,
        keeps="told",
        needs=_STOPS,
    ),
    _trap(
        "getattr-gives-itself",
        "a value that has every attribute: itself",
        "class T:\n    def __getattr__(self, n): return self\n    def __call__(self, *a, **k): return self",
    ),
    _trap(
        "getattr-raises",
        "a value whose attributes all raise BaseException",
        "class T:\n    def __getattribute__(self, n): raise BaseException('no attributes')",
    ),
    _trap(
        "class-lies",
        "a value that says it is an int",
        "class T:\n    __class__ = int\n    def __repr__(self): return 'liar'",
    ),
    _trap(
        "metaclass-without-a-name",
        "a class whose metaclass refuses its name and its repr",
        "class M(type):\n    @property\n    def __name__(cls): raise RuntimeError('no name')\n    def __repr__(cls): raise RuntimeError('no repr')\n    def __instancecheck__(cls, o): raise RuntimeError('no instances')\nclass T(metaclass=M): pass",
    ),
    _trap(
        "list-without-end",
        "a list whose iteration never ends",
        "class T(list):\n    def __iter__(self):\n        while True: yield from ()",
        error=ANY_END,
        keeps="told",
        needs=_STOPS,
    ),
    _trap(
        "dict-that-raises",
        "a dict whose items raise",
        "class T(dict):\n    def items(self): raise RuntimeError('no items')\n    def __iter__(self): raise RuntimeError('no keys')\n    def keys(self): raise RuntimeError('no keys')",
    ),
    _trap(
        "text-that-lies",
        "a str whose methods raise",
        "class T(str):\n    def isascii(self): raise RuntimeError\n    def encode(self, *a): raise RuntimeError\n    def __str__(self): raise RuntimeError\n    def __len__(self): return -5",
    ),
    _trap(
        "number-that-lies",
        "an int whose methods raise",
        "class T(int):\n    def bit_length(self): raise RuntimeError\n    def __index__(self): raise RuntimeError\n    def __int__(self): raise RuntimeError",
    ),
    _trap(
        "pickle-bomb",
        "a value that runs a command when it is unpickled",
        "import os\nclass T:\n    def __reduce__(self): return (os._exit, (9,))",
    ),
    _trap(
        "weak-and-slotted",
        "a value without dict, weak references or pickle",
        "class T:\n    __slots__ = ()\n    def __reduce_ex__(self, p): raise TypeError('no pickle')",
    ),
)

"""Work that clumsy sessions get wrong: output, values, contexts, names over cells, source text, patched interpreters."""

from __future__ import annotations

from suite.case import ANY, CellCase, Step, cells

_CAP = "what the model sees is capped, its head and tail are kept, and the session goes on"
_ODD = "a\r\nb\rc\nd\x00e\ufefff\ud800g\U0001f600h\u2028i\x85j"
_PATTERN = "0123456789abcdef\r\n\x00\t~"  # 21 characters, with what text mode would alter
_LARGE = 100_000_000


def _large() -> str:
    return (_PATTERN * (_LARGE // len(_PATTERN) + 1))[:_LARGE]


def _deep(levels: int) -> list:
    value: list = []
    for _ in range(levels):
        value = [value]
    return value


def prints(
    name, does, code, output=None, *, shows=(), hides=(), must="as in a terminal", needs="", raises=False, seconds=10
) -> CellCase:
    step = Step(code, "raised" if raises else "none", output, shows, hides)
    return cells(name, "output", does, must, step, needs=needs, seconds=seconds)


def answers(name, code, value, does="", before="") -> CellCase:
    must = (
        "an answer arrives, as it is or as its repr" if value is None else "the answer arrives, equal to the one given"
    )
    step = Step(f"{before}\nfinal_answer = {code}", answer=value)
    return cells(f"answer-{name}", "answers and values", does or f"answers {code}", must, step, needs="answer")


def trap(name, does, code, use="final_answer = T()", error=ANY, keeps="variables", needs="") -> CellCase:
    steps = (Step(f"{code}\n{use}", error), Step("try: del T\nexcept NameError: pass", ANY))
    must = "the cell ends, with the value or with an error, and the session goes on"
    return cells(name, "traps in objects", does, must, *steps, keeps=keeps, needs=needs)


def crosses(name, does, value, check, output, seconds=10) -> CellCase:
    rest = {"given": {"given": value}, "needs": "set", "seconds": seconds}
    step = Step(f"print({check})", output=output)
    return cells(f"context-{name}", "context from outside", does, "it arrives exactly as it was", step, **rest)


def works(name, does, *steps, last, needs="") -> CellCase:
    """Cells of which the last one must print `last`."""
    steps = [*steps[:-1], Step(steps[-1], output=last)]
    return cells(name, "names over cells", does, f"the last cell prints {last!r}", *steps, needs=needs)


def source(name, does, code, output=None, *, raises=False) -> CellCase:
    must = "it runs or is an error; the session goes on" if output is None else f"it prints {output!r}"
    return cells(name, "source text", does, must, Step(code, "raised" if raises else "none", output))


def patch(name, does, code, keeps="told", needs="", *, fresh=True) -> CellCase:
    must = "the session works on, or is restarted and says what is lost"
    return cells(name, "patched interpreter", does, must, Step(code, ANY), keeps=keeps, needs=needs, fresh=fresh)


# fmt: off
CASES = (
    # output
    prints('gigabyte-of-prints', 'prints 1 GB in pieces of 1 MB', "p = 'x' * 1_000_000\nprint('head')\nfor _ in range(1000): print(p)\nprint('tail')",
        shows=('head', 'tail'), must=_CAP, seconds=40),
    prints('gigabyte-of-bytes', 'writes 1 GB to descriptor 1', "import os\nb = b'x' * 1_000_000\nfor _ in range(1000): os.write(1, b)\nprint('tail')",
        shows=('tail',), must=_CAP, needs='process', seconds=40),
    prints('gigabyte-of-a-child', 'a child prints 1 GB', "import os\n_ = os.system('head -c 1000000000 /dev/zero')\nprint('tail')", shows=('tail',),
        must=_CAP, needs='process', seconds=40),
    prints('one-line-of-100-mb', 'prints one line of 100 MB', "print('x' * 100_000_000)\nprint('tail')", shows=('tail',), must=_CAP, seconds=20),
    prints('a-hundred-thousand-lines', 'prints 100,000 short lines', "for i in range(100_000): print(i)\nprint('tail')", shows=('0\n1\n2', 'tail'), must=_CAP,
        seconds=20),
    prints('flood-on-stderr', 'writes 50 MB to stderr', "import sys\nfor _ in range(50): sys.stderr.write('x' * 1_000_000)\nprint('tail')", shows=('tail',),
        must=_CAP),
    prints('giant-last-expression', 'ends with a text of 50 MB', "'head' + 'y' * 50_000_000 + 'tail'", shows=('head', 'tail'), must=_CAP, needs='echo'),
    prints('giant-exception', 'raises with a message of 50 MB', "raise ValueError('z' * 50_000_000)", shows=('ValueError',), must=_CAP, raises=True),
    prints('deep-traceback', 'raises 900 frames deep', 'def f(n): return 1 / n if n == 0 else f(n - 1)\nf(900)', shows=('ZeroDivisionError',), must=_CAP,
        raises=True),
    prints('prints-before-an-error', 'prints, then raises', "print('seen')\n1 / 0", shows=('seen', 'ZeroDivisionError'),
        must='what was printed is shown with the error', raises=True),
    prints('both-streams-in-order', 'prints to stdout and stderr in turn', "import sys\nprint('1')\nprint('2', file=sys.stderr)\nprint('3')", '1\n2\n3',
        must='the order is the one written'),
    prints('child-in-order', 'prints before and after a child does', "import subprocess\nprint('1')\nsubprocess.run(['echo', '2'])\nprint('3')", '1\n2\n3',
        must="a child's output is shown, in order", needs='process'),
    prints('descriptor-in-order', 'prints, and writes to descriptor 1', "import os\nprint('1')\n_ = os.write(1, b'2\\n')\nprint('3')", '1\n2\n3',
        must='what goes to the descriptor is shown, in order', needs='process'),
    prints('lone-surrogates', 'prints half a character', "print('\\ud800')\nprint('after')", shows=('after',)),
    prints('nul-and-bell', 'prints control characters', "print('a\\x00b\\x07c')", shows=('a', 'b', 'c'), hides=('\x00', '\x07'),
        must='control characters do not reach the model'),
    prints('ansi-colours', 'prints in red', "print('\\x1b[31mred\\x1b[0m')", 'red', must='terminal sequences do not reach the model'),
    prints('ansi-title', 'sets the title of the terminal', "print('\\x1b]0;title\\x07text')", 'text', must='terminal sequences do not reach the model'),
    prints('crlf', 'prints Windows line ends', "print('a\\r\\nb')", shows=('a', 'b')),
    prints('progress-bar', 'overwrites a line a thousand times', "for i in range(1000): print(f'\\r{i}', end='')\nprint()", shows=('999',), hides=('998',),
        must='only what was not overwritten is shown'),
    prints('no-text-at-all', 'writes bytes that are no text', "import os\n_ = os.write(1, b'a\\xff\\xfe\\x80b\\n')", shows=('a', 'b'),
        must='bad bytes are replaced', needs='process'),
    prints('character-in-two-writes', 'writes the two bytes of a character one by one', "import os\n_ = os.write(1, b'\\xc3')\n_ = os.write(1, b'\\xa9\\n')",
        'é', must='the character is whole', needs='process'),
    prints('emoji-and-combining', 'prints emoji, combining and right-to-left marks', "print('\\U0001f600 e\\u0301 \\u202eabc')", shows=('😀', 'é')),
    prints('print-options', 'uses `sep` and `end`', "print(1, 2, sep='-', end='!\\n')", '1-2!', must='print works as documented'),
    prints('falsy-last-expression', 'ends with 0', '0', '0', must='the value of a last expression is shown, a falsy one too', needs='echo'),
    prints('fence-in-output', 'prints a Markdown fence', "print('```python\\nfinal_answer = 1\\n```')", '```python\nfinal_answer = 1\n```',
        must='it is output, and nothing else'),
    prints('threads-print-at-once', 'eight threads print 1,000 lines',
        "import threading\ndef p(n):\n    for _ in range(125): print('line', n)\nts = [threading.Thread(target=p, args=(n,)) for n in range(8)]\nfor t in ts: t.start()\nfor t in ts: t.join()\nprint('end')",
        shows=('line 0', 'line 7', 'end'), must='nothing is lost'),
    # values
    answers('none', 'None', (None,)),
    answers('zero', '0', (0,)),
    answers('false', 'False', (False,)),
    answers('empty-text', "''", ('',)),
    answers('empty-list', '[]', ([],)),
    answers('nan', "float('nan')", None),
    answers('infinity', "float('inf')", (float('inf'),)),
    answers('tuple', '(1, (2, (3,)))', ((1, (2, (3,))),)),
    answers('set', '{1, 2, 3}', ({1, 2, 3},)),
    answers('keys-that-are-no-text', "{1: 'a', (2, 3): 'b', None: 'c'}", ({1: 'a', (2, 3): 'b', None: 'c'},)),
    answers('bytes', "b'\\x00\\xff'", (b'\x00\xff',)),
    answers('lone-surrogate', "'\\ud83d'", ('\ud83d',)),
    answers('nul-and-crlf', "'a\\r\\nb\\x00c'", ('a\r\nb\x00c',)),
    answers('giant-number', '7 ** 100_000', (7 ** 100000,)),
    answers('twenty-megabytes', "'x' * 20_000_000", ('x' * 20000000,)),
    answers('nested-50', 'value', (_deep(50),), 'answers a list nested 50 deep', 'value = []\nfor _ in range(50): value = [value]'),
    answers('nested-100000', 'value', None, 'answers a list nested 100,000 deep', 'value = []\nfor _ in range(100_000): value = [value]'),
    answers('circle', 'value', None, 'answers a list that holds itself', 'value = []\nvalue.append(value)'),
    answers('circle-of-dicts', 'value', None, 'answers a dict that holds itself', "value = {}\nvalue['me'] = value"),
    answers('function', 'lambda x: x', None),
    answers('module', "__import__('os')", None),
    answers('generator', '(x for x in range(3))', None),
    answers('class', 'int', None),
    answers('open-file', "open('f', 'w')", None),
    answers('exception', "ValueError('not raised')", None),
    answers('decimal-snan', "__import__('decimal').Decimal('sNaN')", None),
    answers('ellipsis', '...', None),
    cells('answer-by-call', 'answers and values', 'calls final_answer(7) inside `try: ... except Exception`', 'the cell ends with the answer 7',
        Step("try:\n    final_answer(7)\nexcept Exception:\n    pass\nprint('not reached')", 'none', hides=('not reached',), answer=(7,)),
        needs='answer called-answer'),
    cells('answer-taken-back', 'answers and values', 'sets final_answer and deletes it', 'there is no answer',
        Step('final_answer = 1\ndel final_answer', 'none', answer=()), needs='answer named-answer'),
    cells('answer-then-error', 'answers and values', 'sets final_answer and raises', 'the cell gave no answer yet: it may be pending',
        Step('final_answer = 1\n1 / 0', 'raised', answer=()), needs='answer named-answer'),
    cells('answer-in-a-function', 'answers and values', 'sets a local variable that is called final_answer', 'there is no answer',
        Step('def f():\n    final_answer = 1\nf()', 'none', answer=()), needs='answer named-answer'),
    cells('answer-to-itself', 'answers and values', 'assigns final_answer to itself before it is set', 'there is no answer',
        Step('final_answer = final_answer', ANY, answer=()), needs='answer named-answer'),
    cells('answer-of-an-earlier-cell', 'answers and values', 'sets final_answer, and does something else in the next cell', 'the next cell gives no answer',
        Step('final_answer = 1', answer=(1,)), Step('x = 2', answer=()), needs='answer'),
    trap('repr-raises', 'a value whose repr raises', "class T:\n    def __repr__(self): raise RuntimeError('no repr')"),
    trap('repr-raises-shown', 'a last expression whose repr raises', "class T:\n    def __repr__(self): raise RuntimeError('no repr')", 'T()', 'raised',
        needs='echo'),
    trap('repr-exits', 'a value whose repr calls sys.exit()', 'class T:\n    def __repr__(self): raise SystemExit'),
    trap('repr-is-no-text', 'a value whose repr is a number', 'class T:\n    def __repr__(self): return 5'),
    trap('repr-is-giant', 'a value whose repr has 50 MB', "class T:\n    def __repr__(self): return 'r' * 50_000_000"),
    trap('repr-recurses', 'a value whose repr asks for its repr', 'class T:\n    def __repr__(self): return repr(self)'),
    trap('repr-hangs', 'a value whose repr never ends', 'class T:\n    def __repr__(self):\n        while True: pass', error='none stopped', keeps='told',
        needs='stops answer'),
    trap('repr-hangs-shown', 'a last expression whose repr never ends', 'class T:\n    def __repr__(self):\n        while True: pass', 'T()', 'stopped',
        'told', 'stops echo'),
    trap('repr-changes-the-answer', 'a value whose repr sets another answer',
        "class T:\n    def __repr__(self):\n        global final_answer\n        final_answer = 'other'\n        return 'T'"),
    trap('str-hangs', 'an exception whose text never ends', 'class T(Exception):\n    def __str__(self):\n        while True: pass', 'raise T', 'stopped',
        'told', 'stops'),
    trap('del-raises', 'an object whose `__del__` raises', "class T:\n    def __del__(self): raise RuntimeError('in del')", 't = T(); del t', 'none'),
    trap('del-exits', 'an object whose `__del__` calls sys.exit()', 'class T:\n    def __del__(self): raise SystemExit', 't = T(); del t'),
    trap('del-hangs', 'an object whose `__del__` never ends', 'class T:\n    def __del__(self):\n        while True: pass', 't = T(); del t', 'none stopped',
        'told', 'stops'),
    trap('eq-raises', 'a value that refuses to be compared',
        "class T:\n    def __eq__(self, o): raise RuntimeError('no ==')\n    def __hash__(self): raise RuntimeError('no hash')\n    def __bool__(self): raise RuntimeError('no bool')\n    def __len__(self): return -1"),
    trap('eq-hangs', 'a value whose comparison never ends', 'class T:\n    def __eq__(self, o):\n        while True: pass\n    __hash__ = None', error=ANY,
        keeps='told', needs='stops'),
    trap('getattr-gives-itself', 'a value that has every attribute: itself',
        'class T:\n    def __getattr__(self, n): return self\n    def __call__(self, *a, **k): return self'),
    trap('getattr-raises', 'a value whose attributes all raise BaseException',
        "class T:\n    def __getattribute__(self, n): raise BaseException('no attributes')"),
    trap('class-lies', 'a value that says it is an int', "class T:\n    __class__ = int\n    def __repr__(self): return 'liar'"),
    trap('metaclass-without-a-name', 'a class whose metaclass refuses its name and its repr',
        "class M(type):\n    @property\n    def __name__(cls): raise RuntimeError('no name')\n    def __repr__(cls): raise RuntimeError('no repr')\n    def __instancecheck__(cls, o): raise RuntimeError('no instances')\nclass T(metaclass=M): pass"),
    trap('list-without-end', 'a list whose iteration never ends', 'class T(list):\n    def __iter__(self):\n        while True: yield from ()', error=ANY,
        keeps='told', needs='stops'),
    trap('dict-that-raises', 'a dict whose items raise',
        "class T(dict):\n    def items(self): raise RuntimeError('no items')\n    def __iter__(self): raise RuntimeError('no keys')\n    def keys(self): raise RuntimeError('no keys')"),
    trap('text-that-lies', 'a str whose methods raise',
        'class T(str):\n    def isascii(self): raise RuntimeError\n    def encode(self, *a): raise RuntimeError\n    def __str__(self): raise RuntimeError\n    def __len__(self): return -5'),
    trap('number-that-lies', 'an int whose methods raise',
        'class T(int):\n    def bit_length(self): raise RuntimeError\n    def __index__(self): raise RuntimeError\n    def __int__(self): raise RuntimeError'),
    trap('pickle-bomb', 'a value that runs a command when it is unpickled', 'import os\nclass T:\n    def __reduce__(self): return (os._exit, (9,))'),
    trap('weak-and-slotted', 'a value without dict, weak references or pickle',
        "class T:\n    __slots__ = ()\n    def __reduce_ex__(self, p): raise TypeError('no pickle')"),
    # contexts
    crosses('crlf-nul-surrogate', 'a text with every kind of line end, NUL and half a character', lambda: _ODD, '[ord(c) for c in given]',
        str([ord(c) for c in _ODD])),
    crosses('empty', 'an empty text', lambda: '', 'repr(given)', "''"),
    crosses('braces', 'a text full of braces and percent signs', lambda: '{x} %s {{}} {0!r} $y', 'given', '{x} %s {{}} {0!r} $y'),
    crosses('quotes', 'a text full of quotes and backslashes', lambda: '\'\'\'"""\\n\\', 'given', '\'\'\'"""\\n\\'),
    crosses('nested', 'a nested dict', lambda: {'a': [1, {'b': None}], 'c': {'d': 2.5}}, "given['a'][1], given['c']['d']", "{'b': None} 2.5"),
    crosses('keys', 'a dict whose keys are no text', lambda: {1: 'x', (2, 3): 'y'}, 'given[1], given[(2, 3)]', 'x y'),
    crosses('set', 'a set', lambda: {3, 1, 2}, 'sorted(given), isinstance(given, set)', '[1, 2, 3] True'),
    crosses('bytes', 'bytes of every value', lambda: bytes(range(256)), 'list(given) == list(range(256))', 'True'),
    crosses('100-mb', 'a text of 100 MB', _large, 'len(given), given[:21] == given[21:42], given.count(chr(13) + chr(10) + chr(0))',
        f'{_LARGE} True {_LARGE // len(_PATTERN)}', 30),
    crosses('10-mb-emoji', 'a text of 10 million characters, some beyond the basic plane', lambda: 'abcd😀' * 2000000,
        'len(given), given.count(chr(0x1f600)), given[-1] == chr(0x1f600)', '10000000 2000000 True', 20),
    # namespace
    works('names-before-an-error', 'binds names, then raises', Step('a = 1\nb = 2\nraise ValueError', 'raised'), 'print(a + b)', last='3'),
    works('import-in-a-failing-cell', 'imports, then raises', Step('import math\n1 / 0', 'raised'), 'print(math.floor(2.5))', last='2'),
    works('function-sees-rebinding', 'a function uses a name that a later cell binds again', 'x = 1\ndef f(): return x', 'x = 2', 'print(f())', last='2'),
    works('helper-defined-later', 'a function calls one that a later cell defines', 'def f(): return g()', 'def g(): return 5', 'print(f())', last='5'),
    works('mutual-recursion', 'two functions of two cells call each other', 'def even(n): return n == 0 or odd(n - 1)',
        'def odd(n): return n != 0 and even(n - 1)', 'print(even(10))', last='True'),
    works('global-statement', 'a function writes a global', 'n = 0\ndef up():\n    global n\n    n += 1', 'up(); up()', 'print(n)', last='2'),
    works('nonlocal', 'a closure counts', 'def counter():\n    n = 0\n    def up():\n        nonlocal n\n        n += 1\n        return n\n    return up',
        'c = counter()\nc()', 'print(c())', last='2'),
    works('del', 'deletes a name', 'y = 1', 'del y', "print('y' in globals())", last='False'),
    works('private-names', 'uses names with an underscore', '_hidden = 3', 'print(_hidden)', last='3'),
    works('class-over-cells', 'defines a class, and uses it in the next cell',
        "class A:\n    def __init__(self, v): self.v = v\n    def __repr__(self): return f'A({self.v!r})'", "print(A('x'))", last="A('x')"),
    works('inheritance', 'derives a class over cells, with super()', 'class A:\n    def f(self): return 1',
        'class B(A):\n    def f(self): return super().f() + 1', 'print(B().f())', last='2'),
    works('dataclass', 'defines a dataclass', 'from dataclasses import dataclass\n@dataclass(order=True)\nclass P:\n    x: int\n    y: int = 2',
        'print(P(1) < P(2), P(1))', last='True P(x=1, y=2)'),
    works('enum', 'defines an enum', 'from enum import Enum\nclass C(Enum):\n    RED = 1', 'print(C.RED, C(1) is C.RED)', last='C.RED True'),
    works('named-tuple', 'defines a NamedTuple with types', 'from typing import NamedTuple\nclass P(NamedTuple):\n    x: int', 'print(P(3))', last='P(x=3)'),
    works('pickle-own-class', 'pickles an object of a class made in a cell', 'import pickle\nclass A: pass',
        'print(type(pickle.loads(pickle.dumps(A()))) is A)', last='True'),
    works('generator', 'takes from a generator over cells', 'def g():\n    yield 1\n    yield 2\nit = g()', 'next(it)', 'print(next(it))', last='2'),
    works('comprehension-scope', 'uses names of the cell in nested comprehensions', 'k = 3\nrows = [[i * k for i in range(2)] for _ in range(2)]',
        'print(rows, [x for r in rows for x in r if x])', last='[[0, 3], [0, 3]] [3, 3]'),
    works('walrus-and-match', 'uses := and match', "if (n := 5) > 3:\n    match [n, 'x']:\n        case [int(a), str(b)]: r = (a, b)", 'print(r)',
        last="(5, 'x')"),
    works('top-level-await', 'awaits in a cell', 'import asyncio\nasync def f():\n    await asyncio.sleep(0)\n    return 7', 'v = await f()', 'print(v)',
        last='7', needs='await'),
    works('specific-exceptions', 'catches ZeroDivisionError, KeyError and an own exception',
        "class Own(Exception): pass\nseen = []\nfor e in (ZeroDivisionError, KeyError, Own):\n    try: raise e\n    except (ZeroDivisionError, KeyError): seen.append('known')\n    except Own: seen.append('own')",
        'print(seen)', last="['known', 'known', 'own']"),
    works('return-in-try', 'returns in `try` with `except Exception` around',
        'def f():\n    try: return 1\n    except Exception: return 2\n    finally: pass', 'print(f())', last='1'),
    works('break-in-try', 'breaks out of a loop inside `try`',
        'n = 0\nwhile True:\n    try:\n        n += 1\n        if n == 3: break\n    except Exception: pass', 'print(n)', last='3'),
    works('defaults-win', 'a default argument has the name of a global', 'x = 5\ndef f(x=1, *, y=2): return x + y', 'print(f())', last='3'),
    works('no-return-is-none', 'a function without return', 'def f(): 5', 'print(f())', last='None'),
    works('misspelt-name', 'uses a name that is not there but nearly', 'total = 3', "try: print(total1)\nexcept NameError: print('NameError')",
        last='NameError'),
    works('last-expression', 'ends with an expression', 'x = 20', 'x + 1', last='21', needs='echo'),
    works('main-guard', 'asks whether it is the main program', "print('yes' if __name__ == '__main__' else 'no')", last='yes'),
    works('star-import', 'imports everything from a module', 'from math import *', 'print(floor(2.5))', last='2'),
    works('files-stay', 'writes a file and reads it in the next cell', "with open('note.txt', 'w') as f: f.write('kept')", "print(open('note.txt').read())",
        last='kept', needs='files'),
    works('threads-in-a-cell', 'adds up in four threads',
        'import threading\nout = []\nts = [threading.Thread(target=out.append, args=(n,)) for n in range(4)]\nfor t in ts: t.start()\nfor t in ts: t.join()',
        'print(sorted(out))', last='[0, 1, 2, 3]'),
    works('child-process', 'runs a program', "import subprocess\ns = subprocess.run(['echo', 'hi'], capture_output=True, text=True).stdout",
        'print(s.strip())', last='hi', needs='process'),
    works('context-is-restored', 'overwrites the context, and looks at it later', "context = 'mine'", "print(context['a'])", last='1', needs='reserved'),
    source('empty', 'is empty', ''),
    source('blank', 'is blanks and line ends', ' \n\t\n\n'),
    source('comment-only', 'is a comment', '# nothing to do'),
    source('crlf-source', 'has Windows line ends', "x = 1\r\nif x:\r\n    print('ok')\r\n", 'ok'),
    source('form-feed-source', 'has form feeds and tabs', "\x0cif True:\n\tprint('ok')\n", 'ok'),
    source('no-final-newline', 'ends in the middle of a block', 'for i in range(2):\n    print(i)', '0\n1'),
    source('unicode-names', 'uses names in other scripts', 'größe = 1\nπ = 3\nprint(größe + π)', '4'),
    source('coding-cookie', 'declares a coding of its own', "# -*- coding: ascii -*-\nprint('é')"),
    source('future-annotations', 'imports from __future__', 'from __future__ import annotations\ndef f(x: Nope): return x\nprint(f(1))', '1'),
    source('long-source', 'is 5,000 assignments', '\n'.join(f'v = {n}' for n in range(5000)) + '\nprint(v)', '4999'),
    source('backticks-in-text', 'holds a Markdown fence in a text', "s = '''\n```python\nx\n```\n'''\nprint(len(s))", '17'),
    source('nul-in-source', 'holds a NUL', 'x = 1\x00', raises=True),
    source('surrogate-in-source', 'holds half a character', "x = '\ud800'", raises=True),
    source('nested-too-deep', 'nests 5,000 parentheses', '(' * 5000, raises=True),
    source('minus-without-end', 'is 100,000 minus signs and a one', '-' * 100000 + '1', raises=True),
    source('return-outside', 'returns outside a function', 'return 5', raises=True),
    source('bad-indent', 'is indented wrongly', 'if True:\nprint(1)', raises=True),
    source('python-2', 'prints as in Python 2', "print 'hello'", raises=True),
    cells('shell-magic', 'source text', 'uses magics of notebooks', 'an error, or what a notebook does; the session goes on',
        Step('%lsmagic\n!ls', 'none raised')),
    # patches
    patch('print-replaced', 'replaces print', 'print = lambda *a, **k: None\ndel print', 'variables', fresh=False),
    patch('builtins-print-replaced', 'replaces builtins.print by a function that raises',
        "import builtins\nold = builtins.print\ndef p(*a, **k): raise RuntimeError('no')\nbuiltins.print = p\nbuiltins.print = old"),
    patch('builtins-open-raises', 'replaces builtins.open by a function that raises',
        "import builtins\ndef no(*a, **k): raise RuntimeError('no')\nbuiltins.open = no", 'variables'),
    patch('builtins-deleted', 'deletes repr, len and isinstance from builtins', 'import builtins\ndel builtins.repr, builtins.len, builtins.isinstance'),
    patch('builtins-emptied', 'empties builtins', 'import builtins\nbuiltins.__dict__.clear()'),
    patch('import-removed', 'removes __import__', 'import builtins\nbuiltins.__import__ = None'),
    patch('builtins-shadowed', 'binds list, str, print and type as variables, as beginners do',
        "list = [1]; str = 'text'; type = 3; id = 4; sum = 0\ndel list, str, type, id, sum", 'variables', fresh=False),
    patch('dunder-builtins-none', 'sets __builtins__ to None', '__builtins__ = None'),
    patch('globals-cleared', 'clears its namespace', 'globals().clear()', 'session'),
    patch('modules-cleared', 'clears sys.modules', 'import sys\nsys.modules.clear()'),
    patch('main-deleted', 'deletes __main__ from sys.modules', "import sys\ndel sys.modules['__main__']"),
    patch('json-broken', 'replaces json.dumps and json.loads', 'import json\njson.dumps = json.loads = None'),
    patch('os-broken', 'replaces os.write, os.pipe, os.read, os.getpid and os.dup2', 'import os\nos.write = os.pipe = os.read = os.getpid = os.dup2 = None'),
    patch('traceback-broken', 'replaces the functions of traceback',
        "import traceback\nfor n in dir(traceback):\n    if not n.startswith('__'): setattr(traceback, n, None)"),
    patch('ast-broken', 'replaces ast.parse, and compile', 'import ast, builtins\nast.parse = None\nbuiltins.compile = None'),
    patch('threading-broken', 'replaces threading.Thread.start, Lock and get_ident',
        'import threading\nthreading.Thread.start = threading.Lock = threading.get_ident = None'),
    patch('time-broken', 'replaces time.time, monotonic and sleep', 'import time\ntime.time = time.monotonic = time.sleep = lambda *a: 0'),
    patch('signal-broken', 'replaces signal.signal and getsignal', 'import signal\nsignal.signal = signal.getsignal = None'),
    patch('linecache-broken', 'replaces linecache.cache', 'import linecache\nlinecache.cache = None'),
    patch('io-broken', 'replaces classes of io', 'import io\nio.TextIOWrapper = io.FileIO = io.StringIO = None'),
    patch('collector-off', 'turns the garbage collector off', 'import gc\ngc.disable()\ngc.freeze()', 'variables'),
    patch('switch-interval', 'lets no other thread run for an hour', 'import sys\nsys.setswitchinterval(3600)', 'variables'),
    patch('trace-left', 'leaves a trace function that raises', "import sys\ndef t(*a): raise RuntimeError('traced')\nsys.settrace(t)"),
    patch('profile-left', 'leaves a profile function that raises', "import sys\ndef t(*a): raise RuntimeError('profiled')\nsys.setprofile(t)"),
    patch('displayhook-left', 'leaves a display hook that raises', "import sys\ndef t(*a): raise RuntimeError('shown')\nsys.displayhook = t", 'variables'),
    patch('warnings-as-errors', 'makes every warning an error', "import warnings\nwarnings.simplefilter('error')", 'variables'),
    patch('digits-limited', 'limits the digits of numbers, and asks for more', 'import sys\nsys.set_int_max_str_digits(640)\n10 ** 1000', 'variables'),
    patch('codec-registered', "registers an error handler that never ends for 'replace'",
        "import codecs\ndef stay(e):\n    while True: pass\ncodecs.register_error('replace', stay)\ncodecs.register_error('backslashreplace', stay)\nprint('\\ud800')",
        needs='stops'),
    patch('audit-hook', 'adds an audit hook that refuses everything from now on',
        'import sys\nready = []\ndef hook(name, args):\n    if ready: raise RuntimeError(name)\nsys.addaudithook(hook)\nready.append(1)', needs='process'),
    patch('alarm-left', 'leaves an alarm that ends the process 50 ms later',
        'import signal\nsignal.signal(signal.SIGALRM, signal.SIG_DFL)\nsignal.setitimer(signal.ITIMER_REAL, 0.05)\nimport time; time.sleep(0.02)',
        needs='process'),
    patch('alarm-handler-left', 'leaves an alarm, with a handler that raises, every 50 ms',
        "import signal\ndef ring(*a): raise RuntimeError('alarm')\nsignal.signal(signal.SIGALRM, ring)\nsignal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)",
        needs='process'),
    patch('interrupt-ignored-and-left', 'leaves the interrupt ignored', 'import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)', 'variables',
        'process'),
    patch('child-signal-ignored', 'ignores the ends of its children', 'import signal\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)', 'variables', 'process'),
    patch('pipe-signal-default', 'lets a broken pipe end the process', 'import signal\nsignal.signal(signal.SIGPIPE, signal.SIG_DFL)', 'variables',
        'process'),
    patch('folder-changed', 'changes to a folder, and removes it', "import os\nos.mkdir('away'); os.chdir('away'); os.rmdir('../away')", 'variables',
        'process'),
    patch('umask', 'takes every permission from new files', 'import os\nos.umask(0o777)', 'variables', 'process'),
    patch('environment-cleared', 'clears its environment', 'import os\nos.environ.clear()', 'variables', 'process'),
    patch('locale-changed', "changes the locale and the default encoding's variables",
        "import locale, os\nos.environ['PYTHONIOENCODING'] = 'ascii'\nlocale.setlocale(locale.LC_ALL, 'C')", 'variables', 'process'),
    patch('new-session', 'becomes the leader of a process group of its own, where that is allowed', 'import os\ntry: os.setsid()\nexcept OSError: pass',
        'variables', 'process'),
    patch('finalizers-that-loop', 'leaves an object in a circle whose `__del__` loops for ever',
        'import gc\nclass D:\n    def __del__(self):\n        while True: pass\nd = D(); d.me = d; del d', needs='stops'),
    patch('reserved-names', 'overwrites the names that belong to the session', 'context = tools = llm_query = None', 'variables', fresh=False),
)

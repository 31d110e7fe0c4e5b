"""Work that clumsy sessions get wrong: output, values, contexts, names over cells, source text, patched interpreters."""

from __future__ import annotations

from suite.case import ANY, CellCase, Step, cells

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


def prints(name, code, output=None, *, shows=(), hides=(), needs="", raises=False, seconds=10) -> CellCase:
    """As in a terminal, but what is too long is capped: its head and tail are kept."""
    step = Step(code, "raised" if raises else "none", output, shows, hides)
    return cells(name, "output", step, needs=needs, seconds=seconds)


def answers(name, code, value, before="") -> CellCase:
    """The answer arrives, equal to the one given; where that is None, as it is or as its repr."""
    step = Step(f"{before}\nfinal_answer = {code}", answer=value)
    return cells(f"answer-{name}", "answers and values", step, needs="answer")


def trap(name, code, use="final_answer = T()", error=ANY, keeps="variables", needs="") -> CellCase:
    """The cell ends, with the value or with an error, and the session goes on."""
    steps = (Step(f"{code}\n{use}", error), Step("try: del T\nexcept NameError: pass", ANY))
    return cells(name, "traps in objects", *steps, keeps=keeps, needs=needs)


def crosses(name, value, check, output, seconds=10) -> CellCase:
    """A value from outside arrives exactly as it was."""
    rest = {"given": {"given": value}, "needs": "set", "seconds": seconds}
    return cells(f"context-{name}", "context from outside", Step(f"print({check})", output=output), **rest)


def works(name, *steps, last, needs="") -> CellCase:
    """Cells of which the last one must print `last`."""
    return cells(name, "names over cells", *steps[:-1], Step(steps[-1], output=last), needs=needs)


def source(name, code, output=None, *, raises=False) -> CellCase:
    return cells(name, "source text", Step(code, "raised" if raises else "none", output))


def patch(name, code, keeps="told", needs="", *, fresh=True) -> CellCase:
    """The session works on, or is restarted and says what is lost."""
    return cells(name, "patched interpreter", Step(code, ANY), keeps=keeps, needs=needs, fresh=fresh)


# fmt: off
CASES = (
    # output
    prints('gigabyte-of-prints', "p = 'x' * 1_000_000\nprint('head')\nfor _ in range(1000): print(p)\nprint('tail')", shows=('head', 'tail'),
        seconds=40),
    prints('gigabyte-of-bytes', "import os\nb = b'x' * 1_000_000\nfor _ in range(1000): os.write(1, b)\nprint('tail')", shows=('tail',),
        needs='process', seconds=40),
    prints('gigabyte-of-a-child', "import os\n_ = os.system('head -c 1000000000 /dev/zero')\nprint('tail')", shows=('tail',), needs='process',
        seconds=40),
    prints('one-line-of-100-mb', "print('x' * 100_000_000)\nprint('tail')", shows=('tail',), seconds=20),
    prints('a-hundred-thousand-lines', "for i in range(100_000): print(i)\nprint('tail')", shows=('0\n1\n2', 'tail'), seconds=20),
    prints('flood-on-stderr', "import sys\nfor _ in range(50): sys.stderr.write('x' * 1_000_000)\nprint('tail')", shows=('tail',)),
    prints('giant-last-expression', "'head' + 'y' * 50_000_000 + 'tail'", shows=('head', 'tail'), needs='echo'),
    prints('giant-exception', "raise ValueError('z' * 50_000_000)", shows=('ValueError',), raises=True),
    prints('deep-traceback', 'def f(n): return 1 / n if n == 0 else f(n - 1)\nf(900)', shows=('ZeroDivisionError',), raises=True),
    prints('prints-before-an-error', "print('seen')\n1 / 0", shows=('seen', 'ZeroDivisionError'), raises=True),
    prints('both-streams-in-order', "import sys\nprint('1')\nprint('2', file=sys.stderr)\nprint('3')", '1\n2\n3'),
    prints('child-in-order', "import subprocess\nprint('1')\nsubprocess.run(['echo', '2'])\nprint('3')", '1\n2\n3', needs='process'),
    prints('descriptor-in-order', "import os\nprint('1')\n_ = os.write(1, b'2\\n')\nprint('3')", '1\n2\n3', needs='process'),
    prints('lone-surrogates', "print('\\ud800')\nprint('after')", shows=('after',)),
    prints('nul-and-bell', "print('a\\x00b\\x07c')", shows=('a', 'b', 'c'), hides=('\x00', '\x07')),
    prints('ansi-colours', "print('\\x1b[31mred\\x1b[0m')", 'red'),
    prints('ansi-title', "print('\\x1b]0;title\\x07text')", 'text'),
    prints('crlf', "print('a\\r\\nb')", shows=('a', 'b')),
    prints('progress-bar', "for i in range(1000): print(f'\\r{i}', end='')\nprint()", shows=('999',), hides=('998',)),
    prints('no-text-at-all', "import os\n_ = os.write(1, b'a\\xff\\xfe\\x80b\\n')", shows=('a', 'b'), needs='process'),
    prints('character-in-two-writes', "import os\n_ = os.write(1, b'\\xc3')\n_ = os.write(1, b'\\xa9\\n')", 'é', needs='process'),
    prints('emoji-and-combining', "print('\\U0001f600 e\\u0301 \\u202eabc')", shows=('😀', 'é')),
    prints('print-options', "print(1, 2, sep='-', end='!\\n')", '1-2!'),
    prints('falsy-last-expression', '0', '0', needs='echo'),
    prints('fence-in-output', "print('```python\\nfinal_answer = 1\\n```')", '```python\nfinal_answer = 1\n```'),
    prints('threads-print-at-once',
        "import threading\ndef p(n):\n    for _ in range(125): print('line', n)\nts = [threading.Thread(target=p, args=(n,)) for n in range(8)]\nfor t in ts: t.start()\nfor t in ts: t.join()\nprint('end')",
        shows=('line 0', 'line 7', 'end')),
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
    answers('nested-50', 'value', (_deep(50),), 'value = []\nfor _ in range(50): value = [value]'),
    answers('nested-100000', 'value', None, 'value = []\nfor _ in range(100_000): value = [value]'),
    answers('circle', 'value', None, 'value = []\nvalue.append(value)'),
    answers('circle-of-dicts', 'value', None, "value = {}\nvalue['me'] = value"),
    answers('function', 'lambda x: x', None),
    answers('module', "__import__('os')", None),
    answers('generator', '(x for x in range(3))', None),
    answers('class', 'int', None),
    answers('open-file', "open('f', 'w')", None),
    answers('exception', "ValueError('not raised')", None),
    answers('decimal-snan', "__import__('decimal').Decimal('sNaN')", None),
    answers('ellipsis', '...', None),
    cells('answer-by-call', 'answers and values',
        Step("try:\n    final_answer(7)\nexcept Exception:\n    pass\nprint('not reached')", 'none', hides=('not reached',), answer=(7,)),
        needs='answer called-answer'),
    cells('answer-taken-back', 'answers and values', Step('final_answer = 1\ndel final_answer', 'none', answer=()), needs='answer named-answer'),
    cells('answer-then-error', 'answers and values', Step('final_answer = 1\n1 / 0', 'raised', answer=()), needs='answer named-answer'),
    cells('answer-in-a-function', 'answers and values', Step('def f():\n    final_answer = 1\nf()', 'none', answer=()), needs='answer named-answer'),
    cells('answer-to-itself', 'answers and values', Step('final_answer = final_answer', ANY, answer=()), needs='answer named-answer'),
    cells('answer-of-an-earlier-cell', 'answers and values', Step('final_answer = 1', answer=(1,)), Step('x = 2', answer=()), needs='answer'),
    trap('repr-raises', "class T:\n    def __repr__(self): raise RuntimeError('no repr')"),
    trap('repr-raises-shown', "class T:\n    def __repr__(self): raise RuntimeError('no repr')", 'T()', 'raised', needs='echo'),
    trap('repr-exits', 'class T:\n    def __repr__(self): raise SystemExit'),
    trap('repr-is-no-text', 'class T:\n    def __repr__(self): return 5'),
    trap('repr-is-giant', "class T:\n    def __repr__(self): return 'r' * 50_000_000"),
    trap('repr-recurses', 'class T:\n    def __repr__(self): return repr(self)'),
    trap('repr-hangs', 'class T:\n    def __repr__(self):\n        while True: pass', error='none stopped', keeps='told', needs='stops answer'),
    trap('repr-hangs-shown', 'class T:\n    def __repr__(self):\n        while True: pass', 'T()', 'stopped', 'told', 'stops echo'),
    trap('repr-changes-the-answer',
        "class T:\n    def __repr__(self):\n        global final_answer\n        final_answer = 'other'\n        return 'T'"),
    trap('str-hangs', 'class T(Exception):\n    def __str__(self):\n        while True: pass', 'raise T', 'stopped', 'told', 'stops'),
    trap('del-raises', "class T:\n    def __del__(self): raise RuntimeError('in del')", 't = T(); del t', 'none'),
    trap('del-exits', 'class T:\n    def __del__(self): raise SystemExit', 't = T(); del t'),
    trap('del-hangs', 'class T:\n    def __del__(self):\n        while True: pass', 't = T(); del t', 'none stopped', 'told', 'stops'),
    trap('eq-raises',
        "class T:\n    def __eq__(self, o): raise RuntimeError('no ==')\n    def __hash__(self): raise RuntimeError('no hash')\n    def __bool__(self): raise RuntimeError('no bool')\n    def __len__(self): return -1"),
    trap('eq-hangs', 'class T:\n    def __eq__(self, o):\n        while True: pass\n    __hash__ = None', error=ANY, keeps='told', needs='stops'),
    trap('getattr-gives-itself', 'class T:\n    def __getattr__(self, n): return self\n    def __call__(self, *a, **k): return self'),
    trap('getattr-raises', "class T:\n    def __getattribute__(self, n): raise BaseException('no attributes')"),
    trap('class-lies', "class T:\n    __class__ = int\n    def __repr__(self): return 'liar'"),
    trap('metaclass-without-a-name',
        "class M(type):\n    @property\n    def __name__(cls): raise RuntimeError('no name')\n    def __repr__(cls): raise RuntimeError('no repr')\n    def __instancecheck__(cls, o): raise RuntimeError('no instances')\nclass T(metaclass=M): pass"),
    trap('list-without-end', 'class T(list):\n    def __iter__(self):\n        while True: yield from ()', error=ANY, keeps='told', needs='stops'),
    trap('dict-that-raises',
        "class T(dict):\n    def items(self): raise RuntimeError('no items')\n    def __iter__(self): raise RuntimeError('no keys')\n    def keys(self): raise RuntimeError('no keys')"),
    trap('text-that-lies',
        'class T(str):\n    def isascii(self): raise RuntimeError\n    def encode(self, *a): raise RuntimeError\n    def __str__(self): raise RuntimeError\n    def __len__(self): return -5'),
    trap('number-that-lies',
        'class T(int):\n    def bit_length(self): raise RuntimeError\n    def __index__(self): raise RuntimeError\n    def __int__(self): raise RuntimeError'),
    trap('pickle-bomb', 'import os\nclass T:\n    def __reduce__(self): return (os._exit, (9,))'),
    trap('weak-and-slotted', "class T:\n    __slots__ = ()\n    def __reduce_ex__(self, p): raise TypeError('no pickle')"),
    # contexts
    crosses('crlf-nul-surrogate', lambda: _ODD, '[ord(c) for c in given]', str([ord(c) for c in _ODD])),
    crosses('empty', lambda: '', 'repr(given)', "''"),
    crosses('braces', lambda: '{x} %s {{}} {0!r} $y', 'given', '{x} %s {{}} {0!r} $y'),
    crosses('quotes', lambda: '\'\'\'"""\\n\\', 'given', '\'\'\'"""\\n\\'),
    crosses('nested', lambda: {'a': [1, {'b': None}], 'c': {'d': 2.5}}, "given['a'][1], given['c']['d']", "{'b': None} 2.5"),
    crosses('keys', lambda: {1: 'x', (2, 3): 'y'}, 'given[1], given[(2, 3)]', 'x y'),
    crosses('set', lambda: {3, 1, 2}, 'sorted(given), isinstance(given, set)', '[1, 2, 3] True'),
    crosses('bytes', lambda: bytes(range(256)), 'list(given) == list(range(256))', 'True'),
    crosses('100-mb', _large, 'len(given), given[:21] == given[21:42], given.count(chr(13) + chr(10) + chr(0))',
        f'{_LARGE} True {_LARGE // len(_PATTERN)}', 30),
    crosses('10-mb-emoji', lambda: 'abcd😀' * 2000000, 'len(given), given.count(chr(0x1f600)), given[-1] == chr(0x1f600)', '10000000 2000000 True',
        20),
    # namespace
    works('names-before-an-error', Step('a = 1\nb = 2\nraise ValueError', 'raised'), 'print(a + b)', last='3'),
    works('import-in-a-failing-cell', Step('import math\n1 / 0', 'raised'), 'print(math.floor(2.5))', last='2'),
    works('function-sees-rebinding', 'x = 1\ndef f(): return x', 'x = 2', 'print(f())', last='2'),
    works('helper-defined-later', 'def f(): return g()', 'def g(): return 5', 'print(f())', last='5'),
    works('mutual-recursion', 'def even(n): return n == 0 or odd(n - 1)', 'def odd(n): return n != 0 and even(n - 1)', 'print(even(10))',
        last='True'),
    works('global-statement', 'n = 0\ndef up():\n    global n\n    n += 1', 'up(); up()', 'print(n)', last='2'),
    works('nonlocal', 'def counter():\n    n = 0\n    def up():\n        nonlocal n\n        n += 1\n        return n\n    return up',
        'c = counter()\nc()', 'print(c())', last='2'),
    works('del', 'y = 1', 'del y', "print('y' in globals())", last='False'),
    works('private-names', '_hidden = 3', 'print(_hidden)', last='3'),
    works('class-over-cells', "class A:\n    def __init__(self, v): self.v = v\n    def __repr__(self): return f'A({self.v!r})'", "print(A('x'))",
        last="A('x')"),
    works('inheritance', 'class A:\n    def f(self): return 1', 'class B(A):\n    def f(self): return super().f() + 1', 'print(B().f())', last='2'),
    works('dataclass', 'from dataclasses import dataclass\n@dataclass(order=True)\nclass P:\n    x: int\n    y: int = 2', 'print(P(1) < P(2), P(1))',
        last='True P(x=1, y=2)'),
    works('enum', 'from enum import Enum\nclass C(Enum):\n    RED = 1', 'print(C.RED, C(1) is C.RED)', last='C.RED True'),
    works('named-tuple', 'from typing import NamedTuple\nclass P(NamedTuple):\n    x: int', 'print(P(3))', last='P(x=3)'),
    works('pickle-own-class', 'import pickle\nclass A: pass', 'print(type(pickle.loads(pickle.dumps(A()))) is A)', last='True'),
    works('generator', 'def g():\n    yield 1\n    yield 2\nit = g()', 'next(it)', 'print(next(it))', last='2'),
    works('comprehension-scope', 'k = 3\nrows = [[i * k for i in range(2)] for _ in range(2)]', 'print(rows, [x for r in rows for x in r if x])',
        last='[[0, 3], [0, 3]] [3, 3]'),
    works('walrus-and-match', "if (n := 5) > 3:\n    match [n, 'x']:\n        case [int(a), str(b)]: r = (a, b)", 'print(r)', last="(5, 'x')"),
    works('top-level-await', 'import asyncio\nasync def f():\n    await asyncio.sleep(0)\n    return 7', 'v = await f()', 'print(v)', last='7',
        needs='await'),
    works('specific-exceptions',
        "class Own(Exception): pass\nseen = []\nfor e in (ZeroDivisionError, KeyError, Own):\n    try: raise e\n    except (ZeroDivisionError, KeyError): seen.append('known')\n    except Own: seen.append('own')",
        'print(seen)', last="['known', 'known', 'own']"),
    works('return-in-try', 'def f():\n    try: return 1\n    except Exception: return 2\n    finally: pass', 'print(f())', last='1'),
    works('break-in-try', 'n = 0\nwhile True:\n    try:\n        n += 1\n        if n == 3: break\n    except Exception: pass', 'print(n)', last='3'),
    works('defaults-win', 'x = 5\ndef f(x=1, *, y=2): return x + y', 'print(f())', last='3'),
    works('no-return-is-none', 'def f(): 5', 'print(f())', last='None'),
    works('misspelt-name', 'total = 3', "try: print(total1)\nexcept NameError: print('NameError')", last='NameError'),
    works('last-expression', 'x = 20', 'x + 1', last='21', needs='echo'),
    works('main-guard', "print('yes' if __name__ == '__main__' else 'no')", last='yes'),
    works('star-import', 'from math import *', 'print(floor(2.5))', last='2'),
    works('files-stay', "with open('note.txt', 'w') as f: f.write('kept')", "print(open('note.txt').read())", last='kept', needs='files'),
    works('threads-in-a-cell',
        'import threading\nout = []\nts = [threading.Thread(target=out.append, args=(n,)) for n in range(4)]\nfor t in ts: t.start()\nfor t in ts: t.join()',
        'print(sorted(out))', last='[0, 1, 2, 3]'),
    works('child-process', "import subprocess\ns = subprocess.run(['echo', 'hi'], capture_output=True, text=True).stdout", 'print(s.strip())',
        last='hi', needs='process'),
    works('context-is-restored', "context = 'mine'", "print(context['a'])", last='1', needs='reserved'),
    source('empty', ''),
    source('blank', ' \n\t\n\n'),
    source('comment-only', '# nothing to do'),
    source('crlf-source', "x = 1\r\nif x:\r\n    print('ok')\r\n", 'ok'),
    source('form-feed-source', "\x0cif True:\n\tprint('ok')\n", 'ok'),
    source('no-final-newline', 'for i in range(2):\n    print(i)', '0\n1'),
    source('unicode-names', 'größe = 1\nπ = 3\nprint(größe + π)', '4'),
    source('coding-cookie', "# -*- coding: ascii -*-\nprint('é')"),
    source('future-annotations', 'from __future__ import annotations\ndef f(x: Nope): return x\nprint(f(1))', '1'),
    source('long-source', '\n'.join(f'v = {n}' for n in range(5000)) + '\nprint(v)', '4999'),
    source('backticks-in-text', "s = '''\n```python\nx\n```\n'''\nprint(len(s))", '17'),
    source('nul-in-source', 'x = 1\x00', raises=True),
    source('surrogate-in-source', "x = '\ud800'", raises=True),
    source('nested-too-deep', '(' * 5000, raises=True),
    source('minus-without-end', '-' * 100000 + '1', raises=True),
    source('return-outside', 'return 5', raises=True),
    source('bad-indent', 'if True:\nprint(1)', raises=True),
    source('python-2', "print 'hello'", raises=True),
    cells('shell-magic', 'source text', Step('%lsmagic\n!ls', 'none raised')),
    # patches
    patch('print-replaced', 'print = lambda *a, **k: None\ndel print', 'variables', fresh=False),
    patch('builtins-print-replaced',
        "import builtins\nold = builtins.print\ndef p(*a, **k): raise RuntimeError('no')\nbuiltins.print = p\nbuiltins.print = old"),
    patch('builtins-open-raises', "import builtins\ndef no(*a, **k): raise RuntimeError('no')\nbuiltins.open = no", 'variables'),
    patch('builtins-deleted', 'import builtins\ndel builtins.repr, builtins.len, builtins.isinstance'),
    patch('builtins-emptied', 'import builtins\nbuiltins.__dict__.clear()'),
    patch('import-removed', 'import builtins\nbuiltins.__import__ = None'),
    patch('builtins-shadowed', "list = [1]; str = 'text'; type = 3; id = 4; sum = 0\ndel list, str, type, id, sum", 'variables', fresh=False),
    patch('dunder-builtins-none', '__builtins__ = None'),
    patch('globals-cleared', 'globals().clear()', 'session'),
    patch('modules-cleared', 'import sys\nsys.modules.clear()'),
    patch('main-deleted', "import sys\ndel sys.modules['__main__']"),
    patch('json-broken', 'import json\njson.dumps = json.loads = None'),
    patch('os-broken', 'import os\nos.write = os.pipe = os.read = os.getpid = os.dup2 = None'),
    patch('traceback-broken', "import traceback\nfor n in dir(traceback):\n    if not n.startswith('__'): setattr(traceback, n, None)"),
    patch('ast-broken', 'import ast, builtins\nast.parse = None\nbuiltins.compile = None'),
    patch('threading-broken', 'import threading\nthreading.Thread.start = threading.Lock = threading.get_ident = None'),
    patch('time-broken', 'import time\ntime.time = time.monotonic = time.sleep = lambda *a: 0'),
    patch('signal-broken', 'import signal\nsignal.signal = signal.getsignal = None'),
    patch('linecache-broken', 'import linecache\nlinecache.cache = None'),
    patch('io-broken', 'import io\nio.TextIOWrapper = io.FileIO = io.StringIO = None'),
    patch('collector-off', 'import gc\ngc.disable()\ngc.freeze()', 'variables'),
    patch('switch-interval', 'import sys\nsys.setswitchinterval(3600)', 'variables'),
    patch('trace-left', "import sys\ndef t(*a): raise RuntimeError('traced')\nsys.settrace(t)"),
    patch('profile-left', "import sys\ndef t(*a): raise RuntimeError('profiled')\nsys.setprofile(t)"),
    patch('displayhook-left', "import sys\ndef t(*a): raise RuntimeError('shown')\nsys.displayhook = t", 'variables'),
    patch('warnings-as-errors', "import warnings\nwarnings.simplefilter('error')", 'variables'),
    patch('digits-limited', 'import sys\nsys.set_int_max_str_digits(640)\n10 ** 1000', 'variables'),
    patch('codec-registered',
        "import codecs\ndef stay(e):\n    while True: pass\ncodecs.register_error('replace', stay)\ncodecs.register_error('backslashreplace', stay)\nprint('\\ud800')",
        needs='stops'),
    patch('audit-hook',
        'import sys\nready = []\ndef hook(name, args):\n    if ready: raise RuntimeError(name)\nsys.addaudithook(hook)\nready.append(1)',
        needs='process'),
    patch('alarm-left',
        'import signal\nsignal.signal(signal.SIGALRM, signal.SIG_DFL)\nsignal.setitimer(signal.ITIMER_REAL, 0.05)\nimport time; time.sleep(0.02)',
        needs='process'),
    patch('alarm-handler-left',
        "import signal\ndef ring(*a): raise RuntimeError('alarm')\nsignal.signal(signal.SIGALRM, ring)\nsignal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)",
        needs='process'),
    patch('interrupt-ignored-and-left', 'import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)', 'variables', 'process'),
    patch('child-signal-ignored', 'import signal\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)', 'variables', 'process'),
    patch('pipe-signal-default', 'import signal\nsignal.signal(signal.SIGPIPE, signal.SIG_DFL)', 'variables', 'process'),
    patch('folder-changed', "import os\nos.mkdir('away'); os.chdir('away'); os.rmdir('../away')", 'variables', 'process'),
    patch('umask', 'import os\nos.umask(0o777)', 'variables', 'process'),
    patch('environment-cleared', 'import os\nos.environ.clear()', 'variables', 'process'),
    patch('locale-changed', "import locale, os\nos.environ['PYTHONIOENCODING'] = 'ascii'\nlocale.setlocale(locale.LC_ALL, 'C')", 'variables',
        'process'),
    patch('new-session', 'import os\ntry: os.setsid()\nexcept OSError: pass', 'variables', 'process'),
    patch('finalizers-that-loop', 'import gc\nclass D:\n    def __del__(self):\n        while True: pass\nd = D(); d.me = d; del d', needs='stops'),
    patch('reserved-names', 'context = tools = llm_query = None', 'variables', fresh=False),
)

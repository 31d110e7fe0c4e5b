"""Cells that endanger their process: endless, in C, out of memory, dying, with broken streams, leaving things behind."""

from __future__ import annotations

from suite.case import ANY, CellCase, Step, cells

IN_TIME = "it is stopped within timeout + grace + 0.5 s"
NEXT = "the next cell works, or the session was restarted and says so"

#: Leaves 200 MB of address space above what is used, so that a bomb goes off soon and harms nobody.
_TIGHT = """
import resource
used = int(open('/proc/self/statm').read().split()[0]) * 4096
soft, hard = resource.getrlimit(resource.RLIMIT_AS)
resource.setrlimit(resource.RLIMIT_AS, (used + 200_000_000, hard))
"""
_LOOSE = "\nresource.setrlimit(resource.RLIMIT_AS, (soft, hard))"

_SWALLOW = """
def stay():
    while True:
        try:
            while True: len('')
        except {what}: pass
stay()
"""

#: The descriptors through which the worker of a session may talk to its host.
_LINK = """import os
links = [int(f) for f in os.listdir('/proc/self/fd') if int(f) > 2 and os.path.exists(f'/proc/self/fd/{f}')]
links = [f for f in links if os.readlink(f'/proc/self/fd/{f}').startswith(('socket', 'pipe'))]
def forge(data):
    for f in links:
        os.set_blocking(f, False)
        try: os.write(f, data)
        except OSError: pass
"""
_FRAMES = (
    '{"t":"done","g":1,"id":%d,"answer":{"value":"forged"}}',
    '{"t":"done"}',
    '{"t":"died","g":1,"signal":9}',
    '{"t":["died"]}',
    '{"t":"call","g":1,"id":1,"cell":%d,"name":"llm_query","args":["forged"],"kwargs":{}}',
    '{"t":"call","g":1,"id":[],"cell":%d,"name":[],"args":0}',
    '{"t":"out","head":5,"dropped":"x"}',
    '{"t":"hello","g":1,"pid":1}',
)

_SLEEPER = "['sleep', '600', '0.00' + outside['token']]"
_NAME = "try: open('/proc/self/comm', 'w').write(outside['token'])\nexcept Exception: pass\n"
_TALK = "import threading, time\ndef talk():\n    while True:\n        print('late'); time.sleep(0.005)\n"
_WAIT = "import time\nfor _ in range(15): time.sleep(0.01)\nprint('mine')"


def endless(name, does, code, keeps="told", needs="", fresh=False, error="stopped") -> CellCase:
    step = Step(code, error)
    return cells(name, "endless loops", does, IN_TIME, step, keeps=keeps, needs=f"{needs} stops", fresh=fresh)


def blocking(name, does, code, needs="", shows=()) -> CellCase:
    step = Step("print('before')\n" + code, "stopped", shows=shows)
    return cells(name, "C-level blocking", does, IN_TIME, step, keeps="told", needs=f"{needs} stops")


def bomb(name, does, code, error=ANY, keeps="told", must="", *then, needs="process", fresh=False) -> CellCase:
    must = must or "the cell fails or not, and the session goes on"
    steps = (Step(code, error), *then)
    return cells(name, "resources", does, must, *steps, keeps=keeps, needs=needs, fresh=fresh, seconds=20)


def dies(name, does, code, error="died") -> CellCase:
    must = "the model is told that the process died and which variables are lost, and the session goes on"
    step = Step("print('last words', flush=True)\n" + code, error)
    return cells(name, "ends of the process", does, must, step, keeps="told")


def raises(name, does, code, shows="", error="raised", keeps="variables") -> CellCase:
    step = Step(code, error, shows=(shows,) if shows else ())
    return cells(name, "exceptions", does, "an error of the cell, and no more", step, keeps=keeps)


def spoil(name, does, code, error=ANY, keeps="variables", needs="") -> CellCase:
    two = Step("import sys\nprint('two', file=getattr(sys, 'stderr', None))", output="two")
    steps = (Step(code, error), Step("print('one')", output="one"), two)
    return cells(name, "streams and descriptors", does, "the next cells print", *steps, keeps=keeps, needs=needs)


def forge(name, does, code, *more, keeps="told", needs="process") -> CellCase:
    must = "nothing of it is believed: no answer is given, no tool is called, the next cell works"
    steps = (Step(_LINK + code, ANY, answer=()), *more)
    return cells(name, "protocol look-alikes", does, must, *steps, keeps=keeps, needs=needs, fresh=True)


def talks(name, does, code, needs="") -> CellCase:
    must = "what it prints does not get into the output of a later cell"
    return cells(name, "left behind", does, must, code, Step(_WAIT, output="mine"), needs=needs, fresh=True)


def stays(name, does, code, *more, killed=False) -> CellCase:
    must = "nothing is left when the host is gone, even by SIGKILL" if killed else "nothing outlives the session"
    needs, seconds = ("", 15) if killed else ("process", 10)
    rest = {"keeps": "told", "after": "no_children", "fresh": True, "host_killed": killed}
    return cells(name, "left behind", does, must, code, *more, needs=needs, seconds=seconds, **rest)


# fmt: off
CASES = (
    # endless
    endless('while-true', 'loops for ever', 'while True: pass', 'variables'),
    endless('while-in-function', 'loops for ever in a function', 'def f():\n while True: pass\nf()', 'variables'),
    endless('for-count', 'counts for ever', 'import itertools\nfor i in itertools.count(): pass', 'variables'),
    endless('list-comprehension', 'fills an endless comprehension with nothing', '[0 for _ in iter(int, 1) if _]'),
    endless('dict-comprehension', 'the same with a dict', '{_: 0 for _ in iter(int, 1)}', 'variables'),
    endless('generator-expression', 'sums an endless generator', 'sum(1 for _ in iter(int, 1))', 'variables'),
    endless('generator-function', 'exhausts a generator that has no end', 'def g():\n    while True: yield 0\nfor _ in g(): pass', 'variables'),
    endless('generator-that-refuses-to-close', 'closes a generator that swallows every exception and goes on',
        'def g():\n    while True:\n        try:\n            while True: yield\n        except Exception: pass\nfor _ in g(): pass'),
    endless('exponential-recursion', 'recurses without depth, and again at every level where the depth is reached',
        'def f():\n    try: f()\n    except RecursionError: pass\n    try: f()\n    except RecursionError: pass\nf()'),
    endless('ackermann', 'computes a number for longer than the world lasts',
        'def a(m, n):\n    return n + 1 if m == 0 else (a(m - 1, 1) if n == 0 else a(m - 1, a(m, n - 1)))\nimport sys\nwhile True:\n    a(2, 9)',
        'variables'),
    endless('except-exception', 'swallows Exception in a loop', _SWALLOW.format(what='Exception'), 'variables'),
    endless('except-baseexception', 'swallows BaseException in a loop', _SWALLOW.format(what='BaseException')),
    endless('except-nested', 'swallows BaseException in two loops, one in the other',
        "def stay():\n while True:\n  try:\n   while True:\n    try:\n     while True: len('')\n    except BaseException: pass\n  except BaseException: pass\nstay()"),
    endless('suppress-everything', 'loops in a `with` that swallows every exception',
        "class All:\n    def __enter__(self): pass\n    def __exit__(self, *e): return True\nwhile True:\n    with All():\n        while True: len('')"),
    endless('finally-sleep', 'sleeps on in `finally`', 'import time\ntry: time.sleep(60)\nfinally: time.sleep(60)'),
    endless('finally-loop', 'loops on in `finally`', 'try:\n    while True: pass\nfinally:\n    while True: pass'),
    endless('continue-in-finally', '`continue` in `finally` throws every exception away', 'while True:\n    try: pass\n    finally: continue'),
    endless('sleep', 'sleeps for a minute', 'import time; time.sleep(60)', 'variables'),
    endless('sleep-and-retry', 'sleeps in small steps, and swallows what wakes it',
        'import time\nwhile True:\n    try: time.sleep(0.01)\n    except BaseException: pass'),
    endless('wait-for-event', 'waits for an event', 'import threading; threading.Event().wait()', 'variables'),
    endless('wait-for-queue', 'waits on an empty queue', 'import queue; queue.Queue().get()', 'variables'),
    endless('deadlock', 'takes a lock twice', 'import threading\nk = threading.Lock(); k.acquire(); k.acquire()'),
    endless('join-a-spinning-thread', 'waits for a thread that loops',
        'import threading\ndef spin():\n    while not done: pass\ndone = False\nt = threading.Thread(target=spin, daemon=True)\nt.start()\ntry: t.join()\nfinally: done = True'),
    endless('asyncio-forever', 'awaits for ever', 'import asyncio\nawait asyncio.sleep(60)', 'variables', 'await'),
    endless('asyncio-swallows-cancel', 'a task that answers every cancellation by going on',
        'import asyncio\nasync def stay():\n    while True:\n        try: await asyncio.sleep(60)\n        except BaseException: pass\nasyncio.run(stay())'),
    endless('exec-loop', 'loops in code made from a string', "exec('while True: pass')", 'variables'),
    endless('class-body-loop', 'loops in the body of a class', 'class Never:\n    while True: pass', 'variables'),
    endless('sort-key-loop', 'loops in the key function of a sort', 'def key(x):\n    while True: pass\nsorted([1, 2], key=key)', 'variables'),
    endless('decorator-loop', 'loops in a decorator', 'def d(f):\n    while True: pass\n@d\ndef g(): pass', 'variables'),
    endless('property-loop', 'loops in a property', 'class P:\n    @property\n    def x(self):\n        while True: pass\nP().x', 'variables'),
    endless('import-loop', 'imports a module of its own that never finishes loading',
        "open('endless_module.py', 'w').write('while True: pass')\nimport endless_module", 'variables', 'files', error='stopped raised'),
    endless('del-loop-then-loop', 'loops in `__del__`, where exceptions are ignored, and then again',
        'class D:\n    def __del__(self):\n        while True: pass\nd = D(); del d\nwhile True: pass'),
    endless('callback-loop', 'loops in a callback of `re.sub`', "import re\ndef f(m):\n    while True: pass\nre.sub('a', f, 'a')", 'variables'),
    endless('trace-off', 'turns tracing off at every line and swallows every exception',
        'import sys\ndef stay():\n while True:\n  try:\n   while True: sys.settrace(None)\n  except BaseException: sys.settrace(None)\nstay()'),
    endless('signals-ignored', 'ignores the interrupt', 'import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass', needs='process'),
    endless('own-signal-handler', 'answers the interrupt with a handler that does nothing',
        'import signal\nsignal.signal(signal.SIGINT, lambda *a: None)\nwhile True: pass', needs='process'),
    endless('signals-blocked', 'blocks all signals of its thread',
        'import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())\nwhile True: pass', needs='process'),
    endless('terminate-ignored', 'ignores every signal that can be ignored',
        'import signal\nfor s in signal.valid_signals():\n    try: signal.signal(s, signal.SIG_IGN)\n    except (OSError, ValueError): pass\nwhile True: pass',
        needs='process'),
    endless('stops-itself', 'stops its own process, so that no handler runs', 'import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)\nwhile True: pass',
        needs='process'),
    endless('leaves-its-group', "joins its parent's process group, where that is allowed, and ignores the interrupt",
        'import os, signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\ntry: os.setpgid(0, os.getpgid(os.getppid()))\nexcept OSError: pass\nwhile True: pass',
        needs='process'),
    endless('select-forever', 'waits on no descriptor', 'import select; select.select([], [], [])', 'variables', 'process'),
    endless('read-a-silent-pipe', 'reads a pipe that nobody writes to', 'import os; os.read(os.pipe()[0], 1)', 'variables', 'process'),
    endless('child-sleeps', 'waits for a child that sleeps', "import subprocess; subprocess.run(['sleep', '60'])", needs='process'),
    endless('child-floods', 'waits for a child that prints for ever', "import os; os.system('yes')", needs='process'),
    endless('forked-child-loops', 'forks, and both loop', 'import os\nos.fork()\nwhile True: pass', needs='process', fresh=True),
    endless('prints-for-ever', 'prints for ever', "while True: print('x' * 1000)", 'variables'),
    endless('writes-for-ever', 'writes to descriptor 1 for ever', "import os\nwhile True: os.write(1, b'x' * 1000)", needs='process'),
    # blocking
    blocking('sum-of-a-range', 'prints, and sums 10 ** 14 numbers in C', 'sum(range(10 ** 14))', shows=('before',)),
    blocking('deque-of-repeat', 'drains an endless iterator in C', 'import collections, itertools\ncollections.deque(itertools.repeat(1), maxlen=0)'),
    blocking('all-of-repeat', '`all` of an endless iterator', 'import itertools\nall(itertools.repeat(True))'),
    blocking('max-of-cycle', '`max` of an endless iterator', 'import itertools\nmax(itertools.cycle([1, 2]))'),
    blocking('membership', '`in` over a range of strangers', "'x' in range(10 ** 14)"),
    blocking('regex-nested-star', 'catastrophic regex: nested stars', "import re; re.match('(a*)*b', 'a' * 60)"),
    blocking('regex-alternation', 'catastrophic regex: overlapping alternatives', "import re; re.match('(a|a|aa)*$', 'a' * 60 + '!')"),
    blocking('regex-email', 'catastrophic regex: a careless pattern for addresses', "import re; re.match(r'^([a-zA-Z0-9_.-]+)+@', 'a' * 60)"),
    blocking('big-power', 'a power with hundreds of millions of digits', '9 ** 9 ** 9'),
    blocking('factorial', 'the factorial of 10 ** 8', 'import math; math.factorial(10 ** 8)'),
    blocking('key-derivation', 'derives a key with 2 ** 31 - 1 rounds', "import hashlib; hashlib.pbkdf2_hmac('sha512', b'', b'', 2 ** 31 - 1)"),
    blocking('sql-without-end', 'a recursive SQL query without end',
        "import sqlite3\nsqlite3.connect(':memory:').execute('with recursive n(x) as (select 1 union all select x + 1 from n) select count(*) from n').fetchone()"),
    blocking('sleep-in-c', 'sleeps in the C library', 'import ctypes; ctypes.CDLL(None).sleep(60)', 'process'),
    blocking('sleep-in-c-with-the-lock', "sleeps in the C library and keeps the interpreter's lock", 'import ctypes; ctypes.PyDLL(None).sleep(60)',
        'process'),
    blocking('quadratic-text', 'searches a text in quadratic time',
        "import difflib; difflib.SequenceMatcher(None, 'ab' * 20_000, 'ba' * 20_000, False).ratio()"),
    # resources
    bomb('one-giant-bytes', 'asks for a petabyte at once', 'b = bytes(10 ** 15)', 'raised', 'variables', needs=''),
    bomb('one-giant-list', 'a list of 10 ** 13 zeros', 'b = [0] * 10 ** 13', 'raised', 'variables', needs=''),
    bomb('one-giant-text', 'a text of 10 ** 15 characters', "b = 'x' * 10 ** 15", 'raised', 'variables', needs=''),
    bomb('one-giant-shift', 'a number of 10 ** 15 bits', 'b = 1 << 10 ** 15', 'raised', 'variables', needs=''),
    bomb('memory-bomb-list', 'fills a list until memory ends (200 MB)',
        _TIGHT + 'bomb = []\ntry:\n    while True: bomb.append(bytearray(1_000_000))\nfinally:' + _LOOSE.replace('\n', '\n    '), 'raised died'),
    bomb('memory-bomb-left-in-place', 'fills memory, and leaves it full for the next cell', _TIGHT + 'bomb = []\nwhile True: bomb.append(bytearray(100_000))',
        'raised died', 'told', 'the next cell works, or the session was restarted and says so', fresh=True),
    bomb('memory-bomb-text', 'doubles a text until memory ends (200 MB)',
        _TIGHT + "text = 'x'\ntry:\n    while True: text += text\nfinally:" + _LOOSE.replace('\n', '\n    '), 'raised died'),
    bomb('memory-bomb-in-a-child', 'a child process fills 200 MB and is refused more',
        "import subprocess, sys\ncode = '''" + _TIGHT + "b = []\nwhile True: b.append(bytearray(1_000_000))'''\nprint(subprocess.run([sys.executable, '-c', code], stderr=subprocess.DEVNULL).returncode != 0)",
        'none', 'variables'),
    cells('memory-limit-of-the-session', 'resources', 'takes 600 MB in a session that may have 400',
        'the cell is refused the memory, and the session goes on', Step('bomb = [bytearray(10_000_000) for _ in range(60)]\nprint(len(bomb))', 'raised died'),
        keeps='told', needs='limits', fresh=True, options={'memory': 400000000}),
    cells('process-limit-of-the-session', 'resources', 'forks 200 sleeping children in a session that may have 60 processes',
        'the cell is refused the processes, and the session goes on',
        Step("import os, time\nfor _ in range(200):\n    if os.fork() == 0:\n        time.sleep(600); os._exit(0)\nprint('two hundred children')", 'raised died', hides=('two hundred children',)),
        keeps='told', needs='limits', fresh=True, options={'processes': 60}),
    cells('fork-bomb', 'resources', 'forks 60 children that ignore every signal and sleep', 'the session goes on, and none of them outlives it',
        Step("import os, signal, time\nfor _ in range(60):\n    if os.fork() == 0:\n        for s in (1, 2, 3, 15): signal.signal(s, signal.SIG_IGN)\n        open('/proc/self/comm', 'w').write(outside['token'])\n        time.sleep(600); os._exit(0)\nprint('done')", ANY),
        keeps='told', after='no_children', needs='process', fresh=True),
    bomb('fork-in-a-loop', 'forks in every one of six rounds, parents and children alike', 'import os\nfor _ in range(6): os.fork()', ANY, 'told',
        'the children vanish with the cell, and the session goes on', Step("print('mine')", output='mine')),
    bomb('thread-bomb', 'starts 200 threads that sleep',
        'import threading, time\nfor _ in range(200): threading.Thread(target=time.sleep, args=(600,), daemon=True).start()', ANY, fresh=True),
    bomb('descriptor-bomb', 'opens files until there are no descriptors left, and keeps them',
        "import os, resource\nsoft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)\nresource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))\nkept_open = []\nwhile True: kept_open.append(os.open('/dev/null', os.O_RDONLY))",
        'raised died', 'told', 'the next cell works, or the session was restarted and says so', fresh=True),
    bomb('no-descriptors-at-all', 'forbids itself to open another file, now and for ever',
        'import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))', ANY, 'told', 'the next cell works, or the session was restarted and says so',
        fresh=True),
    bomb('file-too-large', 'writes beyond its own limit for the size of a file',
        "import resource\nsoft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)\nresource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))\ntry:\n    with open('big', 'wb') as f: f.write(bytes(1_000_000))\nfinally: resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))",
        'raised died'),
    bomb('cpu-limit', 'gives itself one second of processor time, and loops',
        'import resource\nused = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])\nresource.setrlimit(resource.RLIMIT_CPU, (int(used) + 1, int(used) + 2))\nwhile True: pass',
        'raised died stopped', needs='process stops', fresh=True),
    bomb('recursion-without-end', 'recurses without end', 'def f(): return f()\nf()', 'raised', 'variables', needs=''),
    bomb('stack-overflow-in-c', 'recurses in C where no limit is looked at', 'x = ()\nfor _ in range(10 ** 6): x = (x,)\nhash(x)', ANY, fresh=True),
    bomb('recursion-limit-left-low', 'leaves a recursion limit under which hardly anything runs',
        "import sys\nsys.setrecursionlimit(len(__import__('inspect').stack(0)) + 6)", ANY, 'told',
        'the next cell works, or the session was restarted and says so', fresh=True),
    # endings
    dies('os-exit', 'leaves through os._exit(0)', 'import os; os._exit(0)', 'raised died'),
    dies('os-exit-3', 'leaves through os._exit(3)', 'import os; os._exit(3)', 'raised died'),
    dies('segfault', 'reads address 0', 'import ctypes; ctypes.string_at(0)', 'raised died'),
    dies('write-to-address-1', 'writes to address 1', 'import ctypes; ctypes.memset(1, 0, 8)', 'raised died'),
    dies('abort', 'aborts', 'import os; os.abort()', 'raised died'),
    dies('kill-itself', 'sends itself SIGKILL', 'import os; os.kill(os.getpid(), 9)', 'raised died'),
    dies('terminate-itself', 'sends itself SIGTERM', 'import os, time; os.kill(os.getpid(), 15); time.sleep(5)', 'raised died'),
    dies('kill-its-group', 'sends SIGKILL to its process group', 'import os; os.killpg(os.getpgid(0), 9)', 'raised died'),
    dies('kill-its-parent', 'sends SIGKILL to its parent', 'import os, time; os.kill(os.getppid(), 9); time.sleep(3)', 'raised died none'),
    dies('exec-another-program', 'becomes another program', "import os; os.execvp('true', ['true'])", 'raised died'),
    dies('exit-in-a-thread', 'leaves through os._exit in a thread',
        'import os, threading, time; threading.Thread(target=os._exit, args=(4,)).start(); time.sleep(5)', 'raised died'),
    cells('stops-its-parent', 'ends of the process', 'stops its parent with SIGSTOP, and loops',
        'it is stopped within timeout + grace + 0.5 s, and the session goes on',
        Step('import os, signal\nos.kill(os.getppid(), signal.SIGSTOP)\nwhile True: pass', 'stopped died raised'), keeps='told', needs='process stops', fresh=True),
    cells('dies-between-cells', 'ends of the process', 'leaves a timer that ends the process after the cell',
        'the next cell says that the session was restarted, and what was lost', 'import os, threading\nthreading.Timer(0.1, os._exit, [5]).start()',
        Step("import time\nfor _ in range(40): time.sleep(0.01)\nprint('slept')", ANY), keeps='told', fresh=True),
    cells('atexit-loops', 'ends of the process', 'registers a function that loops for ever, for the end of the process',
        'closing the session takes no longer for it', Step('import atexit\ndef stay():\n    while True: pass\natexit.register(stay);', 'none'), fresh=True,
        seconds=6),
    cells('shadows-the-library', 'ends of the process', 'writes modules named like those of the standard library into its folder, and dies',
        'the session starts again, and imports the real ones',
        Step("for n in ('json', 'os', 'site', 'sitecustomize', 'usercustomize', 'socket', 'traceback', 'random'):\n    open(n + '.py', 'w').write('raise SystemExit')\nimport os; os._exit(1)", 'raised died'),
        Step('import random, json\nprint(json.dumps([random.Random(1).random() < 1]))', output=None, shows=('[true]',)), keeps='told', needs='files',
        fresh=True),
    cells('removes-its-folder', 'ends of the process', 'removes the folder it works in', 'the next cells work',
        Step('import os, shutil\nshutil.rmtree(os.getcwd())', 'none raised'), Step("print('next')", output='next'), needs='process', fresh=True),
    raises('sys-exit', 'calls sys.exit()', 'import sys; sys.exit()'),
    raises('sys-exit-3', 'calls sys.exit(3)', 'import sys; sys.exit(3)'),
    raises('exit', 'calls exit()', 'exit()'),
    raises('raise-system-exit', 'raises SystemExit with a text', "raise SystemExit('bye')", 'bye'),
    raises('raise-keyboard-interrupt', 'raises KeyboardInterrupt', 'raise KeyboardInterrupt', 'KeyboardInterrupt'),
    raises('raise-generator-exit', 'raises GeneratorExit', 'raise GeneratorExit', 'GeneratorExit'),
    raises('raise-base-exception', 'raises a subclass of BaseException', "class Odd(BaseException): pass\nraise Odd('why')", 'why'),
    raises('raise-stop-iteration', 'raises StopIteration', 'raise StopIteration(1)', 'StopIteration'),
    raises('raise-cancelled', 'raises asyncio.CancelledError', 'import asyncio\nraise asyncio.CancelledError', 'CancelledError'),
    raises('raise-memory-error', 'raises MemoryError', 'raise MemoryError', 'MemoryError'),
    raises('raise-group', 'raises a group of exceptions', "raise ExceptionGroup('both', [ValueError('one'), TypeError('two')])", 'two'),
    raises('raise-chain', 'raises while handling an exception', "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise KeyError('k') from e",
        'ZeroDivisionError'),
    raises('raise-circle', 'raises an exception that is its own cause',
        "e = ValueError('round')\nf = TypeError('about')\ne.__cause__ = f\nf.__cause__ = e\nraise e", 'round'),
    raises('str-raises', 'raises an exception whose text cannot be made', "class E(Exception):\n    def __str__(self): raise ValueError('no text')\nraise E",
        'E'),
    raises('str-exits', 'raises an exception whose text calls sys.exit()', 'class E(Exception):\n    def __str__(self): raise SystemExit\nraise E',
        error='raised died', keeps='told'),
    raises('str-raises-itself', 'raises a BaseException whose text raises another of its kind',
        'class E(BaseException):\n    def __str__(self): raise E()\nraise E', error='raised died', keeps='told'),
    raises('module-name-is-a-number', 'raises an exception whose class lives in module 5', "class E(Exception): pass\nE.__module__ = 5\nraise E('odd')",
        error='raised died'),
    raises('notes-are-no-text', 'raises an exception whose notes are no text', "e = ValueError('x')\ne.__notes__ = [1, object(), None]\nraise e",
        'ValueError'),
    raises('syntax-error', 'does not compile', 'x = (1,\ny = 2', 'SyntaxError'),
    raises('forged-syntax-error', 'raises a SyntaxError with nonsense in it', "raise SyntaxError('odd', ('f', 'x', object(), 3))", error='raised died'),
    raises('interrupts-itself', 'sends itself the interrupt', 'import os, time\nos.kill(os.getpid(), 2)\ntime.sleep(0.2)', error='raised none'),
    raises('hook-replaced', 'replaces sys.excepthook by one that leaves', 'import os, sys\nsys.excepthook = lambda *a: os._exit(1)\n1 / 0',
        'ZeroDivisionError'),
    # descriptors
    spoil('close-stdout', 'closes sys.stdout and sys.stderr', 'import sys\nsys.stdout.close(); sys.stderr.close()'),
    spoil('stdout-is-none', 'sets sys.stdout to None', 'import sys\nsys.stdout = None'),
    spoil('stdout-is-a-text', 'puts a StringIO in the place of sys.stdout', "import io, sys\nsys.stdout = io.StringIO()\nprint('gone')"),
    spoil('stdout-raises', 'puts an object whose `write` raises in the place of sys.stdout',
        "import sys\nclass W:\n    def write(self, s): raise RuntimeError('no')\n    def flush(self): raise RuntimeError('no')\nsys.stdout = sys.stderr = W()"),
    spoil('stdout-hangs-on-flush', 'replaces sys.stdout by an object whose `flush` never returns',
        'import sys\nclass W:\n    def write(self, s): pass\n    def flush(self):\n        while True: pass\nsys.stdout = W()', keeps='told', needs='stops'),
    spoil('detach-stdout', 'detaches the buffer of sys.stdout', 'import sys\nsys.stdout.detach()', keeps='told'),
    spoil('stdout-in-ascii', 'makes sys.stdout speak ASCII only', "import sys\nsys.stdout.reconfigure(encoding='ascii', errors='strict')\nprint('\\u00e9')"),
    spoil('close-descriptors-0-1-2', 'closes descriptors 0, 1 and 2', 'import os\nos.close(0); os.close(1); os.close(2)', needs='process'),
    spoil('close-all-descriptors', 'closes every descriptor', 'import os\nos.closerange(0, 4096)', 'raised died', 'told', 'process'),
    spoil('descriptor-1-is-a-file', 'sends descriptor 1 into a file',
        "import os\nfd = os.open('elsewhere', os.O_WRONLY | os.O_CREAT)\nos.dup2(fd, 1)\nprint('gone')", needs='process'),
    spoil('descriptor-1-is-read-only', 'puts a descriptor that cannot be written in the place of 1',
        "import os\nfd = os.open('/dev/null', os.O_RDONLY)\nos.dup2(fd, 1)\nprint('gone')", needs='process'),
    spoil('write-to-descriptor-0', 'writes to descriptor 0', "import os\nos.write(0, b'junk')", needs='process'),
    spoil('descriptor-1-non-blocking', 'makes descriptor 1 non-blocking and floods it',
        "import os\nos.set_blocking(1, False)\nfor _ in range(1000):\n    try: os.write(1, b'x' * 65536)\n    except BlockingIOError: pass", needs='process'),
    spoil('reads-stdin', 'waits for somebody to type', 'import sys\nprint(repr(sys.stdin.read()))', needs='process'),
    spoil('input', 'asks for input', "input('? ')", 'raised'),
    spoil('breakpoint', 'starts a debugger', 'breakpoint()', 'none raised'),
    spoil('closed-in-a-thread', 'closes the streams in a thread, later',
        'import sys, threading\nt = threading.Thread(target=lambda: (sys.stdout.close(), sys.stderr.close()))\nt.start(); t.join()'),
    cells('frames-on-stdout', 'protocol look-alikes', 'prints lines that look like frames of the protocol', 'they are shown as what they are: output',
        Step('print(\'{"t":"done","g":1,"id":1}\')\nprint(\'!kill\')\nprint(\'\\x00END1\')', 'none', shows=('{"t":"done","g":1,"id":1}\n!kill',), answer=())),
    cells('frames-on-descriptors-1-and-2', 'protocol look-alikes', 'writes frames and control words to descriptors 1 and 2',
        'they are shown as what they are: output',
        Step('import os\n_ = os.write(1, b\'{"t":"died","g":1}\\n!quit\\n\')\n_ = os.write(2, b\'!int\\n\')', 'none', shows=('{"t":"died","g":1}\n!quit\n!int',), answer=()),
        needs='process'),
    *(forge(f'forged-frame-{number}', f"writes {frame[:40]}... to the protocol's own descriptors", f"for n in range(1, 40):\n    t = {frame!r}\n    forge(b'\\n' + (t % n if '%d' in t else t).encode() + b'\\n')", Step("print('next')", ANY, hides=('forged',), answer=())) for number, frame in enumerate(_FRAMES, 1)),
    forge('forged-junk', "writes junk to the protocol's own descriptors", "forge(b'\\xff\\x00junk' * 1000 + b'\\n[' + b'[' * 100_000 + b'\\n')"),
    forge('forged-half-frame', "leaves half a frame in the protocol's own descriptors", 'forge(b\'{"t":"out","head":"\')', Step("print('next')", ANY)),
    forge('forged-control-words', "writes control words to the protocol's own descriptors", "forge(b'\\n!quit\\n!kill\\n!int\\n')"),
    forge('done-before-its-time', "finds the worker's own means to talk to its host, reports its own end, and loops on",
        "import gc, time\nfor o in gc.get_objects():\n    if type(o).__name__ == 'Link':\n        o.send({'t': 'done', 'g': o.generation, 'id': o.interrupts.cell})\nwhile True: time.sleep(0.001)",
        Step("print('next')", ANY), keeps='session', needs='process stops'),
    forge('deaf', "reads the protocol's own descriptors empty for half a second",
        'import time\nend = time.monotonic() + 0.3\nwhile time.monotonic() < end:\n    for f in links:\n        os.set_blocking(f, False)\n        try: os.read(f, 65536)\n        except OSError: pass',
        Step("print('next')", ANY), keeps='session'),
    forge('hangs-up', "shuts the protocol's own descriptors down",
        'import socket\nfor f in links:\n    try: socket.socket(fileno=os.dup(f)).shutdown(2)\n    except OSError: pass', Step("print('next')", ANY)),
    # leftovers
    talks('thread-that-prints', 'leaves a daemon thread that prints', _TALK + 'threading.Thread(target=talk, daemon=True).start()'),
    talks('plain-thread-that-prints', 'leaves a thread that prints, and is no daemon', _TALK + 'threading.Thread(target=talk).start()'),
    talks('raw-thread-that-prints', 'leaves a thread made by _thread that prints', _TALK + 'import _thread\n_thread.start_new_thread(talk, ());'),
    talks('timer-that-prints', 'leaves a timer that prints again and again',
        "import threading\ndef again():\n    print('late'); t = threading.Timer(0.005, again); t.daemon = True; t.start()\nagain()"),
    talks('child-that-prints', 'leaves a child that prints',
        "import subprocess\np = subprocess.Popen('while true; do echo late; sleep 0.01; done', shell=True)", 'process'),
    talks('fork-that-prints', 'leaves a forked child that prints',
        "import os, time\nif os.fork() == 0:\n    while True: print('late', flush=True); time.sleep(0.01)", 'process'),
    talks('thread-that-raises', 'leaves a thread that raises a little later',
        "import threading, time\ndef late():\n    time.sleep(0.05); raise RuntimeError('late')\nthreading.Thread(target=late).start()"),
    talks('thread-that-spins', 'leaves a thread that loops',
        'import threading\ndef spin():\n    while True: pass\nthreading.Thread(target=spin, daemon=True).start()'),
    cells('thread-that-answers', 'left behind', 'leaves a thread that calls final_answer in the middle of the next cell',
        "the late answer is not the next cell's",
        Step("import threading, time\ndef late():\n    time.sleep(0.1); final_answer('late')\nthreading.Thread(target=late).start()", answer=()),
        Step("import time\nfor _ in range(25): time.sleep(0.01)\nprint('mine')", output='mine', answer=()), needs='answer', fresh=True),
    cells('cell-stopped-with-an-answer', 'left behind', 'sets final_answer and loops; the next cell does something else',
        'the answer of a stopped cell is no answer of the next one', Step("final_answer = 'early'\nwhile True: pass", 'stopped', answer=()),
        Step("print('next')", output='next', answer=()), keeps='told', needs='answer named-answer stops'),
    cells('task-left-pending', 'left behind', 'leaves a task of asyncio that was never awaited', 'the next cell works',
        Step('import asyncio\nasync def f(): await asyncio.sleep(60)\ntask = asyncio.ensure_future(f())\nawait asyncio.sleep(0)', 'none'),
        Step("await asyncio.sleep(0.001)\nprint('next')", output='next'), needs='await', fresh=True),
    cells('pool-left-open', 'left behind', 'leaves a pool of threads with work to do', 'the next cell works, and the session closes in time',
        Step('import time\nfrom concurrent.futures import ThreadPoolExecutor\npool = ThreadPoolExecutor(2)\nfor _ in range(10): pool.submit(time.sleep, 60)', 'none'),
        Step("print('next')", output='next'), fresh=True, seconds=6),
    cells('zombies', 'left behind', 'leaves fifty children that have ended, and waits for none', 'the next cell works',
        Step('import os\nfor _ in range(50):\n    if os.fork() == 0: os._exit(0)', 'none'), Step("print('next')", output='next'), needs='process'),
    cells('fork-falls-off-the-end', 'left behind', 'forks, and the child runs to the end of the cell as well',
        'there is one result, and the next cell runs once', Step('import os, time\npid = os.fork()\nif pid: time.sleep(0.05)', 'none'),
        Step("open('count', 'a').write('x')\nprint(open('count').read())", output='x'), needs='process', fresh=True),
    cells('lock-left-held', 'left behind', 'leaves the import lock of a module and a lock of logging held by a thread that sleeps',
        'the next cell works, or is stopped in time',
        Step("import logging, threading, time\ndef hold():\n    logging._acquireLock() if hasattr(logging, '_acquireLock') else logging._lock.acquire()\n    time.sleep(600)\nthreading.Thread(target=hold, daemon=True).start(); time.sleep(0.02)", 'none'),
        Step("print('next')", output='next'), fresh=True),
    cells('module-written-by-a-cell', 'left behind', 'writes a module and imports it, twice', 'it is imported as from any folder one works in',
        Step("open('mine_one.py', 'w').write('x = 1')\nimport mine_one\nprint(mine_one.x)", output='1'), needs='files', fresh=True),
    stays('child-left', 'leaves a child that sleeps', f'import subprocess\np = subprocess.Popen({_SLEEPER})'),
    stays('child-in-a-session-of-its-own', 'leaves a child in a session of its own',
        f'import subprocess\np = subprocess.Popen({_SLEEPER}, start_new_session=True)'),
    stays('daemon-left', 'leaves a daemon: forks twice, with a session of its own',
        'import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        ' + _NAME.replace('\n', '\n        ') + 'time.sleep(600)\n    os._exit(0)\nos.wait();'),
    stays('daemon-and-death', 'leaves a daemon, and dies',
        'import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        ' + _NAME.replace('\n', '\n        ') + 'time.sleep(600)\n    os._exit(0)\nos.wait();',
        Step('import os; os._exit(1)', 'died raised')),
    stays('stubborn-child', 'leaves a child that ignores every signal it can',
        f'import signal, subprocess\ndef deaf():\n    for s in (1, 2, 3, 15): signal.signal(s, signal.SIG_IGN)\np = subprocess.Popen({_SLEEPER}, preexec_fn=deaf)'),
    stays('stopped-child', 'leaves a child that is stopped',
        f'import os, signal, subprocess\np = subprocess.Popen({_SLEEPER})\nos.kill(p.pid, signal.SIGSTOP)'),
    stays('host-killed-in-a-loop', 'loops for ever; then the host is killed', _NAME, Step('while True: pass', ANY), killed=True),
    stays('host-killed-in-c', 'stays in C for ever; then the host is killed', _NAME, Step('sum(range(10 ** 15))', ANY), killed=True),
    stays('host-killed-with-a-daemon', 'leaves a daemon and loops, the interrupt ignored; then the host is killed',
        _NAME + 'import os, signal, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(600)\nsignal.signal(signal.SIGINT, signal.SIG_IGN);',
        Step('while True: pass', ANY), killed=True),
    cells('output-after-the-stop', 'left behind', 'swallows the interrupt in a thread, and prints after its cell was stopped',
        'the late output is in no other cell',
        Step("import threading, time\ndef late():\n    time.sleep(1.0); print('late')\nt = threading.Thread(target=late, daemon=True); t.start()\nwhile True: pass", 'stopped'),
        Step("import time\nfor _ in range(60): time.sleep(0.01)\nprint('mine')", ANY, hides=('late',)), keeps='told', needs='stops', fresh=True),
    cells('error-in-the-past', 'left behind', 'keeps an exception and raises it again in a later cell', "the error is shown as the later cell's",
        Step('try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    kept_error = e', 'none'),
        Step('raise kept_error', 'raised', shows=('ZeroDivisionError',))),
)

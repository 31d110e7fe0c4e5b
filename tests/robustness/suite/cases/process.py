"""Cells that endanger their process: endless, in C, out of memory, dying, with broken streams, leaving things behind."""

from __future__ import annotations

from suite.case import ANY, CellCase, Step, cells

#: Leaves 200 MB of address space above what is used, so that a bomb goes off soon and harms nobody.
_TIGHT = """
import resource
used = int(open('/proc/self/statm').read().split()[0]) * 4096
soft, hard = resource.getrlimit(resource.RLIMIT_AS)
resource.setrlimit(resource.RLIMIT_AS, (used + 200_000_000, hard))
"""
_LOOSE = "\n    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))"
NEXT, GOES_ON = Step("print('next')", output="next"), Step("print('next')", ANY)

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
_DAEMON = "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        "
_DAEMON += _NAME.replace("\n", "\n        ") + "time.sleep(600)\n    os._exit(0)\nos.wait();"
_TALK = "import threading, time\ndef talk():\n    while True:\n        print('late'); time.sleep(0.005)\n"
_WAIT = "import time\nfor _ in range(15): time.sleep(0.01)\nprint('mine')"


def endless(name, code, keeps="told", needs="", fresh=False, error="stopped") -> CellCase:
    """It is stopped within timeout + grace + 0.5 s."""
    return cells(name, "endless loops", Step(code, error), keeps=keeps, needs=f"{needs} stops", fresh=fresh)


def blocking(name, code, needs="", shows=()) -> CellCase:
    """It is stopped within timeout + grace + 0.5 s."""
    step = Step("print('before')\n" + code, "stopped", shows=shows)
    return cells(name, "C-level blocking", step, keeps="told", needs=f"{needs} stops")


def bomb(name, code, error=ANY, keeps="told", *then, needs="process", fresh=False) -> CellCase:
    """The cell fails or not, and the session goes on, or was restarted and says so."""
    rest = {"keeps": keeps, "needs": needs, "fresh": fresh, "seconds": 20}
    return cells(name, "resources", Step(code, error), *then, **rest)


def dies(name, code, error="died") -> CellCase:
    """The model is told that the process died and which variables are lost, and the session goes on."""
    return cells(name, "ends of the process", Step("print('last words', flush=True)\n" + code, error), keeps="told")


def raises(name, code, shows="", error="raised", keeps="variables") -> CellCase:
    """It is an error of the cell, and no more."""
    return cells(name, "exceptions", Step(code, error, shows=(shows,) if shows else ()), keeps=keeps)


def spoil(name, code, error=ANY, keeps="variables", needs="") -> CellCase:
    """The next cells print."""
    two = Step("import sys\nprint('two', file=getattr(sys, 'stderr', None))", output="two")
    steps = (Step(code, error), Step("print('one')", output="one"), two)
    return cells(name, "streams and descriptors", *steps, keeps=keeps, needs=needs)


def forge(name, code, *more, keeps="told", needs="process") -> CellCase:
    """Nothing of it is believed: no answer is given, no tool is called, the next cell works."""
    steps = (Step(_LINK + code, ANY, answer=()), *more)
    return cells(name, "protocol look-alikes", *steps, keeps=keeps, needs=needs, fresh=True)


def ends(name, *steps, keeps="told", **rest) -> CellCase:
    return cells(name, "ends of the process", *steps, keeps=keeps, fresh=True, **rest)


def left(name, *steps, fresh=True, **rest) -> CellCase:
    return cells(name, "left behind", *steps, fresh=fresh, **rest)


def talks(name, code, needs="") -> CellCase:
    """What it prints does not get into the output of a later cell."""
    return left(name, code, Step(_WAIT, output="mine"), needs=needs)


def stays(name, code, *more, killed=False) -> CellCase:
    """Nothing outlives the session, or the host where that is killed."""
    needs, seconds = ("", 15) if killed else ("process", 10)
    rest = {"keeps": "told", "after": "no_children", "host_killed": killed}
    return left(name, code, *more, needs=needs, seconds=seconds, **rest)


# fmt: off
CASES = (
    # endless
    endless('while-true', 'while True: pass', 'variables'),
    endless('while-in-function', 'def f():\n while True: pass\nf()', 'variables'),
    endless('for-count', 'import itertools\nfor i in itertools.count(): pass', 'variables'),
    endless('list-comprehension', '[0 for _ in iter(int, 1) if _]'),
    endless('dict-comprehension', '{_: 0 for _ in iter(int, 1)}', 'variables'),
    endless('generator-expression', 'sum(1 for _ in iter(int, 1))', 'variables'),
    endless('generator-function', 'def g():\n    while True: yield 0\nfor _ in g(): pass', 'variables'),
    endless('generator-that-refuses-to-close',
        'def g():\n    while True:\n        try:\n            while True: yield\n        except Exception: pass\nfor _ in g(): pass'),
    endless('exponential-recursion', 'def f():\n    try: f()\n    except RecursionError: pass\n    try: f()\n    except RecursionError: pass\nf()'),
    endless('ackermann',
        'def a(m, n):\n    return n + 1 if m == 0 else (a(m - 1, 1) if n == 0 else a(m - 1, a(m, n - 1)))\nimport sys\nwhile True:\n    a(2, 9)',
        'variables'),
    endless('except-exception', _SWALLOW.format(what='Exception'), 'variables'),
    endless('except-baseexception', _SWALLOW.format(what='BaseException')),
    endless('except-nested',
        "def stay():\n while True:\n  try:\n   while True:\n    try:\n     while True: len('')\n    except BaseException: pass\n  except BaseException: pass\nstay()"),
    endless('suppress-everything',
        "class All:\n    def __enter__(self): pass\n    def __exit__(self, *e): return True\nwhile True:\n    with All():\n        while True: len('')"),
    endless('finally-sleep', 'import time\ntry: time.sleep(60)\nfinally: time.sleep(60)'),
    endless('finally-loop', 'try:\n    while True: pass\nfinally:\n    while True: pass'),
    endless('continue-in-finally', 'while True:\n    try: pass\n    finally: continue'),
    endless('sleep', 'import time; time.sleep(60)', 'variables'),
    endless('sleep-and-retry', 'import time\nwhile True:\n    try: time.sleep(0.01)\n    except BaseException: pass'),
    endless('wait-for-event', 'import threading; threading.Event().wait()', 'variables'),
    endless('wait-for-queue', 'import queue; queue.Queue().get()', 'variables'),
    endless('deadlock', 'import threading\nk = threading.Lock(); k.acquire(); k.acquire()'),
    endless('join-a-spinning-thread',
        'import threading\ndef spin():\n    while not done: pass\ndone = False\nt = threading.Thread(target=spin, daemon=True)\nt.start()\ntry: t.join()\nfinally: done = True'),
    endless('asyncio-forever', 'import asyncio\nawait asyncio.sleep(60)', 'variables', 'await'),
    endless('asyncio-swallows-cancel',
        'import asyncio\nasync def stay():\n    while True:\n        try: await asyncio.sleep(60)\n        except BaseException: pass\nasyncio.run(stay())'),
    endless('exec-loop', "exec('while True: pass')", 'variables'),
    endless('class-body-loop', 'class Never:\n    while True: pass', 'variables'),
    endless('sort-key-loop', 'def key(x):\n    while True: pass\nsorted([1, 2], key=key)', 'variables'),
    endless('decorator-loop', 'def d(f):\n    while True: pass\n@d\ndef g(): pass', 'variables'),
    endless('property-loop', 'class P:\n    @property\n    def x(self):\n        while True: pass\nP().x', 'variables'),
    endless('import-loop', "open('endless_module.py', 'w').write('while True: pass')\nimport endless_module", 'variables', 'files',
        error='stopped raised'),
    endless('del-loop-then-loop', 'class D:\n    def __del__(self):\n        while True: pass\nd = D(); del d\nwhile True: pass'),
    endless('callback-loop', "import re\ndef f(m):\n    while True: pass\nre.sub('a', f, 'a')", 'variables'),
    endless('trace-off',
        'import sys\ndef stay():\n while True:\n  try:\n   while True: sys.settrace(None)\n  except BaseException: sys.settrace(None)\nstay()'),
    endless('signals-ignored', 'import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass', needs='process'),
    endless('own-signal-handler', 'import signal\nsignal.signal(signal.SIGINT, lambda *a: None)\nwhile True: pass', needs='process'),
    endless('signals-blocked', 'import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())\nwhile True: pass', needs='process'),
    endless('terminate-ignored',
        'import signal\nfor s in signal.valid_signals():\n    try: signal.signal(s, signal.SIG_IGN)\n    except (OSError, ValueError): pass\nwhile True: pass',
        needs='process'),
    endless('stops-itself', 'import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)\nwhile True: pass', needs='process'),
    endless('leaves-its-group',
        'import os, signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\ntry: os.setpgid(0, os.getpgid(os.getppid()))\nexcept OSError: pass\nwhile True: pass',
        needs='process'),
    endless('select-forever', 'import select; select.select([], [], [])', 'variables', 'process'),
    endless('read-a-silent-pipe', 'import os; os.read(os.pipe()[0], 1)', 'variables', 'process'),
    endless('child-sleeps', "import subprocess; subprocess.run(['sleep', '60'])", needs='process'),
    endless('child-floods', "import os; os.system('yes')", needs='process'),
    endless('forked-child-loops', 'import os\nos.fork()\nwhile True: pass', needs='process', fresh=True),
    endless('prints-for-ever', "while True: print('x' * 1000)", 'variables'),
    endless('writes-for-ever', "import os\nwhile True: os.write(1, b'x' * 1000)", needs='process'),
    # blocking
    blocking('sum-of-a-range', 'sum(range(10 ** 14))', shows=('before',)),
    blocking('deque-of-repeat', 'import collections, itertools\ncollections.deque(itertools.repeat(1), maxlen=0)'),
    blocking('all-of-repeat', 'import itertools\nall(itertools.repeat(True))'),
    blocking('max-of-cycle', 'import itertools\nmax(itertools.cycle([1, 2]))'),
    blocking('membership', "'x' in range(10 ** 14)"),
    blocking('regex-nested-star', "import re; re.match('(a*)*b', 'a' * 60)"),
    blocking('regex-alternation', "import re; re.match('(a|a|aa)*$', 'a' * 60 + '!')"),
    blocking('regex-email', "import re; re.match(r'^([a-zA-Z0-9_.-]+)+@', 'a' * 60)"),
    blocking('big-power', '9 ** 9 ** 9'),
    blocking('factorial', 'import math; math.factorial(10 ** 8)'),
    blocking('key-derivation', "import hashlib; hashlib.pbkdf2_hmac('sha512', b'', b'', 2 ** 31 - 1)"),
    blocking('sql-without-end',
        "import sqlite3\nsqlite3.connect(':memory:').execute('with recursive n(x) as (select 1 union all select x + 1 from n) select count(*) from n').fetchone()"),
    blocking('sleep-in-c', 'import ctypes; ctypes.CDLL(None).sleep(60)', 'process'),
    blocking('sleep-in-c-with-the-lock', 'import ctypes; ctypes.PyDLL(None).sleep(60)', 'process'),
    blocking('quadratic-text', "import difflib; difflib.SequenceMatcher(None, 'ab' * 20_000, 'ba' * 20_000, False).ratio()"),
    # resources
    bomb('one-giant-bytes', 'b = bytes(10 ** 15)', 'raised', 'variables', needs=''),
    bomb('one-giant-list', 'b = [0] * 10 ** 13', 'raised', 'variables', needs=''),
    bomb('one-giant-text', "b = 'x' * 10 ** 15", 'raised', 'variables', needs=''),
    bomb('one-giant-shift', 'b = 1 << 10 ** 15', 'raised', 'variables', needs=''),
    bomb('memory-bomb-list', _TIGHT + 'bomb = []\ntry:\n    while True: bomb.append(bytearray(1_000_000))\nfinally:' + _LOOSE, 'raised died'),
    bomb('memory-bomb-left-in-place', _TIGHT + 'bomb = []\nwhile True: bomb.append(bytearray(100_000))', 'raised died', 'told', fresh=True),
    bomb('memory-bomb-text', _TIGHT + "text = 'x'\ntry:\n    while True: text += text\nfinally:" + _LOOSE, 'raised died'),
    bomb('memory-bomb-in-a-child',
        "import subprocess, sys\ncode = '''" + _TIGHT + "b = []\nwhile True: b.append(bytearray(1_000_000))'''\nprint(subprocess.run([sys.executable, '-c', code], stderr=subprocess.DEVNULL).returncode != 0)",
        'none', 'variables'),
    cells('memory-limit-of-the-session', 'resources', Step('bomb = [bytearray(10_000_000) for _ in range(60)]\nprint(len(bomb))', 'raised died'),
        keeps='told', needs='limits', fresh=True, options={'memory': 400000000}),
    cells('process-limit-of-the-session', 'resources',
        Step("import os, time\nfor _ in range(200):\n    if os.fork() == 0:\n        time.sleep(600); os._exit(0)\nprint('two hundred children')", 'raised died', hides=('two hundred children',)),
        keeps='told', needs='limits', fresh=True, options={'processes': 60}),
    cells('fork-bomb', 'resources',
        Step("import os, signal, time\nfor _ in range(60):\n    if os.fork() == 0:\n        for s in (1, 2, 3, 15): signal.signal(s, signal.SIG_IGN)\n        open('/proc/self/comm', 'w').write(outside['token'])\n        time.sleep(600); os._exit(0)\nprint('done')", ANY),
        keeps='told', after='no_children', needs='process', fresh=True),
    bomb('fork-in-a-loop', 'import os\nfor _ in range(6): os.fork()', ANY, 'told', Step("print('mine')", output='mine')),
    bomb('thread-bomb', 'import threading, time\nfor _ in range(200): threading.Thread(target=time.sleep, args=(600,), daemon=True).start()', ANY,
        fresh=True),
    bomb('descriptor-bomb',
        "import os, resource\nsoft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)\nresource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))\nkept_open = []\nwhile True: kept_open.append(os.open('/dev/null', os.O_RDONLY))",
        'raised died', 'told', fresh=True),
    bomb('no-descriptors-at-all', 'import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))', ANY, 'told', fresh=True),
    bomb('file-too-large',
        "import resource\nsoft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)\nresource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))\ntry:\n    with open('big', 'wb') as f: f.write(bytes(1_000_000))\nfinally: resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))",
        'raised died'),
    bomb('cpu-limit',
        'import resource\nused = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])\nresource.setrlimit(resource.RLIMIT_CPU, (int(used) + 1, int(used) + 2))\nwhile True: pass',
        'raised died stopped', needs='process stops', fresh=True),
    bomb('recursion-without-end', 'def f(): return f()\nf()', 'raised', 'variables', needs=''),
    bomb('stack-overflow-in-c', 'x = ()\nfor _ in range(10 ** 6): x = (x,)\nhash(x)', ANY, fresh=True),
    bomb('recursion-limit-left-low', "import sys\nsys.setrecursionlimit(len(__import__('inspect').stack(0)) + 6)", ANY, 'told', fresh=True),
    # endings
    dies('os-exit', 'import os; os._exit(0)', 'raised died'),
    dies('os-exit-3', 'import os; os._exit(3)', 'raised died'),
    dies('segfault', 'import ctypes; ctypes.string_at(0)', 'raised died'),
    dies('write-to-address-1', 'import ctypes; ctypes.memset(1, 0, 8)', 'raised died'),
    dies('abort', 'import os; os.abort()', 'raised died'),
    dies('kill-itself', 'import os; os.kill(os.getpid(), 9)', 'raised died'),
    dies('terminate-itself', 'import os, time; os.kill(os.getpid(), 15); time.sleep(5)', 'raised died'),
    dies('kill-its-group', 'import os; os.killpg(os.getpgid(0), 9)', 'raised died'),
    dies('kill-its-parent', 'import os, time; os.kill(os.getppid(), 9); time.sleep(3)', 'raised died none'),
    dies('exec-another-program', "import os; os.execvp('true', ['true'])", 'raised died'),
    dies('exit-in-a-thread', 'import os, threading, time; threading.Thread(target=os._exit, args=(4,)).start(); time.sleep(5)', 'raised died'),
    ends('stops-its-parent', Step('import os, signal\nos.kill(os.getppid(), signal.SIGSTOP)\nwhile True: pass', 'stopped died raised'),
        needs='process stops'),
    ends('dies-between-cells', 'import os, threading\nthreading.Timer(0.1, os._exit, [5]).start()',
        Step("import time\nfor _ in range(40): time.sleep(0.01)\nprint('slept')", ANY)),
    ends('atexit-loops', 'import atexit\ndef stay():\n    while True: pass\natexit.register(stay);', seconds=6, keeps='variables'),
    ends('shadows-the-library',
        Step("for n in ('json', 'os', 'site', 'sitecustomize', 'usercustomize', 'socket', 'traceback', 'random'):\n    open(n + '.py', 'w').write('raise SystemExit')\nimport os; os._exit(1)", 'raised died'),
        Step('import random, json\nprint(json.dumps([random.Random(1).random() < 1]))', output=None, shows=('[true]',)), needs='files'),
    ends('removes-its-folder', Step('import os, shutil\nshutil.rmtree(os.getcwd())', 'none raised'), NEXT, needs='process', keeps='variables'),
    raises('sys-exit', 'import sys; sys.exit()'),
    raises('sys-exit-3', 'import sys; sys.exit(3)'),
    raises('exit', 'exit()'),
    raises('raise-system-exit', "raise SystemExit('bye')", 'bye'),
    raises('raise-keyboard-interrupt', 'raise KeyboardInterrupt', 'KeyboardInterrupt'),
    raises('raise-generator-exit', 'raise GeneratorExit', 'GeneratorExit'),
    raises('raise-base-exception', "class Odd(BaseException): pass\nraise Odd('why')", 'why'),
    raises('raise-stop-iteration', 'raise StopIteration(1)', 'StopIteration'),
    raises('raise-cancelled', 'import asyncio\nraise asyncio.CancelledError', 'CancelledError'),
    raises('raise-memory-error', 'raise MemoryError', 'MemoryError'),
    raises('raise-group', "raise ExceptionGroup('both', [ValueError('one'), TypeError('two')])", 'two'),
    raises('raise-chain', "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise KeyError('k') from e", 'ZeroDivisionError'),
    raises('raise-circle', "e = ValueError('round')\nf = TypeError('about')\ne.__cause__ = f\nf.__cause__ = e\nraise e", 'round'),
    raises('str-raises', "class E(Exception):\n    def __str__(self): raise ValueError('no text')\nraise E", 'E'),
    raises('str-exits', 'class E(Exception):\n    def __str__(self): raise SystemExit\nraise E', error='raised died', keeps='told'),
    raises('str-raises-itself', 'class E(BaseException):\n    def __str__(self): raise E()\nraise E', error='raised died', keeps='told'),
    raises('module-name-is-a-number', "class E(Exception): pass\nE.__module__ = 5\nraise E('odd')", error='raised died'),
    raises('notes-are-no-text', "e = ValueError('x')\ne.__notes__ = [1, object(), None]\nraise e", 'ValueError'),
    raises('syntax-error', 'x = (1,\ny = 2', 'SyntaxError'),
    raises('forged-syntax-error', "raise SyntaxError('odd', ('f', 'x', object(), 3))", error='raised died'),
    raises('interrupts-itself', 'import os, time\nos.kill(os.getpid(), 2)\ntime.sleep(0.2)', error='raised none'),
    raises('hook-replaced', 'import os, sys\nsys.excepthook = lambda *a: os._exit(1)\n1 / 0', 'ZeroDivisionError'),
    # descriptors
    spoil('close-stdout', 'import sys\nsys.stdout.close(); sys.stderr.close()'),
    spoil('stdout-is-none', 'import sys\nsys.stdout = None'),
    spoil('stdout-is-a-text', "import io, sys\nsys.stdout = io.StringIO()\nprint('gone')"),
    spoil('stdout-raises',
        "import sys\nclass W:\n    def write(self, s): raise RuntimeError('no')\n    def flush(self): raise RuntimeError('no')\nsys.stdout = sys.stderr = W()"),
    spoil('stdout-hangs-on-flush',
        'import sys\nclass W:\n    def write(self, s): pass\n    def flush(self):\n        while True: pass\nsys.stdout = W()', keeps='told',
        needs='stops'),
    spoil('detach-stdout', 'import sys\nsys.stdout.detach()', keeps='told'),
    spoil('stdout-in-ascii', "import sys\nsys.stdout.reconfigure(encoding='ascii', errors='strict')\nprint('\\u00e9')"),
    spoil('close-descriptors-0-1-2', 'import os\nos.close(0); os.close(1); os.close(2)', needs='process'),
    spoil('close-all-descriptors', 'import os\nos.closerange(0, 4096)', 'raised died', 'told', 'process'),
    spoil('descriptor-1-is-a-file', "import os\nfd = os.open('elsewhere', os.O_WRONLY | os.O_CREAT)\nos.dup2(fd, 1)\nprint('gone')", needs='process'),
    spoil('descriptor-1-is-read-only', "import os\nfd = os.open('/dev/null', os.O_RDONLY)\nos.dup2(fd, 1)\nprint('gone')", needs='process'),
    spoil('write-to-descriptor-0', "import os\nos.write(0, b'junk')", needs='process'),
    spoil('descriptor-1-non-blocking',
        "import os\nos.set_blocking(1, False)\nfor _ in range(1000):\n    try: os.write(1, b'x' * 65536)\n    except BlockingIOError: pass",
        needs='process'),
    spoil('reads-stdin', 'import sys\nprint(repr(sys.stdin.read()))', needs='process'),
    spoil('input', "input('? ')", 'raised'),
    spoil('breakpoint', 'breakpoint()', 'none raised'),
    spoil('closed-in-a-thread',
        'import sys, threading\nt = threading.Thread(target=lambda: (sys.stdout.close(), sys.stderr.close()))\nt.start(); t.join()'),
    cells('frames-on-stdout', 'protocol look-alikes',
        Step('print(\'{"t":"done","g":1,"id":1}\')\nprint(\'!kill\')\nprint(\'\\x00END1\')', 'none', shows=('{"t":"done","g":1,"id":1}\n!kill',), answer=())),
    cells('frames-on-descriptors-1-and-2', 'protocol look-alikes',
        Step('import os\n_ = os.write(1, b\'{"t":"died","g":1}\\n!quit\\n\')\n_ = os.write(2, b\'!int\\n\')', 'none', shows=('{"t":"died","g":1}\n!quit\n!int',), answer=()),
        needs='process'),
    *(forge(f'forged-frame-{number}',
        f"for n in range(1, 40):\n    t = {frame!r}\n    forge(b'\\n' + (t % n if '%d' in t else t).encode() + b'\\n')",
        Step("print('next')", ANY, hides=('forged',), answer=())) for number, frame in enumerate(_FRAMES, 1)),
    forge('forged-junk', "forge(b'\\xff\\x00junk' * 1000 + b'\\n[' + b'[' * 100_000 + b'\\n')"),
    forge('forged-half-frame', 'forge(b\'{"t":"out","head":"\')', GOES_ON),
    forge('forged-control-words', "forge(b'\\n!quit\\n!kill\\n!int\\n')"),
    forge('done-before-its-time',
        "import gc, time\nfor o in gc.get_objects():\n    if type(o).__name__ == 'Link':\n        o.send({'t': 'done', 'g': o.generation, 'id': o.interrupts.cell})\nwhile True: time.sleep(0.001)",
        GOES_ON, keeps='session', needs='process stops'),
    forge('deaf',
        'import time\nend = time.monotonic() + 0.3\nwhile time.monotonic() < end:\n    for f in links:\n        os.set_blocking(f, False)\n        try: os.read(f, 65536)\n        except OSError: pass',
        GOES_ON, keeps='session'),
    forge('hangs-up', 'import socket\nfor f in links:\n    try: socket.socket(fileno=os.dup(f)).shutdown(2)\n    except OSError: pass', GOES_ON),
    # leftovers
    talks('thread-that-prints', _TALK + 'threading.Thread(target=talk, daemon=True).start()'),
    talks('plain-thread-that-prints', _TALK + 'threading.Thread(target=talk).start()'),
    talks('raw-thread-that-prints', _TALK + 'import _thread\n_thread.start_new_thread(talk, ());'),
    talks('timer-that-prints',
        "import threading\ndef again():\n    print('late'); t = threading.Timer(0.005, again); t.daemon = True; t.start()\nagain()"),
    talks('child-that-prints', "import subprocess\np = subprocess.Popen('while true; do echo late; sleep 0.01; done', shell=True)", 'process'),
    talks('fork-that-prints', "import os, time\nif os.fork() == 0:\n    while True: print('late', flush=True); time.sleep(0.01)", 'process'),
    talks('thread-that-raises',
        "import threading, time\ndef late():\n    time.sleep(0.05); raise RuntimeError('late')\nthreading.Thread(target=late).start()"),
    talks('thread-that-spins', 'import threading\ndef spin():\n    while True: pass\nthreading.Thread(target=spin, daemon=True).start()'),
    left('thread-that-answers',
        Step("import threading, time\ndef late():\n    time.sleep(0.1); final_answer('late')\nthreading.Thread(target=late).start()", answer=()),
        Step("import time\nfor _ in range(25): time.sleep(0.01)\nprint('mine')", output='mine', answer=()), needs='answer'),
    left('cell-stopped-with-an-answer', Step("final_answer = 'early'\nwhile True: pass", 'stopped', answer=()),
        Step("print('next')", output='next', answer=()), keeps='told', needs='answer named-answer stops', fresh=False),
    left('task-left-pending', 'import asyncio\nasync def f(): await asyncio.sleep(60)\ntask = asyncio.ensure_future(f())\nawait asyncio.sleep(0)',
        Step("await asyncio.sleep(0.001)\nprint('next')", output='next'), needs='await'),
    left('pool-left-open',
        'import time\nfrom concurrent.futures import ThreadPoolExecutor\npool = ThreadPoolExecutor(2)\nfor _ in range(10): pool.submit(time.sleep, 60)',
        NEXT, seconds=6),
    left('zombies', 'import os\nfor _ in range(50):\n    if os.fork() == 0: os._exit(0)', NEXT, needs='process', fresh=False),
    left('fork-falls-off-the-end', 'import os, time\npid = os.fork()\nif pid: time.sleep(0.05)',
        Step("open('count', 'a').write('x')\nprint(open('count').read())", output='x'), needs='process'),
    left('lock-left-held',
        "import logging, threading, time\ndef hold():\n    logging._acquireLock() if hasattr(logging, '_acquireLock') else logging._lock.acquire()\n    time.sleep(600)\nthreading.Thread(target=hold, daemon=True).start(); time.sleep(0.02)",
        NEXT),
    left('module-written-by-a-cell', Step("open('mine_one.py', 'w').write('x = 1')\nimport mine_one\nprint(mine_one.x)", output='1'), needs='files'),
    stays('child-left', f'import subprocess\np = subprocess.Popen({_SLEEPER})'),
    stays('child-in-a-session-of-its-own', f'import subprocess\np = subprocess.Popen({_SLEEPER}, start_new_session=True)'),
    stays('daemon-left', _DAEMON),
    stays('daemon-and-death', _DAEMON, Step('import os; os._exit(1)', 'died raised')),
    stays('stubborn-child',
        f'import signal, subprocess\ndef deaf():\n    for s in (1, 2, 3, 15): signal.signal(s, signal.SIG_IGN)\np = subprocess.Popen({_SLEEPER}, preexec_fn=deaf)'),
    stays('stopped-child', f'import os, signal, subprocess\np = subprocess.Popen({_SLEEPER})\nos.kill(p.pid, signal.SIGSTOP)'),
    stays('host-killed-in-a-loop', _NAME, Step('while True: pass', ANY), killed=True),
    stays('host-killed-in-c', _NAME, Step('sum(range(10 ** 15))', ANY), killed=True),
    stays('host-killed-with-a-daemon',
        _NAME + 'import os, signal, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(600)\nsignal.signal(signal.SIGINT, signal.SIG_IGN);',
        Step('while True: pass', ANY), killed=True),
    left('output-after-the-stop',
        Step("import threading, time\ndef late():\n    time.sleep(1.0); print('late')\nt = threading.Thread(target=late, daemon=True); t.start()\nwhile True: pass", 'stopped'),
        Step("import time\nfor _ in range(60): time.sleep(0.01)\nprint('mine')", ANY, hides=('late',)), keeps='told', needs='stops'),
    left('error-in-the-past', 'try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    kept_error = e',
        Step('raise kept_error', 'raised', shows=('ZeroDivisionError',)), fresh=False),
)

"""Cells that do not end by themselves, in Python code that an interrupt can reach, and in some that fights it."""

from __future__ import annotations

from experiments.robustness.suite.case import STOPPED, CellCase, CellStep, Error, Keeps

_MUST = "it is stopped within timeout + grace + 0.5 s; variables live on, or the model is told which are lost"
_LINUX = frozenset(["process"])


def _endless(
    name: str,
    does: str,
    code: str,
    keeps: Keeps = "told",
    needs: frozenset[str] = frozenset(),
    fresh: bool = False,
    error: frozenset[Error] = STOPPED,
) -> CellCase:
    return CellCase(
        name=name,
        theme="endless loops",
        does=does,
        must=_MUST if keeps == "told" else "it is stopped within timeout + grace + 0.5 s, and all variables live on",
        steps=(CellStep(code, error),),
        keeps=keeps,
        needs=needs | {"stops"},
        fresh=fresh,
    )


_SWALLOW = """
def stay():
    while True:
        try:
            while True: len('')
        except {what}: pass
stay()
"""

CASES = (
    _endless("while-true", "loops for ever", "while True: pass", "variables"),
    _endless("while-in-function", "loops for ever in a function", "def f():\n while True: pass\nf()", "variables"),
    _endless("for-count", "counts for ever", "import itertools\nfor i in itertools.count(): pass", "variables"),
    _endless("list-comprehension", "fills an endless comprehension with nothing", "[0 for _ in iter(int, 1) if _]"),
    _endless("dict-comprehension", "the same with a dict", "{_: 0 for _ in iter(int, 1)}", "variables"),
    _endless("generator-expression", "sums an endless generator", "sum(1 for _ in iter(int, 1))", "variables"),
    _endless(
        "generator-function",
        "exhausts a generator that has no end",
        "def g():\n    while True: yield 0\nfor _ in g(): pass",
        "variables",
    ),
    _endless(
        "generator-that-refuses-to-close",
        "closes a generator that swallows every exception and goes on",
        "def g():\n    while True:\n        try:\n            while True: yield\n        except Exception: pass\nfor _ in g(): pass",
    ),
    _endless(
        "exponential-recursion",
        "recurses without depth, and again at every level where the depth is reached",
        "def f():\n    try: f()\n    except RecursionError: pass\n    try: f()\n    except RecursionError: pass\nf()",
    ),
    _endless(
        "ackermann",
        "computes a number for longer than the world lasts",
        "def a(m, n):\n    return n + 1 if m == 0 else (a(m - 1, 1) if n == 0 else a(m - 1, a(m, n - 1)))\nimport sys\nwhile True:\n    a(2, 9)",
        "variables",
    ),
    _endless("except-exception", "swallows Exception in a loop", _SWALLOW.format(what="Exception"), "variables"),
    _endless("except-baseexception", "swallows BaseException in a loop", _SWALLOW.format(what="BaseException")),
    _endless(
        "except-nested",
        "swallows BaseException in two loops, one in the other",
        "def stay():\n while True:\n  try:\n   while True:\n    try:\n     while True: len('')\n"
        "    except BaseException: pass\n  except BaseException: pass\nstay()",
    ),
    _endless(
        "suppress-everything",
        "loops in a `with` that swallows every exception",
        "class All:\n    def __enter__(self): pass\n    def __exit__(self, *e): return True\n"
        "while True:\n    with All():\n        while True: len('')",
    ),
    _endless("finally-sleep", "sleeps on in `finally`", "import time\ntry: time.sleep(60)\nfinally: time.sleep(60)"),
    _endless("finally-loop", "loops on in `finally`", "try:\n    while True: pass\nfinally:\n    while True: pass"),
    _endless(
        "continue-in-finally",
        "`continue` in `finally` throws every exception away",
        "while True:\n    try: pass\n    finally: continue",
    ),
    _endless("sleep", "sleeps for a minute", "import time; time.sleep(60)", "variables"),
    _endless(
        "sleep-and-retry",
        "sleeps in small steps, and swallows what wakes it",
        "import time\nwhile True:\n    try: time.sleep(0.01)\n    except BaseException: pass",
    ),
    _endless("wait-for-event", "waits for an event", "import threading; threading.Event().wait()", "variables"),
    _endless("wait-for-queue", "waits on an empty queue", "import queue; queue.Queue().get()", "variables"),
    _endless("deadlock", "takes a lock twice", "import threading\nk = threading.Lock(); k.acquire(); k.acquire()"),
    _endless(
        "join-a-spinning-thread",
        "waits for a thread that loops",
        "import threading\ndef spin():\n    while not done: pass\ndone = False\nt = threading.Thread(target=spin, daemon=True)\n"
        "t.start()\ntry: t.join()\nfinally: done = True",
    ),
    _endless(
        "asyncio-forever",
        "awaits for ever",
        "import asyncio\nawait asyncio.sleep(60)",
        "variables",
        frozenset(["await"]),
    ),
    _endless(
        "asyncio-swallows-cancel",
        "a task that answers every cancellation by going on",
        "import asyncio\nasync def stay():\n    while True:\n        try: await asyncio.sleep(60)\n"
        "        except BaseException: pass\nasyncio.run(stay())",
    ),
    _endless("exec-loop", "loops in code made from a string", "exec('while True: pass')", "variables"),
    _endless("class-body-loop", "loops in the body of a class", "class Never:\n    while True: pass", "variables"),
    _endless(
        "sort-key-loop",
        "loops in the key function of a sort",
        "def key(x):\n    while True: pass\nsorted([1, 2], key=key)",
        "variables",
    ),
    _endless(
        "decorator-loop", "loops in a decorator", "def d(f):\n    while True: pass\n@d\ndef g(): pass", "variables"
    ),
    _endless(
        "property-loop",
        "loops in a property",
        "class P:\n    @property\n    def x(self):\n        while True: pass\nP().x",
        "variables",
    ),
    _endless(
        "import-loop",
        "imports a module of its own that never finishes loading",
        "open('endless_module.py', 'w').write('while True: pass')\nimport endless_module",
        "variables",
        frozenset(["files"]),
        error=frozenset(["stopped", "raised"]),  # not every session imports from its folder
    ),
    _endless(
        "del-loop-then-loop",
        "loops in `__del__`, where exceptions are ignored, and then again",
        "class D:\n    def __del__(self):\n        while True: pass\nd = D(); del d\nwhile True: pass",
    ),
    _endless(
        "callback-loop",
        "loops in a callback of `re.sub`",
        "import re\ndef f(m):\n    while True: pass\nre.sub('a', f, 'a')",
        "variables",
    ),
    _endless(
        "trace-off",
        "turns tracing off at every line and swallows every exception",
        "import sys\ndef stay():\n while True:\n  try:\n   while True: sys.settrace(None)\n  except BaseException: sys.settrace(None)\nstay()",
    ),
    _endless(
        "signals-ignored",
        "ignores the interrupt",
        "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass",
        needs=_LINUX,
    ),
    _endless(
        "own-signal-handler",
        "answers the interrupt with a handler that does nothing",
        "import signal\nsignal.signal(signal.SIGINT, lambda *a: None)\nwhile True: pass",
        needs=_LINUX,
    ),
    _endless(
        "signals-blocked",
        "blocks all signals of its thread",
        "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())\nwhile True: pass",
        needs=_LINUX,
    ),
    _endless(
        "terminate-ignored",
        "ignores every signal that can be ignored",
        "import signal\nfor s in signal.valid_signals():\n    try: signal.signal(s, signal.SIG_IGN)\n    except (OSError, ValueError): pass\nwhile True: pass",
        needs=_LINUX,
    ),
    _endless(
        "stops-itself",
        "stops its own process, so that no handler runs",
        "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)\nwhile True: pass",
        needs=_LINUX,
    ),
    _endless(
        "leaves-its-group",
        "joins its parent's process group, where that is allowed, and ignores the interrupt",
        "import os, signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "try: os.setpgid(0, os.getpgid(os.getppid()))\nexcept OSError: pass\nwhile True: pass",
        needs=_LINUX,
    ),
    _endless(
        "select-forever", "waits on no descriptor", "import select; select.select([], [], [])", "variables", _LINUX
    ),
    _endless(
        "read-a-silent-pipe",
        "reads a pipe that nobody writes to",
        "import os; os.read(os.pipe()[0], 1)",
        "variables",
        _LINUX,
    ),
    _endless(
        "child-sleeps",
        "waits for a child that sleeps",
        "import subprocess; subprocess.run(['sleep', '60'])",
        needs=_LINUX,
    ),
    _endless("child-floods", "waits for a child that prints for ever", "import os; os.system('yes')", needs=_LINUX),
    _endless(
        "forked-child-loops",
        "forks, and both loop",
        "import os\nos.fork()\nwhile True: pass",
        needs=_LINUX,
        fresh=True,
    ),
    _endless("prints-for-ever", "prints for ever", "while True: print('x' * 1000)", "variables"),
    _endless(
        "writes-for-ever",
        "writes to descriptor 1 for ever",
        "import os\nwhile True: os.write(1, b'x' * 1000)",
        needs=_LINUX,
    ),
)

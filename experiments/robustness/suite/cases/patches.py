"""Cells that delete, replace or patch what the interpreter and the library consist of, or leave odd settings behind."""

from __future__ import annotations

from experiments.robustness.suite.case import ANY_END, CellCase, CellStep, Keeps

_LINUX = frozenset(["process"])


def _patch(
    name: str,
    does: str,
    code: str,
    keeps: Keeps = "told",
    needs: frozenset[str] = frozenset(),
    *,
    fresh: bool = True,
    apart: bool = False,
) -> CellCase:
    return CellCase(
        name=name,
        theme="patched interpreter",
        does=does,
        must="the session works on, or is restarted and says what is lost",
        steps=(CellStep(code, ANY_END),),
        keeps=keeps,
        needs=needs,
        fresh=fresh,
        apart=apart,
    )


CASES = (
    _patch("print-replaced", "replaces print", "print = lambda *a, **k: None\ndel print", "variables", fresh=False),
    _patch(
        "builtins-print-replaced",
        "replaces builtins.print by a function that raises",
        "import builtins\nold = builtins.print\ndef p(*a, **k): raise RuntimeError('no')\nbuiltins.print = p\nbuiltins.print = old",
    ),
    _patch(
        "builtins-open-raises",
        "replaces builtins.open by a function that raises",
        "import builtins\ndef no(*a, **k): raise RuntimeError('no')\nbuiltins.open = no",
        "variables",
    ),
    _patch(
        "builtins-deleted",
        "deletes repr, len and isinstance from builtins",
        "import builtins\ndel builtins.repr, builtins.len, builtins.isinstance",
    ),
    _patch("builtins-emptied", "empties builtins", "import builtins\nbuiltins.__dict__.clear()", apart=True),
    _patch("import-removed", "removes __import__", "import builtins\nbuiltins.__import__ = None"),
    _patch(
        "builtins-shadowed",
        "binds list, str, print and type as variables, as beginners do",
        "list = [1]; str = 'text'; type = 3; id = 4; sum = 0\ndel list, str, type, id, sum",
        "variables",
        fresh=False,
    ),
    _patch("dunder-builtins-none", "sets __builtins__ to None", "__builtins__ = None"),
    _patch("globals-cleared", "clears its namespace", "globals().clear()", "session"),
    _patch("modules-cleared", "clears sys.modules", "import sys\nsys.modules.clear()", apart=True),
    _patch("main-deleted", "deletes __main__ from sys.modules", "import sys\ndel sys.modules['__main__']"),
    _patch(
        "json-broken", "replaces json.dumps and json.loads", "import json\njson.dumps = json.loads = None", apart=True
    ),
    _patch(
        "os-broken",
        "replaces os.write, os.pipe, os.read, os.getpid and os.dup2",
        "import os\nos.write = os.pipe = os.read = os.getpid = os.dup2 = None",
        apart=True,
    ),
    _patch(
        "traceback-broken",
        "replaces the functions of traceback",
        "import traceback\nfor n in dir(traceback):\n    if not n.startswith('__'): setattr(traceback, n, None)",
    ),
    _patch(
        "ast-broken",
        "replaces ast.parse, and compile",
        "import ast, builtins\nast.parse = None\nbuiltins.compile = None",
    ),
    _patch(
        "threading-broken",
        "replaces threading.Thread.start, Lock and get_ident",
        "import threading\nthreading.Thread.start = threading.Lock = threading.get_ident = None",
        apart=True,
    ),
    _patch(
        "time-broken",
        "replaces time.time, monotonic and sleep",
        "import time\ntime.time = time.monotonic = time.sleep = lambda *a: 0",
        apart=True,
    ),
    _patch(
        "signal-broken",
        "replaces signal.signal and getsignal",
        "import signal\nsignal.signal = signal.getsignal = None",
    ),
    _patch("linecache-broken", "replaces linecache.cache", "import linecache\nlinecache.cache = None"),
    _patch("io-broken", "replaces classes of io", "import io\nio.TextIOWrapper = io.FileIO = io.StringIO = None"),
    _patch("collector-off", "turns the garbage collector off", "import gc\ngc.disable()\ngc.freeze()", "variables"),
    _patch(
        "switch-interval",
        "lets no other thread run for an hour",
        "import sys\nsys.setswitchinterval(3600)",
        "variables",
    ),
    _patch(
        "trace-left",
        "leaves a trace function that raises",
        "import sys\ndef t(*a): raise RuntimeError('traced')\nsys.settrace(t)",
    ),
    _patch(
        "profile-left",
        "leaves a profile function that raises",
        "import sys\ndef t(*a): raise RuntimeError('profiled')\nsys.setprofile(t)",
    ),
    _patch(
        "displayhook-left",
        "leaves a display hook that raises",
        "import sys\ndef t(*a): raise RuntimeError('shown')\nsys.displayhook = t",
        "variables",
    ),
    _patch(
        "warnings-as-errors",
        "makes every warning an error",
        "import warnings\nwarnings.simplefilter('error')",
        "variables",
    ),
    _patch(
        "digits-limited",
        "limits the digits of numbers, and asks for more",
        "import sys\nsys.set_int_max_str_digits(640)\n10 ** 1000",
        "variables",
    ),
    _patch(
        "codec-registered",
        "registers an error handler that never ends for 'replace'",
        "import codecs\ndef stay(e):\n    while True: pass\ncodecs.register_error('replace', stay)\ncodecs.register_error('backslashreplace', stay)\nprint('\\ud800')",
        needs=frozenset(["stops"]),
    ),
    _patch(
        "audit-hook",
        "adds an audit hook that refuses everything from now on",
        "import sys\nready = []\ndef hook(name, args):\n    if ready: raise RuntimeError(name)\nsys.addaudithook(hook)\nready.append(1)",
        needs=_LINUX,
        apart=True,
    ),
    _patch(
        "alarm-left",
        "leaves an alarm that ends the process 50 ms later",
        "import signal\nsignal.signal(signal.SIGALRM, signal.SIG_DFL)\nsignal.setitimer(signal.ITIMER_REAL, 0.05)\nimport time; time.sleep(0.02)",
        needs=_LINUX,
    ),
    _patch(
        "alarm-handler-left",
        "leaves an alarm, with a handler that raises, every 50 ms",
        "import signal\ndef ring(*a): raise RuntimeError('alarm')\nsignal.signal(signal.SIGALRM, ring)\nsignal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)",
        needs=_LINUX,
    ),
    _patch(
        "interrupt-ignored-and-left",
        "leaves the interrupt ignored",
        "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)",
        "variables",
        _LINUX,
    ),
    _patch(
        "child-signal-ignored",
        "ignores the ends of its children",
        "import signal\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)",
        "variables",
        _LINUX,
    ),
    _patch(
        "pipe-signal-default",
        "lets a broken pipe end the process",
        "import signal\nsignal.signal(signal.SIGPIPE, signal.SIG_DFL)",
        "variables",
        _LINUX,
    ),
    _patch(
        "folder-changed",
        "changes to a folder, and removes it",
        "import os\nos.mkdir('away'); os.chdir('away'); os.rmdir('../away')",
        "variables",
        _LINUX,
    ),
    _patch("umask", "takes every permission from new files", "import os\nos.umask(0o777)", "variables", _LINUX),
    _patch("environment-cleared", "clears its environment", "import os\nos.environ.clear()", "variables", _LINUX),
    _patch(
        "locale-changed",
        "changes the locale and the default encoding's variables",
        "import locale, os\nos.environ['PYTHONIOENCODING'] = 'ascii'\nlocale.setlocale(locale.LC_ALL, 'C')",
        "variables",
        _LINUX,
    ),
    _patch(
        "new-session",
        "becomes the leader of a process group of its own, where that is allowed",
        "import os\ntry: os.setsid()\nexcept OSError: pass",
        "variables",
        _LINUX,
    ),
    _patch(
        "finalizers-that-loop",
        "leaves an object in a circle whose `__del__` loops for ever",
        "import gc\nclass D:\n    def __del__(self):\n        while True: pass\nd = D(); d.me = d; del d",
        needs=frozenset(["stops"]),
    ),
    _patch(
        "reserved-names",
        "overwrites the names that belong to the session",
        "context = tools = llm_query = None",
        "variables",
        fresh=False,
    ),
)

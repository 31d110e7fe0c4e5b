"""Cells that end their process, or try to, and exceptions of every kind."""

from __future__ import annotations

from experiments.robustness.suite.case import (
    ANY_END,
    DIED,
    ENDED_WELL,
    RAISED,
    REFUSED_OR_DIED,
    CellCase,
    CellStep,
    Error,
    Keeps,
)

_LINUX = frozenset(["process"])


def _dies(name: str, does: str, code: str, error: frozenset[Error] = DIED, apart: bool = False) -> CellCase:
    return CellCase(
        name=name,
        theme="ends of the process",
        does=does,
        must="the model is told that the process died and which variables are lost, and the session goes on",
        steps=(CellStep("print('last words', flush=True)\n" + code, error),),
        keeps="told",
        apart=apart,
    )


def _raises(
    name: str, does: str, code: str, shows: str = "", error: frozenset[Error] = RAISED, keeps: Keeps = "variables"
) -> CellCase:
    return CellCase(
        name=name,
        theme="exceptions",
        does=does,
        must="an ordinary error of the cell; variables live on"
        if keeps == "variables"
        else "an error of the cell; what is lost is said",
        steps=(CellStep(code, error, shows=(shows,) if shows else ()),),
        keeps=keeps,
    )


CASES = (
    _dies("os-exit", "leaves through os._exit(0)", "import os; os._exit(0)", REFUSED_OR_DIED, apart=True),
    _dies("os-exit-3", "leaves through os._exit(3)", "import os; os._exit(3)", REFUSED_OR_DIED, apart=True),
    _dies("segfault", "reads address 0", "import ctypes; ctypes.string_at(0)", REFUSED_OR_DIED, apart=True),
    _dies(
        "write-to-address-1",
        "writes to address 1",
        "import ctypes; ctypes.memset(1, 0, 8)",
        REFUSED_OR_DIED,
        apart=True,
    ),
    _dies("abort", "aborts", "import os; os.abort()", REFUSED_OR_DIED, apart=True),
    _dies("kill-itself", "sends itself SIGKILL", "import os; os.kill(os.getpid(), 9)", REFUSED_OR_DIED, apart=True),
    _dies(
        "terminate-itself",
        "sends itself SIGTERM",
        "import os, time; os.kill(os.getpid(), 15); time.sleep(5)",
        REFUSED_OR_DIED,
        apart=True,
    ),
    _dies(
        "kill-its-group",
        "sends SIGKILL to its process group",
        "import os; os.killpg(os.getpgid(0), 9)",
        REFUSED_OR_DIED,
        apart=True,
    ),
    _dies(
        "kill-its-parent",
        "sends SIGKILL to its parent",
        "import os, time; os.kill(os.getppid(), 9); time.sleep(3)",
        REFUSED_OR_DIED | ENDED_WELL,  # the first process of a container cannot be killed from inside
        apart=True,
    ),
    _dies(
        "exec-another-program",
        "becomes another program",
        "import os; os.execvp('true', ['true'])",
        REFUSED_OR_DIED,
        apart=True,
    ),
    _dies(
        "exit-in-a-thread",
        "leaves through os._exit in a thread",
        "import os, threading, time; threading.Thread(target=os._exit, args=(4,)).start(); time.sleep(5)",
        REFUSED_OR_DIED,
        apart=True,
    ),
    CellCase(
        name="stops-its-parent",
        theme="ends of the process",
        does="stops its parent with SIGSTOP, and loops",
        must="it is stopped within timeout + grace + 0.5 s, and the session goes on",
        steps=(
            CellStep(
                "import os, signal\nos.kill(os.getppid(), signal.SIGSTOP)\nwhile True: pass",
                frozenset(["stopped", "died"]),
            ),
        ),
        keeps="told",
        needs=_LINUX | {"stops"},
        fresh=True,
        apart=True,
    ),
    CellCase(
        name="dies-between-cells",
        theme="ends of the process",
        does="leaves a timer that ends the process after the cell",
        must="the next cell says that the session was restarted, and what was lost",
        steps=(
            CellStep("import os, threading\nthreading.Timer(0.1, os._exit, [5]).start()"),
            CellStep("import time\nfor _ in range(40): time.sleep(0.01)\nprint('slept')", ANY_END),
        ),
        keeps="told",
        apart=True,
        fresh=True,
    ),
    CellCase(
        name="atexit-loops",
        theme="ends of the process",
        does="registers a function that loops for ever, for the end of the process",
        must="closing the session takes no longer for it",
        steps=(CellStep("import atexit\ndef stay():\n    while True: pass\natexit.register(stay);", ENDED_WELL),),
        fresh=True,
        apart=True,
        seconds=6,
    ),
    CellCase(
        name="shadows-the-library",
        theme="ends of the process",
        does="writes modules named like those of the standard library into its folder, and dies",
        must="the session starts again, and imports the real ones",
        steps=(
            CellStep(
                "for n in ('json', 'os', 'site', 'sitecustomize', 'usercustomize', 'socket', 'traceback', 'random'):\n    open(n + '.py', 'w').write('raise SystemExit')\nimport os; os._exit(1)",
                REFUSED_OR_DIED,
            ),
            CellStep(
                "import random, json\nprint(json.dumps([random.Random(1).random() < 1]))",
                output=None,
                shows=("[true]",),
            ),
        ),
        keeps="told",
        needs=frozenset(["files"]),
        apart=True,
        fresh=True,
    ),
    CellCase(
        name="removes-its-folder",
        theme="ends of the process",
        does="removes the folder it works in",
        must="the next cells work",
        steps=(
            CellStep("import os, shutil\nshutil.rmtree(os.getcwd())", frozenset(["none", "raised"])),
            CellStep("print('next')", output="next"),
        ),
        needs=_LINUX,
        fresh=True,
    ),
    _raises("sys-exit", "calls sys.exit()", "import sys; sys.exit()"),
    _raises("sys-exit-3", "calls sys.exit(3)", "import sys; sys.exit(3)"),
    _raises("exit", "calls exit()", "exit()"),
    _raises("raise-system-exit", "raises SystemExit with a text", "raise SystemExit('bye')", "bye"),
    _raises("raise-keyboard-interrupt", "raises KeyboardInterrupt", "raise KeyboardInterrupt", "KeyboardInterrupt"),
    _raises("raise-generator-exit", "raises GeneratorExit", "raise GeneratorExit", "GeneratorExit"),
    _raises(
        "raise-base-exception",
        "raises a subclass of BaseException",
        "class Odd(BaseException): pass\nraise Odd('why')",
        "why",
    ),
    _raises("raise-stop-iteration", "raises StopIteration", "raise StopIteration(1)", "StopIteration"),
    _raises(
        "raise-cancelled",
        "raises asyncio.CancelledError",
        "import asyncio\nraise asyncio.CancelledError",
        "CancelledError",
    ),
    _raises("raise-memory-error", "raises MemoryError", "raise MemoryError", "MemoryError"),
    _raises(
        "raise-group",
        "raises a group of exceptions",
        "raise ExceptionGroup('both', [ValueError('one'), TypeError('two')])",
        "two",
    ),
    _raises(
        "raise-chain",
        "raises while handling an exception",
        "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise KeyError('k') from e",
        "ZeroDivisionError",
    ),
    _raises(
        "raise-circle",
        "raises an exception that is its own cause",
        "e = ValueError('round')\nf = TypeError('about')\ne.__cause__ = f\nf.__cause__ = e\nraise e",
        "round",
    ),
    _raises(
        "str-raises",
        "raises an exception whose text cannot be made",
        "class E(Exception):\n    def __str__(self): raise ValueError('no text')\nraise E",
        "E",
    ),
    _raises(
        "str-exits",
        "raises an exception whose text calls sys.exit()",
        "class E(Exception):\n    def __str__(self): raise SystemExit\nraise E",
        error=frozenset(["raised", "died"]),
        keeps="told",
    ),
    _raises(
        "str-raises-itself",
        "raises a BaseException whose text raises another of its kind",
        "class E(BaseException):\n    def __str__(self): raise E()\nraise E",
        error=frozenset(["raised", "died"]),
        keeps="told",
    ),
    _raises(
        "module-name-is-a-number",
        "raises an exception whose class lives in module 5",
        "class E(Exception): pass\nE.__module__ = 5\nraise E('odd')",
        error=frozenset(["raised", "died"]),
    ),
    _raises(
        "notes-are-no-text",
        "raises an exception whose notes are no text",
        "e = ValueError('x')\ne.__notes__ = [1, object(), None]\nraise e",
        "ValueError",
    ),
    _raises("syntax-error", "does not compile", "x = (1,\ny = 2", "SyntaxError"),
    _raises(
        "forged-syntax-error",
        "raises a SyntaxError with nonsense in it",
        "raise SyntaxError('odd', ('f', 'x', object(), 3))",
        error=frozenset(["raised", "died"]),
    ),
    _raises(
        "interrupts-itself",
        "sends itself the interrupt",
        "import os, time\nos.kill(os.getpid(), 2)\ntime.sleep(0.2)",
        error=frozenset(["raised", "none"]),
    ),
    _raises(
        "hook-replaced",
        "replaces sys.excepthook by one that leaves",
        "import os, sys\nsys.excepthook = lambda *a: os._exit(1)\n1 / 0",
        "ZeroDivisionError",
    ),
)

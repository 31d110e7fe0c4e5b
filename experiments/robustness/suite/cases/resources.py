"""Cells that take more memory, processes, threads, descriptors or disk than there is; all bounded by themselves."""

from __future__ import annotations

from experiments.robustness.suite.case import (
    ANY_END,
    ENDED_WELL,
    RAISED,
    REFUSED_OR_DIED,
    CellCase,
    CellStep,
    Error,
    Keeps,
)

_ALIVE = "the cell fails or not, and the session goes on"
_LINUX = frozenset(["process"])

#: Leaves 200 MB of address space above what is used, so that a bomb goes off soon and harms nobody.
_TIGHT = """
import resource
used = int(open('/proc/self/statm').read().split()[0]) * 4096
soft, hard = resource.getrlimit(resource.RLIMIT_AS)
resource.setrlimit(resource.RLIMIT_AS, (used + 200_000_000, hard))
"""
_LOOSE = "\nresource.setrlimit(resource.RLIMIT_AS, (soft, hard))"


def _bomb(
    name: str,
    does: str,
    code: str,
    error: frozenset[Error] = ANY_END,
    keeps: Keeps = "told",
    must: str = _ALIVE,
    *then: CellStep,
    needs: frozenset[str] = _LINUX,
    fresh: bool = False,
) -> CellCase:
    return CellCase(
        name=name,
        theme="resources",
        does=does,
        must=must,
        steps=(CellStep(code, error), *then),
        keeps=keeps,
        needs=needs,
        fresh=fresh,
        seconds=20,
    )


CASES = (
    _bomb(
        "one-giant-bytes", "asks for a petabyte at once", "b = bytes(10 ** 15)", RAISED, "variables", needs=frozenset()
    ),
    _bomb("one-giant-list", "a list of 10 ** 13 zeros", "b = [0] * 10 ** 13", RAISED, "variables", needs=frozenset()),
    _bomb(
        "one-giant-text", "a text of 10 ** 15 characters", "b = 'x' * 10 ** 15", RAISED, "variables", needs=frozenset()
    ),
    _bomb("one-giant-shift", "a number of 10 ** 15 bits", "b = 1 << 10 ** 15", RAISED, "variables", needs=frozenset()),
    _bomb(
        "memory-bomb-list",
        "fills a list until memory ends (200 MB)",
        _TIGHT
        + "bomb = []\ntry:\n    while True: bomb.append(bytearray(1_000_000))\nfinally:"
        + _LOOSE.replace("\n", "\n    "),
        REFUSED_OR_DIED,
    ),
    _bomb(
        "memory-bomb-left-in-place",
        "fills memory, and leaves it full for the next cell",
        _TIGHT + "bomb = []\nwhile True: bomb.append(bytearray(100_000))",
        REFUSED_OR_DIED,
        "told",
        "the next cell works, or the session was restarted and says so",
        fresh=True,
    ),
    _bomb(
        "memory-bomb-text",
        "doubles a text until memory ends (200 MB)",
        _TIGHT + "text = 'x'\ntry:\n    while True: text += text\nfinally:" + _LOOSE.replace("\n", "\n    "),
        REFUSED_OR_DIED,
    ),
    _bomb(
        "memory-bomb-in-a-child",
        "a child process fills 200 MB and is refused more",
        "import subprocess, sys\ncode = '''" + _TIGHT + "b = []\nwhile True: b.append(bytearray(1_000_000))'''\n"
        "print(subprocess.run([sys.executable, '-c', code], stderr=subprocess.DEVNULL).returncode != 0)",
        ENDED_WELL,
        "variables",
    ),
    CellCase(
        name="memory-limit-of-the-session",
        theme="resources",
        does="takes 600 MB in a session that may have 400",
        must="the cell is refused the memory, and the session goes on",
        steps=(CellStep("bomb = [bytearray(10_000_000) for _ in range(60)]\nprint(len(bomb))", REFUSED_OR_DIED),),
        keeps="told",
        needs=frozenset(["limits"]),
        fresh=True,
        options={"memory": 400_000_000},
    ),
    CellCase(
        name="process-limit-of-the-session",
        theme="resources",
        does="forks 200 sleeping children in a session that may have 60 processes",
        must="the cell is refused the processes, and the session goes on",
        steps=(
            CellStep(
                "import os, time\nfor _ in range(200):\n    if os.fork() == 0:\n        time.sleep(600); os._exit(0)\nprint('two hundred children')",
                REFUSED_OR_DIED,
                hides=("two hundred children",),
            ),
        ),
        keeps="told",
        needs=frozenset(["limits"]),
        fresh=True,
        options={"processes": 60},
    ),
    CellCase(
        name="fork-bomb",
        theme="resources",
        does="forks 60 children that ignore every signal and sleep",
        must="the session goes on, and none of them outlives it",
        steps=(
            CellStep(
                "import os, signal, time\nfor _ in range(60):\n    if os.fork() == 0:\n"
                "        for s in (1, 2, 3, 15): signal.signal(s, signal.SIG_IGN)\n"
                "        open('/proc/self/comm', 'w').write(outside['token'])\n        time.sleep(600); os._exit(0)\nprint('done')",
                ANY_END,
            ),
        ),
        keeps="told",
        after=("no_children",),
        needs=frozenset(["process"]),
        fresh=True,
    ),
    _bomb(
        "fork-in-a-loop",
        "forks in every one of six rounds, parents and children alike",
        "import os\nfor _ in range(6): os.fork()",
        ANY_END,
        "told",
        "the children vanish with the cell, and the session goes on",
        CellStep("print('mine')", output="mine"),
    ),
    _bomb(
        "thread-bomb",
        "starts 200 threads that sleep",
        "import threading, time\nfor _ in range(200): threading.Thread(target=time.sleep, args=(600,), daemon=True).start()",
        ANY_END,
        fresh=True,
    ),
    _bomb(
        "descriptor-bomb",
        "opens files until there are no descriptors left, and keeps them",
        "import os, resource\nsoft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))\nkept_open = []\n"
        "while True: kept_open.append(os.open('/dev/null', os.O_RDONLY))",
        REFUSED_OR_DIED,
        "told",
        "the next cell works, or the session was restarted and says so",
        fresh=True,
    ),
    _bomb(
        "no-descriptors-at-all",
        "forbids itself to open another file, now and for ever",
        "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))",
        ANY_END,
        "told",
        "the next cell works, or the session was restarted and says so",
        fresh=True,
    ),
    _bomb(
        "file-too-large",
        "writes beyond its own limit for the size of a file",
        "import resource\nsoft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))\ntry:\n"
        "    with open('big', 'wb') as f: f.write(bytes(1_000_000))\n"
        "finally: resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))",
        REFUSED_OR_DIED,
    ),
    _bomb(
        "cpu-limit",
        "gives itself one second of processor time, and loops",
        "import resource\nused = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])\n"
        "resource.setrlimit(resource.RLIMIT_CPU, (int(used) + 1, int(used) + 2))\nwhile True: pass",
        frozenset(["raised", "died", "stopped"]),
        needs=_LINUX | {"stops"},
        fresh=True,
    ),
    _bomb(
        "recursion-without-end",
        "recurses without end",
        "def f(): return f()\nf()",
        RAISED,
        "variables",
        needs=frozenset(),
    ),
    _bomb(
        "stack-overflow-in-c",
        "recurses in C where no limit is looked at",
        "x = ()\nfor _ in range(10 ** 6): x = (x,)\nhash(x)",
        ANY_END,
        fresh=True,
    ),
    _bomb(
        "recursion-limit-left-low",
        "leaves a recursion limit under which hardly anything runs",
        "import sys\nsys.setrecursionlimit(len(__import__('inspect').stack(0)) + 6)",
        ANY_END,
        "told",
        "the next cell works, or the session was restarted and says so",
        fresh=True,
    ),
)

"""What a cell leaves behind: threads, timers, children, daemons, and answers that come late."""

from __future__ import annotations

from experiments.robustness.suite.case import ANY_END, ENDED_WELL, RAISED, CellCase, CellStep

_LINUX = frozenset(["process"])
_WAIT = "import time\nfor _ in range(15): time.sleep(0.01)\nprint('mine')"
_GONE = "none of them outlives the session"
_SLEEPER = "['sleep', '600', '0.00' + outside['token']]"


def _talks(name: str, does: str, code: str, needs: frozenset[str] = frozenset()) -> CellCase:
    return CellCase(
        name=name,
        theme="left behind",
        does=does,
        must="what it prints does not get into the output of a later cell",
        steps=(CellStep(code, ENDED_WELL), CellStep(_WAIT, output="mine")),
        needs=needs,
        fresh=True,
    )


def _stays(name: str, does: str, code: str, *more: CellStep, killed: bool = False) -> CellCase:
    return CellCase(
        name=name,
        theme="left behind",
        does=does,
        must="nothing is left when the host is gone, even by SIGKILL" if killed else _GONE,
        steps=(CellStep(code, ENDED_WELL), *more),
        keeps="told",
        needs=_LINUX if not killed else frozenset(),
        after=("no_children",),
        fresh=True,
        host_killed=killed,
        seconds=15 if killed else 10,
    )


_TALK = "import threading, time\ndef talk():\n    while True:\n        print('late'); time.sleep(0.005)\n"
_NAME = "try: open('/proc/self/comm', 'w').write(outside['token'])\nexcept Exception: pass\n"

CASES = (
    _talks(
        "thread-that-prints",
        "leaves a daemon thread that prints",
        _TALK + "threading.Thread(target=talk, daemon=True).start()",
    ),
    _talks(
        "plain-thread-that-prints",
        "leaves a thread that prints, and is no daemon",
        _TALK + "threading.Thread(target=talk).start()",
    ),
    _talks(
        "raw-thread-that-prints",
        "leaves a thread made by _thread that prints",
        _TALK + "import _thread\n_thread.start_new_thread(talk, ());",
    ),
    _talks(
        "timer-that-prints",
        "leaves a timer that prints again and again",
        "import threading\ndef again():\n    print('late'); t = threading.Timer(0.005, again); t.daemon = True; t.start()\nagain()",
    ),
    _talks(
        "child-that-prints",
        "leaves a child that prints",
        "import subprocess\np = subprocess.Popen('while true; do echo late; sleep 0.01; done', shell=True)",
        _LINUX,
    ),
    _talks(
        "fork-that-prints",
        "leaves a forked child that prints",
        "import os, time\nif os.fork() == 0:\n    while True: print('late', flush=True); time.sleep(0.01)",
        _LINUX,
    ),
    _talks(
        "thread-that-raises",
        "leaves a thread that raises a little later",
        "import threading, time\ndef late():\n    time.sleep(0.05); raise RuntimeError('late')\nthreading.Thread(target=late).start()",
    ),
    _talks(
        "thread-that-spins",
        "leaves a thread that loops",
        "import threading\ndef spin():\n    while True: pass\nthreading.Thread(target=spin, daemon=True).start()",
    ),
    CellCase(
        name="thread-that-answers",
        theme="left behind",
        does="leaves a thread that calls final_answer in the middle of the next cell",
        must="the late answer is not the next cell's",
        steps=(
            CellStep(
                "import threading, time\ndef late():\n    time.sleep(0.1); final_answer('late')\nthreading.Thread(target=late).start()",
                answer=(),
            ),
            CellStep("import time\nfor _ in range(25): time.sleep(0.01)\nprint('mine')", output="mine", answer=()),
        ),
        needs=frozenset(["answer"]),
        fresh=True,
    ),
    CellCase(
        name="cell-stopped-with-an-answer",
        theme="left behind",
        does="sets final_answer and loops; the next cell does something else",
        must="the answer of a stopped cell is no answer of the next one",
        steps=(
            CellStep("final_answer = 'early'\nwhile True: pass", frozenset(["stopped"]), answer=()),
            CellStep("print('next')", output="next", answer=()),
        ),
        keeps="told",
        needs=frozenset(["answer", "named answer", "stops"]),
    ),
    CellCase(
        name="task-left-pending",
        theme="left behind",
        does="leaves a task of asyncio that was never awaited",
        must="the next cell works",
        steps=(
            CellStep(
                "import asyncio\nasync def f(): await asyncio.sleep(60)\ntask = asyncio.ensure_future(f())\nawait asyncio.sleep(0)",
                ENDED_WELL,
            ),
            CellStep("await asyncio.sleep(0.001)\nprint('next')", output="next"),
        ),
        needs=frozenset(["await"]),
        fresh=True,
    ),
    CellCase(
        name="pool-left-open",
        theme="left behind",
        does="leaves a pool of threads with work to do",
        must="the next cell works, and the session closes in time",
        steps=(
            CellStep(
                "import time\nfrom concurrent.futures import ThreadPoolExecutor\npool = ThreadPoolExecutor(2)\nfor _ in range(10): pool.submit(time.sleep, 60)",
                ENDED_WELL,
            ),
            CellStep("print('next')", output="next"),
        ),
        fresh=True,
        seconds=6,
    ),
    CellCase(
        name="zombies",
        theme="left behind",
        does="leaves fifty children that have ended, and waits for none",
        must="the next cell works",
        steps=(
            CellStep("import os\nfor _ in range(50):\n    if os.fork() == 0: os._exit(0)", ENDED_WELL),
            CellStep("print('next')", output="next"),
        ),
        needs=_LINUX,
    ),
    CellCase(
        name="fork-falls-off-the-end",
        theme="left behind",
        does="forks, and the child runs to the end of the cell as well",
        must="there is one result, and the next cell runs once",
        steps=(
            CellStep("import os, time\npid = os.fork()\nif pid: time.sleep(0.05)", ENDED_WELL),
            CellStep("open('count', 'a').write('x')\nprint(open('count').read())", output="x"),
        ),
        needs=_LINUX,
        fresh=True,
    ),
    CellCase(
        name="lock-left-held",
        theme="left behind",
        does="leaves the import lock of a module and a lock of logging held by a thread that sleeps",
        must="the next cell works, or is stopped in time",
        steps=(
            CellStep(
                "import logging, threading, time\ndef hold():\n    logging._acquireLock() if hasattr(logging, '_acquireLock') else logging._lock.acquire()\n    time.sleep(600)\nthreading.Thread(target=hold, daemon=True).start(); time.sleep(0.02)",
                ENDED_WELL,
            ),
            CellStep("print('next')", output="next"),
        ),
        fresh=True,
    ),
    CellCase(
        name="module-written-by-a-cell",
        theme="left behind",
        does="writes a module and imports it, twice",
        must="it is imported as from any folder one works in",
        steps=(CellStep("open('mine_one.py', 'w').write('x = 1')\nimport mine_one\nprint(mine_one.x)", output="1"),),
        needs=frozenset(["files"]),
        fresh=True,
    ),
    _stays("child-left", "leaves a child that sleeps", f"import subprocess\np = subprocess.Popen({_SLEEPER})"),
    _stays(
        "child-in-a-session-of-its-own",
        "leaves a child in a session of its own",
        f"import subprocess\np = subprocess.Popen({_SLEEPER}, start_new_session=True)",
    ),
    _stays(
        "daemon-left",
        "leaves a daemon: forks twice, with a session of its own",
        "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        "
        + _NAME.replace("\n", "\n        ")
        + "time.sleep(600)\n    os._exit(0)\nos.wait();",
    ),
    _stays(
        "daemon-and-death",
        "leaves a daemon, and dies",
        "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        "
        + _NAME.replace("\n", "\n        ")
        + "time.sleep(600)\n    os._exit(0)\nos.wait();",
        CellStep("import os; os._exit(1)", frozenset(["died", "raised"])),
    ),
    _stays(
        "stubborn-child",
        "leaves a child that ignores every signal it can",
        f"import signal, subprocess\ndef deaf():\n    for s in (1, 2, 3, 15): signal.signal(s, signal.SIG_IGN)\np = subprocess.Popen({_SLEEPER}, preexec_fn=deaf)",
    ),
    _stays(
        "stopped-child",
        "leaves a child that is stopped",
        f"import os, signal, subprocess\np = subprocess.Popen({_SLEEPER})\nos.kill(p.pid, signal.SIGSTOP)",
    ),
    _stays(
        "host-killed-in-a-loop",
        "loops for ever; then the host is killed",
        _NAME,
        CellStep("while True: pass", ANY_END),
        killed=True,
    ),
    _stays(
        "host-killed-in-c",
        "stays in C for ever; then the host is killed",
        _NAME,
        CellStep("sum(range(10 ** 15))", ANY_END),
        killed=True,
    ),
    _stays(
        "host-killed-with-a-daemon",
        "leaves a daemon and loops, the interrupt ignored; then the host is killed",
        _NAME
        + "import os, signal, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(600)\nsignal.signal(signal.SIGINT, signal.SIG_IGN);",
        CellStep("while True: pass", ANY_END),
        killed=True,
    ),
    CellCase(
        name="output-after-the-stop",
        theme="left behind",
        does="swallows the interrupt in a thread, and prints after its cell was stopped",
        must="the late output is in no other cell",
        steps=(
            CellStep(
                "import threading, time\ndef late():\n    time.sleep(1.0); print('late')\nt = threading.Thread(target=late, daemon=True); t.start()\nwhile True: pass",
                frozenset(["stopped"]),
            ),
            CellStep("import time\nfor _ in range(60): time.sleep(0.01)\nprint('mine')", ANY_END, hides=("late",)),
        ),
        keeps="told",
        needs=frozenset(["stops"]),
        fresh=True,
    ),
    CellCase(
        name="error-in-the-past",
        theme="left behind",
        does="keeps an exception and raises it again in a later cell",
        must="the error is shown as the later cell's",
        steps=(
            CellStep("try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    kept_error = e", ENDED_WELL),
            CellStep("raise kept_error", RAISED, shows=("ZeroDivisionError",)),
        ),
    ),
)

"""Host functions called from cells."""

from __future__ import annotations

import contextvars
import datetime as dt
import threading
from typing import Any

import pytest
from session_kinds import SEEN, BudgetSpent, seen

from rlm_loop.repl import PythonREPL


class HardStop(BaseException):
    pass


def add(a: int, b: int = 2) -> int:
    """Add two numbers."""
    return a + b


def test_arguments_and_results_keep_their_types(repl: PythonREPL) -> None:
    seen: list[Any] = []

    def keep(*args: Any, **kwargs: Any) -> Any:
        seen.append((args, kwargs))
        return {"back": (1, {2}), 3: b"x"}

    repl.add_tools({"keep": keep, "add": add})
    assert repl.run("add(1), add(1, 3), add(a=1, b=5), add(b=1, a=1)").output == "(3, 4, 6, 2)"
    repl.run("from datetime import date")
    assert repl.run("keep((1, {2}), when=date(2024, 1, 1))").output == "{'back': (1, {2}), 3: b'x'}"
    assert seen == [(((1, {2}),), {"when": dt.date(2024, 1, 1)})]
    repl.run("keep(object())")
    assert seen[-1][0][0].startswith("<object object")


ENDINGS = {
    "alone": "stop()",
    "swallowed": "try:\n    stop()\nexcept Exception:\n    print('swallowed')",
    "again and again": "while True:\n    try:\n        stop()\n    except BaseException:\n        pass",
    "in a thread": "import threading, time\nthreading.Thread(target=stop).start()\ntime.sleep(60)",
}


@pytest.mark.parametrize("error", [BudgetSpent("no tokens left"), HardStop("now"), SystemExit(3)])
@pytest.mark.parametrize("cell", ENDINGS.values(), ids=ENDINGS)
def test_an_end_of_the_run_goes_through_everything(ending: Any, error: BaseException, cell: str) -> None:
    def stop() -> None:
        raise error

    ending.add_tools({"stop": stop})
    ending.run("x = 1\nprint('before')")
    with pytest.raises(type(error)) as raised:
        ending.run("print('partial')\n" + cell)
    assert (raised.value, ending.last.error) == (error, "budget")
    assert ("partial" in ending.last.output, "swallowed" in ending.last.output) == (True, False)
    assert ending.run("2").output == "2"


@pytest.fixture(scope="module")
def ending() -> Any:
    with PythonREPL(grace=0.5) as repl:
        yield repl


@pytest.mark.parametrize("kind", SEEN)
def test_calls_from_threads_overlap_and_are_not_mixed_up(kind: str) -> None:
    barrier = threading.Barrier(8, timeout=30)

    def meet(n: int) -> int:
        barrier.wait()  # passes only when eight calls are under way at once
        return n

    with seen(kind) as repl:
        repl.add_tools({"meet": meet})
        code = "from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(8) as pool: "
        code += "got = list(pool.map(meet, range(40)))\ngot == list(range(40))"
        assert repl.run(code).output == "True"


@pytest.mark.slow
def test_large_arguments_and_results(repl: PythonREPL) -> None:
    repl.add_tools({"echo": lambda x: x})
    assert repl.run("big = 'é' * 2_000_000\necho(big) == big").output == "True"


def test_a_late_result_is_credited_to_nobody(repl: PythonREPL) -> None:
    gate, begun = threading.Event(), threading.Event()

    def wait(n: int) -> int:
        begun.set()
        gate.wait(10)
        return n

    repl.add_tools({"wait": wait, "begun": begun.is_set, "now": lambda: "now"})
    code = "import threading, time\ndef work():\n    try: wait(1)\n    except RuntimeError: pass\n"
    code += "t = threading.Thread(target=work, daemon=True)\nt.start()\nwhile not begun(): time.sleep(0.01)"
    assert repl.run(code).error is None
    gate.set()
    assert repl.run("t.join(5); print(t.is_alive(), now())").output == "False now\n"


def test_a_forked_child_cannot_call_tools(repl: PythonREPL) -> None:
    repl.add_tools({"now": lambda: "now"})
    code = "import os\nif (pid := os.fork()) == 0:\n try: now()\n except RuntimeError as e: print(e, flush=True)\n"
    code += " os._exit(0)\nos.waitpid(pid, 0);"
    assert "forked child" in repl.run(code).output
    assert repl.run("now()").output == "'now'"


def test_tools_run_in_the_callers_context(repl: PythonREPL) -> None:
    name = contextvars.ContextVar("name", default="none")
    name.set("mine")
    repl.add_tools({"who": name.get})
    assert repl.run("who()").output == "'mine'"


def test_clashing_names_are_refused_all_at_once(repl: PythonREPL) -> None:
    repl.set("context", "text")
    wrong = {"'final_answer', '1a', 'class'": "final_answer 1a class fine", "'context', 'print'": "context print"}
    for told, names in {**wrong, "'lambda'; .*'context'": "context lambda"}.items():
        with pytest.raises(ValueError, match=told):
            repl.add_tools(dict.fromkeys(names.split(), add))
    assert repl.run("fine").error == "runtime"


def test_tools_are_back_after_a_restart(repl: PythonREPL) -> None:
    repl.add_tools({"add": add})
    repl.run("import os; os._exit(1)")
    assert repl.run("add(1)").output == "3"


def test_a_table_reaches_tools_as_csv(repl: PythonREPL) -> None:
    pytest.importorskip("pandas")
    given: list[Any] = []
    repl.add_tools({"look": given.append})
    repl.run("import pandas as pd\nlook(pd.DataFrame({'n': range(100)}))")
    assert given[0] == ",n\n" + "".join(f"{n},{n}\n" for n in range(100))

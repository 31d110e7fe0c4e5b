"""What ran is on record: variables come back after a kill, and no host tool is paid twice."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from processes import Stopwatch, gone
from session_kinds import BudgetSpent

from rlm_loop.repl import PythonREPL
from rlm_loop.repl.base import CellCall
from rlm_loop.repl.host.frames import IN_FRAME
from rlm_loop.repl.records import asked_with, recorded_tools

DIE = "import os; os._exit(3)"


class Counter:
    """A host tool that gives another number each time, so that asking it again would be seen."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def __call__(self, *about: Any) -> int:
        self.asked.append(about)
        return len(self.asked)


def test_the_record_keeps_nothing_alive(repl: PythonREPL) -> None:
    repl.run("class Noisy:\n    def __del__(self): print('gone')\nnoisy = Noisy()")
    assert repl.run("del noisy\nprint('after')").output == "gone\nafter\n"


def test_odd_names_and_threads_that_bind_names_do_no_harm(repl: PythonREPL) -> None:
    assert repl.run("globals()[1] = 2; globals()[''] = 3; globals()['a b'] = 4").error is None
    repl.run(
        "import threading, time\ndef bind():\n    for i in range(10**6): globals()[f'n{i % 999}'] = i; time.sleep(0)\n"
        "threading.Thread(target=bind, daemon=True).start()"
    )
    for _ in range(20):
        assert repl.run("1").output == "1"


IN_C = "while True:\n    try: sum(range(10 ** 13))\n    except BaseException: pass"


def test_variables_come_back_and_nothing_is_paid_twice() -> None:
    ask = Counter()
    with PythonREPL(timeout=20, grace=0.3, setup="base = 1") as repl:
        repl.add_tools({"ask": ask})
        repl.set("context", "text")
        repl.run("a = ask('a')\nfrom collections import Counter\ndef f(): return a + g")
        repl.run("g = 40\nprint(ask('b'))\n1/0")
        repl.set("context", "other")
        repl.run("kept = [context]")
        watch = Stopwatch()
        killed = repl.run("late = 1\n" + IN_C, timeout=0.4)
        assert watch.fair < 0.4 + 0.3 + 0.5
        assert killed.lost == ()
        assert "what this cell had set is lost; a, Counter, f, g, kept will be rebuilt" in killed.message
        told = repl.run("print(f(), kept, context, base, 'late' in globals())")
        assert (told.output, told.lost) == ("41 ['other'] other 1 False\n", ())
        assert ask.asked == [("a",), ("b",)]


@pytest.mark.parametrize("rebuild", [True, False])
def test_a_death_between_cells_is_told_with_what_came_back_or_is_lost(rebuild: bool) -> None:
    with PythonREPL(launcher="plain", rebuild=rebuild) as repl:
        repl.run("x = 1")
        pid = repl.get("__import__('os').getpid()")
        repl.run("import os, threading\nthreading.Timer(0.05, lambda: os.path.exists('f') or os._exit(5)).start()")
        assert gone(pid)
        (repl.cwd / "f").touch()
        result = repl.run("40 + 2")
        assert (result.error, result.output.splitlines()[-1], "exit status 5" in result.output) == (None, "42", True)
        assert ("rebuilt from the journal: x, os, threading" in result.output) is rebuild
        assert {*result.lost} == (set() if rebuild else {"x", "os", "threading"})
        assert repl.run("x" if rebuild else "1").output == "1"


UNSTEADY = {
    "printed something else": "import random\nr = random.random()\nprint(r)",
    "did not fail": "import os\nr = 1\nif not os.path.exists('x'):\n    open('x', 'w').close()\n    1/0",
}


@pytest.mark.parametrize("what", UNSTEADY)
def test_what_differs_is_noticed_and_said(repl: PythonREPL, what: str) -> None:
    repl.run(UNSTEADY[what])
    repl.run("steady = object()\nprint(steady)")  # the address differs, which means nothing
    repl.run(DIE)
    told = repl.run("'steady' in globals()").output
    assert f"no variables were lost; cell 1 {what} when it was run again" in told
    assert told.count("cell ") == 1
    assert repl.run("1").output == "1"  # told once


def test_a_call_that_is_not_on_record_is_not_made(repl: PythonREPL) -> None:
    ask = Counter()
    repl.add_tools({"ask": ask})
    repl.run("import time\nmine = ask(time.time_ns())\nafter = mine + 1")
    repl.run("other = ask('steady')")
    repl.run(DIE)
    told = repl.run("other")
    assert (len(ask.asked), told.output.splitlines()[-1], {*told.lost}) == (2, "2", {"mine", "after"})
    assert "cell 1 called ask otherwise" in told.output
    assert repl.run("mine").error == "runtime"


def test_a_failure_on_the_way_loses_what_it_did_not_get_to(repl: PythonREPL) -> None:
    repl.run("n = 1")
    repl.run("import os\nos.mkdir('made')\nn = 2\nm = 3")
    repl.run(DIE)
    result = repl.run("'n' in globals()")
    assert {*result.lost} == {"n", "m"}  # n would be 1 now, which is not its last value
    assert ("failed: FileExistsError" in result.output, result.output[-5:]) == (True, "False")


@pytest.mark.parametrize("ended", ["while True: n += 1", "n += 1\nspend()"], ids=["timeout", "budget"])
def test_a_cell_that_was_ended_is_never_run_again(ended: str) -> None:
    def spend() -> None:
        raise BudgetSpent

    with PythonREPL(timeout=20, grace=20) as repl:
        repl.add_tools({"spend": spend})
        repl.run("n = 0\nsafe = 'safe'")
        with pytest.raises(BudgetSpent) if "spend" in ended else nullcontext():
            assert "all variables are kept" in repl.run(ended, timeout=1).message
        repl.run("m = n + 1")
        killed = repl.run(DIE)
        assert (killed.lost, "and n; safe, m will be rebuilt" in killed.message) == (("n",), True)
        told = repl.run("safe")  # m is made of n, so it cannot come back either
        assert (told.lost, told.output.splitlines()[-1]) == (("m",), "'safe'")
        assert "rebuilt from the journal: safe; lost: m" in told.output
        assert repl.run("n").message == "NameError: name 'n' is not defined"


def test_running_again_is_bounded_in_time() -> None:
    with PythonREPL(timeout=60, grace=0.3) as repl:
        repl.run("quick = 1")
        repl.run("import time; time.sleep(1.5); slow = 2")
        repl.run("quick += 1")
        repl.run(DIE)
        watch = Stopwatch()
        result = repl.run("quick", timeout=1)
        assert watch.fair < 1 + 1 + 0.3 + 0.5
        assert ({*result.lost}, result.output.splitlines()[-1]) == ({"slow", "time"}, "2")
        assert "cell 2 was not run again (it took 1." in result.output


def test_cells_that_kill_when_run_again_lose_all_and_stay_out() -> None:
    with PythonREPL(timeout=20) as repl:
        repl.set("context", "stays")
        repl.run("a = 1")
        repl.run("import os\nos.path.exists('x') and os._exit(1)\nopen('x', 'w').close()\nb = 2")
        repl.run(DIE)
        result = repl.run("context")
        assert ({*result.lost}, result.output.splitlines()[-1]) == ({"a", "b", "os"}, "'stays'")
        assert "the cells that were run again ended the process" in result.output
        repl.run("c = 3")
        repl.run(DIE)
        assert repl.run("(c, context)").output == "(3, 'stays')"


TIMER = "import os, threading; threading.Timer(0.5, os.abort).start()"


@pytest.mark.parametrize("later", ["import signal; signal.alarm(1)", TIMER], ids=["an alarm", "a timer that aborts"])
def test_cells_that_end_the_repl_later_do_so_once_more_at_most(bare: PythonREPL, later: str) -> None:
    """Each restart ran them again, and so ended the next one, for ever."""
    bare.run(f"x = 1\n{later}")
    told = [bare.run("import time; time.sleep(3); y = 2") for _ in range(2)]
    assert ([r.error for r in told], "x" in told[1].lost) == (["died", "died"], True)
    assert "memory" not in told[0].message + told[1].message
    assert [bare.run("import time; time.sleep(2); 3").output.splitlines()[-1] for _ in range(2)] == ["3", "3"]


def test_values_of_the_host_come_back_as_they_were_then(repl: PythonREPL) -> None:
    repl.set("big", "b" * (IN_FRAME + 1))
    repl.run("n = len(big)")
    repl.set("big", "c" * (IN_FRAME + 2))
    repl.set("big", "d" * (IN_FRAME + 3))
    repl.run("m = len(big)")
    repl.run(DIE)
    assert repl.get("(n, m, big[0], len(big))") == (IN_FRAME + 1, IN_FRAME + 3, "d", IN_FRAME + 3)


def test_many_recorded_calls_are_answered_in_no_more_time_than_they_are() -> None:
    """Each was looked for in a list that was copied for it, in time that no limit of a cell counts."""
    many = range(40_000)
    calls, unknown = [CellCall("ask", asked_with([n], {}), {"value": n}) for n in many], list[str]()
    ask, watch = recorded_tools(calls, ["ask"], unknown)["ask"], Stopwatch()
    assert [ask(n) for n in many if n != 7] == [n for n in many if n != 7]
    assert unknown == []
    assert watch.fair < 4


def test_a_namespace_of_any_size_is_compared_in_no_time(bare: PythonREPL) -> None:
    """Each name was looked for among all the others, which took minutes."""
    bare.run("for i in range(40_000): globals()[f'n{i}'] = i")
    bare.run("import os\nfor i in range(40_000): globals()[f'm{i}'] = os.getpid()\nprint(os.getpid())")
    watch = Stopwatch()
    assert "will be rebuilt" in bare.run(DIE).message
    assert bare.run("n7 + 1").output.splitlines()[-1] == "8"
    assert watch.fair < 8


names = st.sampled_from(["v0", "v1", "v2"])
numbers = st.integers(-9, 9)
steps = st.one_of(
    st.builds("{} = {}".format, names, numbers),
    st.builds("{} = ask({})".format, names, numbers),
    st.builds("{} = {} + {}".format, names, names, numbers),
    st.builds("items.append({})".format, names),
    st.builds("items = items + [ask({})]".format, numbers),
    st.builds("print({}, items)".format, names),
    st.builds("del {}".format, names),
    st.builds("{} = ask({})\n1/0".format, names, numbers),
    st.builds("try: fail({})\nexcept RuntimeError as e: {} = str(e)".format, numbers, names),
    st.builds("final_answer = {}".format, names),
    st.builds("!set {} {}".format, names, numbers),
)
STATE = "{k: v for k, v in globals().items() if k[0] in 'vi'}"


def play(repl: PythonREPL, code: str) -> Any:
    """What is told of a cell, without its number, which is one more after the kill."""
    if code.startswith("!set"):
        _, name, value = code.split()
        return repl.set(name, int(value))
    result = repl.run(code)
    return result.output.split("<cell ")[0], result.message, result.answer, result.lost


@settings(max_examples=12)
@given(st.lists(steps, min_size=1, max_size=8), st.integers(0, 8))
def test_any_session_killed_anywhere_goes_on_as_if_it_had_not_been(cells: list[str], at: int) -> None:
    def fail(n: int) -> None:
        raise ValueError(n)

    outcomes: list[Any] = []
    for kill in (False, True):
        ask = Counter()
        with PythonREPL(timeout=20, launcher="plain") as repl:
            repl.add_tools({"ask": ask, "fail": fail})
            told = [play(repl, "items = []")]
            for i, cell in enumerate(cells):
                if kill and i == at:
                    assert repl.run(DIE).lost == ()
                told.append(play(repl, cell))
            outcomes.append((told, repl.get(STATE), ask.asked))
            if kill and at < len(cells):
                assert not any("restart" in t[0] for t in told if t)
    assert outcomes[0] == outcomes[1]

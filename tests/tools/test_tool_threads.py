"""Threads in which tools run: used again when they are free, left to a tool that does not return."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable

import pytest

from rlm_loop.tools import ToolGateway, tool
from rlm_loop.tools.threads import ToolThreads


def where(threads: ToolThreads, name: str, wait: threading.Event | None = None) -> threading.Thread:
    """The thread that did it; with `wait` it is still at it."""
    found: list[tuple[threading.Thread, str]] = []
    begun, over = threading.Event(), threading.Event()

    def work() -> Callable[[], None]:
        found.append((threading.current_thread(), threading.current_thread().name))
        begun.set()
        if wait is not None:
            wait.wait(30)
        return over.set

    threads.run(name, work)
    assert (begun if wait is not None else over).wait(30)
    assert found[0][1] == name
    return found[0][0]


def test_a_free_thread_is_used_again_and_one_that_hangs_is_not() -> None:
    threads, release = ToolThreads(idle=30), threading.Event()
    first = where(threads, "a")
    assert where(threads, "b") is first
    assert where(threads, "hangs", release) is first
    second = where(threads, "c")
    assert second is not first
    assert where(threads, "d") is second
    assert first.daemon
    assert second.daemon
    release.set()


def test_a_thread_ends_when_nothing_is_asked_of_it() -> None:
    threads = ToolThreads(idle=0.01)
    first = where(threads, "a")
    first.join(30)
    assert not first.is_alive()
    assert where(threads, "b") is not first


def test_calls_follow_each_other_while_threads_end() -> None:
    threads = ToolThreads(idle=0.0)  # each wait is too long: work comes while they are about to end
    for number in range(300):
        where(threads, str(number))


def test_nothing_is_kept_of_a_call() -> None:
    class Kept:
        def __call__(self) -> Callable[[], None]:
            return over.set

    over = threading.Event()
    threads, work = ToolThreads(idle=30), Kept()
    gone = weakref.ref(work)
    threads.run("a", work)
    del work
    assert over.wait(30)
    for _ in range(1000):
        if gone() is None:
            break
        threading.Event().wait(0.01)
    assert gone() is None


def test_tools_that_call_tools_do_not_wait_for_their_own_thread() -> None:
    inner = ToolGateway([tool(name="deep", description="Deep.")(lambda: threading.current_thread().name)])

    @tool
    def outer() -> list[str]:
        """Outer."""
        return [threading.current_thread().name, inner.call("deep").data]

    assert ToolGateway([outer]).call("outer").data == ["tool-outer", "tool-deep"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_child_has_threads_of_its_own() -> None:
    code = (
        "import os\n"
        "from rlm_loop.tools import ToolGateway, tool\n"
        "gate = ToolGateway([tool(name='f', description='F.')(lambda: 7)], timeout=20)\n"
        "assert gate.call('f').data == 7\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    os._exit(gate.call('f').data)\n"
        "assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7\n"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, timeout=60)

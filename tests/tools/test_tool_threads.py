"""Threads in which tools run: used again when they are free, left to a tool that does not return."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Generator
from pathlib import Path

import pytest

from rlm_loop.accounting.scope import Scope, call_scope
from rlm_loop.repl.host.shielded import interrupt_thread
from rlm_loop.tools import ToolGateway, tool
from rlm_loop.tools.code import CodeTools
from rlm_loop.tools.python_source import source_state
from rlm_loop.tools.threads import GivenUp, Pending


class Held(Scope):
    """A scope whose work is finished and waits to say so until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.finished, self.go = threading.Event(), threading.Event()

    def _remove(self, key: object) -> None:
        self.finished.set()
        self.go.wait(0.2)


@pytest.mark.parametrize("ending", ["time is up", "Ctrl-C"])
def test_a_value_that_comes_while_the_caller_gives_up_is_used_or_late(ending: str) -> None:
    scope, late, returned = Held(), list[str](), list[str]()

    def seconds_left() -> float:
        scope.finished.wait(30)  # the work is done, and its thread has not said so
        if ending == "Ctrl-C":
            raise KeyboardInterrupt
        return 0.0

    pending = Pending(lambda: "reply", "model", scope, late.append)
    with contextlib.suppress(GivenUp, KeyboardInterrupt):
        returned.append(pending.result(seconds_left))
    scope.go.set()
    assert returned + late == ["reply"]


def test_a_stop_that_strikes_while_the_thread_starts_ends_the_scope() -> None:
    caller = threading.get_ident()

    def work() -> None:
        told, scope = threading.Event(), call_scope.get()
        assert scope is not None
        with scope.waking(told.set):
            interrupt_thread(caller)
            ended.append(told.wait(10))
        over.set()

    for _ in range(30):
        ended, over = list[bool](), threading.Event()
        with contextlib.suppress(KeyboardInterrupt):
            Pending(work, "model", Scope()).result(lambda: None)
        assert over.wait(30)
        assert ended == [True]


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


def test_source_is_compiled_by_one_thread_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two that hide warnings at once would leave them hidden."""
    hidden, inside, most = warnings.catch_warnings, list[int](), list[int]()

    @contextlib.contextmanager
    def slowly() -> Generator[None]:
        inside.append(1)
        most.append(len(inside))
        time.sleep(0.1)
        with hidden(record=False):
            yield
        inside.pop()

    (tmp_path / "a.py").write_text("x = 1\n")
    monkeypatch.setattr(warnings, "catch_warnings", slowly)
    edit = threading.Thread(target=CodeTools(tmp_path).apply_edit, args=("a.py", 1, 1, "x = 2"))
    edit.start()
    assert source_state("x = 1") == "compiles"
    edit.join()
    assert max(most) == 1

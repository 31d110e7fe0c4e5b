"""Threads in which tools and models run, and what is used or late of what they give."""

from __future__ import annotations

import contextlib
import threading
import time
import warnings
from collections.abc import Generator
from pathlib import Path

import pytest

from rlm_loop.accounting.scope import Scope, call_scope
from rlm_loop.repl.host.shielded import interrupt_thread
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

"""Cleaning up: what goes wrong there takes no outcome and no exception away, and one Ctrl-C does not break it off."""

from __future__ import annotations

import os
import signal
import threading
from typing import Any

import pytest

from rlm_loop import ToolLoopAgent
from rlm_loop.agents import Interrupted
from rlm_loop.models import Model, ScriptedModel
from rlm_loop.repl import PythonREPL

main_only = pytest.mark.skipif(
    threading.current_thread() is not threading.main_thread(), reason="signals reach the main thread"
)
ANSWER = "```python\nfinal_answer = 5\n```"


class Unwritable(Exception):
    def __str__(self) -> str:
        raise ValueError("not even its text")


class Jammed(PythonREPL):
    """A session that is closed, and raises then."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(launcher="plain")
        self.error = error

    def close(self) -> None:
        super().close()
        raise self.error


def runs(error: BaseException, *replies: Any) -> Any:
    return ToolLoopAgent(model=ScriptedModel(list(replies)), repl=lambda: Jammed(error)).run("How much?")


@pytest.mark.parametrize("error", [OSError(28, "No space left"), RecursionError("deep"), Unwritable()])
def test_a_session_that_cannot_be_closed_takes_no_outcome_away(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    outcome = runs(error, ANSWER)
    assert (outcome.stop, outcome.answer) == ("answered", 5)
    assert f"the session could not be closed: {type(error).__name__}" in caplog.text


@pytest.mark.parametrize(("way", "kind"), [(RuntimeError("the model is gone"), RuntimeError), (None, Interrupted)])
def test_nor_does_it_take_the_place_of_an_exception(way: Exception | None, kind: type[BaseException]) -> None:
    class Ends(Model):
        name = "ends"
        asked = 0

        def complete(self, *_: Any, **__: Any) -> Any:
            self.asked += 1
            if self.asked == 1:
                return ScriptedModel(["```python\nkept = 1\n```"]).complete(*_, **__)
            raise way or KeyboardInterrupt

    with pytest.raises(kind) as caught:
        ToolLoopAgent(model=Ends(), repl=lambda: Jammed(OSError("jammed"))).run("How much?")  # type: ignore[arg-type]
    outcome = vars(caught.value)["outcome"]
    assert outcome.steps == 1


@main_only
def test_ctrl_c_waits_for_the_end_of_cleaning_up_and_a_second_one_does_not() -> None:
    done: list[int] = []

    class Pressed(PythonREPL):
        def close(self) -> None:
            super().close()
            for times in (1, 2):
                signal.raise_signal(signal.SIGINT)
                done.append(times)

    with pytest.raises(KeyboardInterrupt):
        ToolLoopAgent(model=ScriptedModel([ANSWER]), repl=lambda: Pressed(launcher="plain")).run("How much?")
    assert done == [1]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@main_only
def test_ctrl_c_while_a_session_is_closed_leaves_nothing() -> None:
    class Pressed(PythonREPL):
        def close(self) -> None:
            signal.raise_signal(signal.SIGINT)
            super().close()

    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    opened = Pressed(launcher="plain")
    with pytest.raises(Interrupted) as caught:
        ToolLoopAgent(model=ScriptedModel([ANSWER]), repl=lambda: opened).run("How much?")
    assert caught.value.outcome.answer == 5
    assert not before or len(os.listdir("/proc/self/fd")) <= before

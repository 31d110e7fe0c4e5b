"""A view of a run, also of one in the background: in order, escaped, bounded, and to the very end, which comes.

And a reply while it is written: what is shown of it, and what never is.
"""

from __future__ import annotations

import html
import io
import itertools
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rlm_loop import Budget, LeanAgent, ToolLoopAgent
from rlm_loop.accounting import Ledger, Part
from rlm_loop.actions import Observation, RunCode
from rlm_loop.agents import outcome_of
from rlm_loop.messages import Prompt, Reply, Usage
from rlm_loop.models import Model, ModelError, ScriptedModel, ToolCall
from rlm_loop.models.base import Kind, tell
from rlm_loop.outcome import Turn
from rlm_loop.report import LiveRun, LiveView, start_live
from rlm_loop.report.notebook.live import KEPT, Writing
from rlm_loop.traces import read
from tests.agents.replies import code

HOSTILE = "<script>alert(1)</script><img src=x onerror=y>\x1b[2J"


@dataclass
class Output:
    """The output of a cell: every drawing of it, as HTML and as text."""

    pages: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    def update(self, part: dict[str, str], *, raw: bool) -> None:
        assert raw
        self.pages.append(part["text/html"])
        self.texts.append(part["text/plain"])


@pytest.fixture
def outputs(monkeypatch: pytest.MonkeyPatch) -> list[Output]:
    """The outputs that views open, as in a kernel."""
    display = pytest.importorskip("IPython.display", reason='pip install -e ".[notebooks]"')
    found: list[Output] = []

    def shown(part: dict[str, str], *, raw: bool, display_id: bool) -> Output:
        assert display_id
        found.append(Output())
        found[-1].update(part, raw=raw)
        return found[-1]

    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", lambda: SimpleNamespace(kernel=True))
    monkeypatch.setattr(display, "display", shown)
    return found


def scripted(*replies: Any) -> ScriptedModel:
    return ScriptedModel([code(r) if isinstance(r, str) else r for r in replies])


def turn(index: int, text: str = "x") -> Turn:
    reply = Reply(code(text), usage=Usage(10, 5))
    return Turn(index, reply, (RunCode(text),), (Observation(text, cause="repl_output"),), 0.5)


def begun(*, question: str = "?", **options: Any) -> LiveView:
    """A view of a run that has begun."""
    view = LiveView(**options)
    view.on_run_start(agent="a", model="m", question=question)
    return view


def test_outside_a_notebook_turns_are_lines(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = ToolLoopAgent(model=scripted("print(1)", "final_answer = 2")).run("How many?", live=True)
    shown = capsys.readouterr()
    assert (outcome.answer, shown.out) == (2, "")  # what a program prints stays its own
    lines = shown.err.splitlines()
    assert lines[0] == "code with scripted: How many?"
    assert [line[:9] for line in lines if line.startswith("-- turn")] == ["-- turn 1", "-- turn 2"]
    assert [line[:17] for line in lines[-2:]] == ["answered: 2 turns", "input tokens by c"]


def test_lines_survive_a_poor_terminal_and_cannot_steer_it(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stderr", stream := io.TextIOWrapper(raw, encoding="ascii"))
    view = begun(note=HOSTILE, question=f"Größe? {HOSTILE}")
    view.on_step_end(turn=turn(1, HOSTILE))
    view.on_run_error(error=ValueError(HOSTILE))
    stream.flush()
    text = raw.getvalue().decode("ascii")
    assert [part in text for part in ("Gr??e?", "alert(1)", "\x1b")] == [True, True, False]


@pytest.mark.parametrize(
    ("second", "stop"), [(KeyboardInterrupt(), "interrupted"), (ModelError("no reply: try again"), "failed")]
)
def test_a_run_that_breaks_off_comes_to_its_end(outputs: list[Output], second: BaseException, stop: str) -> None:
    view = LiveView()
    with pytest.raises(BaseException) as caught:
        ToolLoopAgent(model=scripted("print(1)", second), hooks=(view,)).run("?")
    assert view.outcome is caught.value.outcome  # type: ignore[attr-defined]
    assert stop in outputs[0].pages[-1]
    begun().on_run_error(error=ValueError(HOSTILE))  # before the first turn: shown in place of the run
    page = outputs[1].pages[-1]
    assert [part in page for part in ("failed", html.escape(HOSTILE[:25]), "<progress")] == [True, True, False]
    assert outputs[1].texts[-1].startswith("failed: ValueError: <script>")


def test_a_view_that_breaks_does_not_end_the_run(outputs: list[Output], monkeypatch: Any, caplog: Any) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise OSError("the notebook is gone")

    monkeypatch.setattr(Output, "update", broken)
    assert ToolLoopAgent(model=scripted("final_answer = 2"), hooks=(LiveView(),)).run("?").answer == 2
    assert "the notebook is gone" in caplog.text


def test_steps_of_sub_agents_are_sub_calls_and_running_tools_are_named(outputs: list[Output]) -> None:
    view = LiveView(every=0.0, note="a note")
    model = scripted("final_answer = llm_query('Sub?', context='part')", "final_answer = context", "never")
    outcome = ToolLoopAgent(model=model, max_depth=2, hooks=(view,)).run("?", context="whole")
    assert (outcome.answer, outcome is view.outcome, view.running) == ("part", True, False)
    pages = [page for page in outputs[0].pages if "<progress" in page and "a note" in page]
    assert any("turn 1: sub-calls: 1 running" in page for page in pages)
    assert any("sub-calls: 1 done" in page for page in pages)
    assert not any("turn 2" in page for page in pages)

    def look(place: str) -> str:
        """Look somewhere."""
        return place

    model = ScriptedModel([Reply("", (ToolCall("1", "look", '{"place": "here"}'),)), "done"])
    LeanAgent(model=model, presentation="native", tools=(look,), hooks=(view,)).run("?")
    assert any("turn 1: look runs" in page for page in outputs[1].pages)
    assert "call look" in outputs[1].pages[-1]


def test_what_comes_often_is_drawn_now_and_then_and_turns_always_in_no_long_page(outputs: list[Output]) -> None:
    clock = itertools.count()  # a second at each look
    view = begun(every=10.0, clock=lambda: float(next(clock)))
    for number in range(100):
        view.on_subcall_start(node=f"0.{number}", kind="completion", prompt="?")
    before = len(outputs[0].pages)
    assert 5 <= before <= 40
    for number in range(1, 101):
        view.on_step_end(turn=turn(number, "y" * 10_000))
    assert len(outputs[0].pages) == before + 100
    page = outputs[0].pages[-1]
    assert (len(page) < 60_000, page.count("<details")) == (True, 3)
    assert ("77 earlier turns" in page, "turn 100: code" in page) == (True, True)


def test_what_was_written_cannot_become_markup_and_causes_are_shown(outputs: list[Output]) -> None:
    ledger = Ledger()
    ledger.charge([Part(HOSTILE, 0, 0, 1000)], Usage(1000, 30), 1, 0, "agent")
    view = LiveView(note=HOSTILE, how_to_stop=HOSTILE)
    view.on_run_start(agent=HOSTILE, model=HOSTILE, question=HOSTILE, ledger=ledger)
    view.on_step_end(turn=turn(1, HOSTILE))
    assert view.on_text is not None
    view.on_text(kind="text", text=HOSTILE + " ", node="0")
    view.on_tool_start(tool=HOSTILE)
    page = outputs[0].pages[-1]
    assert [part in page for part in ("<script", "<img", html.escape("<script>"))] == [False, False, True]
    assert ("\x1b" in outputs[0].texts[-1], "1,000" in page) == (False, True)


def begin(*replies: Any, tools: tuple[Callable[..., Any], ...] = (), **options: Any) -> LiveRun:
    agent = ToolLoopAgent(model=scripted(*replies), tools=tools, budget=Budget(cell_seconds=600))
    return start_live(agent, "How many?", **{"show": False, **options})


def test_it_returns_at_once_is_shown_and_gives_the_outcome_later(capsys: pytest.CaptureFixture[str]) -> None:
    gate = threading.Event()

    def wait() -> None:
        """Wait for the test."""
        gate.wait(300)

    run = begin("wait()", "final_answer = context", tools=(wait,), context=[1], show=True)
    assert (run.running, run.outcome, "under way" in repr(run)) == (True, None, True)
    with pytest.raises(TimeoutError):
        run.result(0.01)
    gate.set()
    outcome: Any = run.result(300)
    assert (outcome.answer, run.running, "over" in repr(run)) == ([1], False, True)
    run.stop()  # too late to do anything
    assert run.result() is run.outcome is outcome
    told = capsys.readouterr().err
    assert ("run.stop() in a cell" in told, "answered: 2 turns" in told) == (True, True)


def test_a_cell_is_stopped_and_what_was_done_is_kept(tmp_path: Path) -> None:
    busy = threading.Event()

    def working() -> None:
        """Say that the cell runs."""
        busy.set()

    cell = "print('partial')\nworking()\nwhile True: pass"
    run = begin("kept = 1\nprint(kept)", cell, tools=(working,), trace=tmp_path / "t.jsonl")
    assert busy.wait(300)
    run.stop()
    run.stop()  # a second one does not kill
    outcome: Any = run.result(300)
    assert (outcome.stop, outcome.steps, run.error) == ("interrupted", 2, None)
    seen = outcome.turns[1].observations[0]
    assert (seen.failure.kind, seen.text[:8]) == ("interrupted", "partial\n")
    assert outcome_of(read(tmp_path / "t.jsonl")).stop == "interrupted"


def test_a_fault_is_raised_where_the_outcome_is_waited_for() -> None:
    run = begin("print(1)", ModelError("no reply: try again"))
    with pytest.raises(ModelError, match="try again"):
        run.result(300)
    assert run.outcome is not None
    assert (run.outcome.steps, "ModelError" in repr(run)) == (1, True)


def test_a_stop_before_the_first_step_is_not_lost() -> None:
    began, gate = threading.Event(), threading.Event()

    class Slow:
        def on_run_start(self) -> None:
            began.set()
            gate.wait(300)

    agent = ToolLoopAgent(model=scripted("while True: pass"), hooks=(Slow(),), budget=Budget(cell_seconds=600))
    run = start_live(agent, "How many?", show=False)
    assert began.wait(300)
    run.stop()
    gate.set()
    outcome: Any = run.result(300)
    assert (outcome.stop, outcome.steps) == ("interrupted", 0)


# -- a reply while it is written

KEY = "sk-proj-" + "aB3" * 12
Told = tuple[Kind, str]
BEGIN: Told = ("begin", "")


def after(*told: Told) -> Writing:
    writing = Writing()
    for kind, text in told:
        writing = writing.heard(kind, text)
    return writing


MOMENTS: list[tuple[tuple[Told, ...], str, str]] = [
    ((BEGIN, ("loading", "m.gguf")), "loading the model (m.gguf)", ""),
    ((BEGIN, ("thinking", "Let me ")), "the model thinks, 7 characters", "Let me "),
    ((BEGIN, ("text", "I look"), ("text", " here")), "the model writes, 11 characters", "I look "),
    ((BEGIN, ("call", "\nadd "), ("call", '{"a": 1}')), "the model writes a call, 13 characters", 'add {"a": '),
    ((("text", "Half a re"), ("retry", "asked again: it broke off")), "asked again: it broke off", ""),
    ((("text", "one call"), BEGIN, ("text", "the next one")), "the model writes, 12 characters", "the next "),
]


@pytest.mark.parametrize(("told", "doing", "shown"), MOMENTS)
def test_what_a_moment_shows(told: tuple[Told, ...], doing: str, shown: str) -> None:
    writing = after(*told)
    assert (str(writing), writing.shown) == (doing, shown)


def test_a_key_is_never_shown_in_part_and_of_a_long_reply_only_the_end_is_kept() -> None:
    text = f"The key is {KEY} and that is it. "
    for cut in range(len(text)):
        shown = after(("text", text[:cut])).shown
        assert not any(KEY[: size + 8] in shown for size in range(1, 8)), shown
    assert KEY not in after(("text", text), ("end", "")).shown
    writing = after(*[("text", "word ")] * 10_000)
    assert (len(writing.text), writing.length) == (KEPT, 50_000)


class Typing(Model):
    """A model that tells its reply letter by letter, as one that streams does."""

    name = "typing"
    immediate = True

    def __init__(self, *replies: str) -> None:
        self.replies = list(replies)

    def complete(self, prompt: Prompt, *, max_tokens: int | None = None) -> Reply:
        text = self.replies.pop(0)
        for letter in text:
            tell("text", letter)
        return Reply(text, usage=Usage(10, 5))


def test_the_live_view_shows_a_reply_as_it_is_written(outputs: list[Output]) -> None:
    model = Typing("I look.\n```python\nfinal_answer = llm_query('?')\n```\n", "a sub-call's reply")
    outcome = ToolLoopAgent(model=model).run("?", hooks=(LiveView(every=0.0),))
    assert outcome.answer == "a sub-call's reply"
    under_way = [page for page in outputs[0].pages if "<progress" in page]
    assert any("I look." in page and "the model writes" in page for page in under_way)
    assert not any("sub-call&#39;s" in page for page in under_way[:-1])  # one reply is shown, the root's
    of_reply = next(page for page in under_way if "the reply is there" in page)
    assert "template" in of_reply  # billed before anybody reads it

"""A view of a run: what it is told becomes what it shows, in order, escaped, bounded, and to the very end."""

from __future__ import annotations

import html
import io
import itertools
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from rlm_loop import LeanAgent, ToolLoopAgent
from rlm_loop.accounting import Ledger, Part
from rlm_loop.actions import CallTool, Observation, RunCode
from rlm_loop.messages import Reply, Usage
from rlm_loop.models import ModelError, ScriptedModel, ToolCall
from rlm_loop.outcome import Turn
from rlm_loop.report import LiveView

display = pytest.importorskip("IPython.display", reason='pip install -e ".[notebooks]"')
HOSTILE = "<script>alert(1)</script><img src=x onerror=y>\x1b[2J"


class Output:
    """The output of a cell: every drawing of it."""

    def __init__(self) -> None:
        self.drawn: list[dict[str, str]] = []

    def update(self, part: dict[str, str], *, raw: bool) -> None:
        assert raw
        self.drawn.append(part)

    @property
    def pages(self) -> list[str]:
        return [part["text/html"] for part in self.drawn]


@pytest.fixture
def outputs(monkeypatch: pytest.MonkeyPatch) -> list[Output]:
    """The outputs that views open, as in a kernel."""
    found: list[Output] = []

    def shown(part: dict[str, str], *, raw: bool, display_id: bool) -> Output:
        assert display_id
        found.append(Output())
        found[-1].update(part, raw=raw)
        return found[-1]

    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", lambda: SimpleNamespace(kernel=True))
    monkeypatch.setattr(display, "display", shown)
    return found


def block(code: str) -> str:
    return f"I look.\n```python\n{code}\n```"


def scripted(*replies: Any) -> ScriptedModel:
    return ScriptedModel([block(r) if isinstance(r, str) else r for r in replies])


def turn(index: int, text: str = "x") -> Turn:
    pair = RunCode(text), Observation(text, cause="repl_output")
    return Turn(index, Reply(block(text), usage=Usage(10, 5)), (pair[0],), (pair[1],), 0.5)


def test_a_run_is_one_output_from_its_first_moment_to_its_outcome(outputs: list[Output]) -> None:
    view = LiveView(note="a note")
    for _ in range(2):  # a further run makes a new output
        agent = ToolLoopAgent(model=scripted("print(1)", "final_answer = 2"))
        outcome = agent.run("How many?", hooks=(view,))
        assert outcome is view.outcome
        assert not view.running
    assert len(outputs) == 2
    first, *_, last = outputs[0].pages
    assert all(part in first for part in ("running", "<progress", "How many?", "a note"))
    assert ["turn 1: code" in page for page in outputs[0].pages].count(False) >= 1
    assert all(part in last for part in ("answered", "a note", "turn 2: code"))
    assert "<progress" not in last
    assert "answered: 2 turns" in outputs[0].drawn[-1]["text/plain"]


def test_outside_a_notebook_turns_are_lines(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = ToolLoopAgent(model=scripted("print(1)", "final_answer = 2")).run("How many?", live=True)
    shown = capsys.readouterr()
    assert outcome.answer == 2
    assert shown.out == ""  # what a program prints stays its own
    lines = shown.err.splitlines()
    assert lines[0] == "code with scripted: How many?"
    assert [line[:9] for line in lines if line.startswith("-- turn")] == ["-- turn 1", "-- turn 2"]
    assert lines[-2].startswith("answered: 2 turns")
    assert lines[-1].startswith("input tokens by cause (exact): ")


def test_lines_survive_a_poor_terminal_and_cannot_steer_it(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stderr", stream := io.TextIOWrapper(raw, encoding="ascii"))
    view = LiveView(note=HOSTILE)
    view.on_run_start(agent=HOSTILE, model="m", question="Größe?")
    view.on_step_end(turn=turn(1, HOSTILE))
    view.on_run_error(error=ValueError(HOSTILE))
    stream.flush()
    text = raw.getvalue().decode("ascii")
    assert "Gr??e?" in text
    assert "alert(1)" in text
    assert "\x1b" not in text


@pytest.mark.parametrize(
    ("second", "stop"), [(KeyboardInterrupt(), "interrupted"), (ModelError("no reply: try again"), "failed")]
)
def test_a_run_that_breaks_off_comes_to_its_end(outputs: list[Output], second: BaseException, stop: str) -> None:
    view = LiveView()
    with pytest.raises(BaseException) as caught:
        ToolLoopAgent(model=scripted("print(1)", second), hooks=(view,)).run("?")
    assert view.outcome is caught.value.outcome  # type: ignore[attr-defined]
    assert (view.outcome.stop, view.outcome.steps) == (stop, 1)  # type: ignore[union-attr]
    assert stop in outputs[0].pages[-1]


def test_an_error_before_the_first_turn_is_shown_in_place_of_the_run(outputs: list[Output]) -> None:
    view = LiveView()
    view.on_run_start(agent="code", model="m")
    view.on_run_error(error=ValueError(HOSTILE))
    page = outputs[0].pages[-1]
    assert "failed" in page
    assert html.escape("<script>alert(1)</script>") in page
    assert "<progress" not in page
    assert outputs[0].drawn[-1]["text/plain"].startswith("failed: ValueError: <script>")


def test_a_view_that_breaks_does_not_end_the_run(
    outputs: list[Output], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise OSError("the notebook is gone")

    monkeypatch.setattr(Output, "update", broken)
    assert ToolLoopAgent(model=scripted("final_answer = 2"), hooks=(LiveView(),)).run("?").answer == 2
    assert "the notebook is gone" in caplog.text


def test_the_steps_of_sub_agents_are_told_as_sub_calls(outputs: list[Output]) -> None:
    model = scripted("final_answer = llm_query('Sub?', context='part')", "final_answer = context", "never")
    outcome = ToolLoopAgent(model=model, max_depth=2, hooks=(LiveView(every=0.0),)).run("?", context="whole")
    assert outcome.answer == "part"
    pages = [page for page in outputs[0].pages if "<progress" in page]
    assert any("turn 1: sub-calls: 0 done, 1 running, 0 tokens" in page for page in pages)
    assert any("sub-calls: 1 done, 0 running" in page for page in pages)
    assert not any("turn 2" in page for page in pages)


def test_tools_are_named_while_they_run(outputs: list[Output]) -> None:
    def look(place: str) -> str:
        """Look somewhere."""
        return place

    model = ScriptedModel([Reply("", (ToolCall("1", "look", '{"place": "here"}'),)), "done"])
    LeanAgent(model=model, presentation="native", tools=(look,), hooks=(LiveView(every=0.0),)).run("?")
    assert any("turn 1: look runs" in page for page in outputs[0].pages)


def test_what_comes_often_is_drawn_now_and_then_and_turns_always(outputs: list[Output]) -> None:
    clock = itertools.count()  # a second at each look
    view = LiveView(every=10.0, clock=lambda: float(next(clock)))
    view.on_run_start(agent="a", model="m", question="?")
    for number in range(100):
        view.on_subcall_start(node=f"0.{number}", kind="completion", prompt="?")
    assert 5 <= len(outputs[0].drawn) <= 40
    before = len(outputs[0].drawn)
    view.on_step_end(turn=turn(1))
    assert len(outputs[0].drawn) == before + 1


def test_what_was_written_cannot_become_markup(outputs: list[Output]) -> None:
    ledger = Ledger()
    ledger.charge([Part(HOSTILE, 0, 0, 1000)], Usage(1000, 30), turn=1)
    view = LiveView(note=HOSTILE, how_to_stop=HOSTILE)
    view.on_run_start(agent=HOSTILE, model=HOSTILE, question=HOSTILE, ledger=ledger)
    view.on_step_end(turn=turn(1, HOSTILE))
    assert view.on_text is not None
    view.on_text(kind="text", text=HOSTILE + " ", node="0")
    view.on_tool_start(tool=HOSTILE)
    page = outputs[0].pages[-1]
    assert "<script" not in page
    assert "<img" not in page
    assert html.escape("<script>") in page
    assert "\x1b" not in outputs[0].drawn[-1]["text/plain"]


def test_a_long_run_makes_no_long_page(outputs: list[Output]) -> None:
    view = LiveView(every=1e9)
    view.on_run_start(agent="a", model="m", question="?")
    for number in range(1, 101):
        view.on_step_end(turn=turn(number, "y" * 10_000))
    page = outputs[0].pages[-1]
    assert len(page) < 60_000
    assert page.count("<details") == 3
    assert "77 earlier turns" in page
    assert "turn 100: code" in page


def test_causes_are_shown_while_it_runs(outputs: list[Output]) -> None:
    ledger = Ledger()
    ledger.charge([Part("task", 0, 0, 1000)], Usage(1000, 30), turn=1)
    view = LiveView()
    view.on_run_start(agent="a", model="m", ledger=ledger)
    view.on_step_start(turn_index=1)
    assert "1,000" in outputs[0].pages[-1]
    call = CallTool("f", "{}"), Observation("2")
    view.on_step_end(turn=Turn(1, Reply("", usage=Usage(1000, 30)), (call[0],), (call[1],), 0.1))
    assert "call f" in outputs[0].pages[-1]
    assert "stopping" not in outputs[0].pages[-1]
    view.stopping()
    assert "stopping" in outputs[0].pages[-1]

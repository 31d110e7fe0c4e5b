"""A view of a run: what it is told becomes what it shows, in order, escaped, bounded, and to the very end."""

from __future__ import annotations

import html
import io
import itertools
from typing import Any

import pytest

from rlm_loop import LeanAgent, ToolLoopAgent
from rlm_loop.accounting.ledger import Ledger, Part
from rlm_loop.actions import CallTool, Observation, RunCode
from rlm_loop.agents.loop import Interrupted
from rlm_loop.messages import Reply, Usage
from rlm_loop.models import ModelError, ScriptedModel
from rlm_loop.outcome import Turn
from rlm_loop.report.notebook.live import LiveView, NotebookSurface, TextSurface
from rlm_loop.report.notebook.live.drawn import LINES, WHOLE, Bundle, doing, live_parts
from rlm_loop.report.notebook.live.state import RunState

HOSTILE = "<script>alert(1)</script><img src=x onerror=y>\x1b[2J"


def live_html(state: RunState) -> str:
    return "".join(part["text/html"] for part in live_parts(state))


def live_text(state: RunState) -> str:
    return "\n".join(part["text/plain"] for part in live_parts(state))


class Seen:
    """A surface that keeps what it is given."""

    def __init__(self) -> None:
        self.kinds: list[str] = []
        self.states: list[RunState] = []

    def __getattr__(self, name: str) -> Any:
        if name not in ("begin", "update", "end"):
            raise AttributeError(name)

        def keep(state: RunState) -> None:
            self.kinds.append(name)
            self.states.append(state)

        return keep


def watched(**options: Any) -> tuple[LiveView, Seen]:
    seen = Seen()
    return LiveView(lambda: seen, **options), seen


def block(code: str) -> str:
    return f"I look.\n```python\n{code}\n```"


def scripted(*replies: Any) -> ScriptedModel:
    return ScriptedModel([block(r) if isinstance(r, str) else r for r in replies])


def turn(index: int, text: str = "x") -> Turn:
    pair = RunCode(text), Observation(text, cause="repl_output")
    return Turn(index, Reply(block(text), usage=Usage(10, 5)), (pair[0],), (pair[1],), 0.5)


def test_a_run_from_its_first_moment_to_its_outcome() -> None:
    view, seen = watched(note="a note")
    agent = ToolLoopAgent(model=scripted("print(1)", "final_answer = 2"))
    outcome = agent.run("How many?", hooks=(view,))
    assert (seen.kinds[0], seen.kinds[-1]) == ("begin", "end")
    assert set(seen.kinds[1:-1]) == {"update"}
    first, last = seen.states[0], seen.states[-1]
    assert (first.question, first.agent, first.model, first.note) == ("How many?", "code", "scripted", "a note")
    assert [len(s.turns) for s in seen.states] == [0, 0, 1, 1, 2, 2]  # begin, then start and end of each turn, end
    assert [s.turn for s in seen.states] == [0, 1, 1, 2, 2, 2]
    spent = [sum(s.by_cause.values()) for s in seen.states]
    assert spent == sorted(spent)
    assert spent[2] == outcome.turns[0].reply.usage.input_tokens  # type: ignore[union-attr]
    assert last.by_cause == outcome.ledger.by_cause()
    assert last.outcome is outcome is view.outcome
    assert not view.running


def test_live_shows_it_where_it_runs(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = ToolLoopAgent(model=scripted("print(1)", "final_answer = 2")).run("How many?", live=True)
    shown = capsys.readouterr()
    assert outcome.answer == 2
    assert shown.out == ""  # what a program prints stays its own
    lines = shown.err.splitlines()
    assert lines[0] == "code with scripted: How many?"
    assert [line[:9] for line in lines if line.startswith("-- turn")] == ["-- turn 1", "-- turn 2"]
    assert lines[-2].startswith("answered: 2 turns")
    assert lines[-1].startswith("input tokens by cause (exact): ")


def test_the_agents_own_hooks_are_told_as_well() -> None:
    (one, first), (other, second) = watched(), watched()
    agent = ToolLoopAgent(model=scripted("final_answer = 2"), hooks=(one,))
    agent.run("?", hooks=[other])
    assert first.kinds == second.kinds != []
    assert agent.hooks == (one,)


def test_a_view_shows_one_run_after_the_other() -> None:
    view, seen = watched()
    for answer in (1, 2):
        ToolLoopAgent(model=scripted(f"final_answer = {answer}"), hooks=(view,)).run("?")
    assert [seen.kinds.count(kind) for kind in ("begin", "end")] == [2, 2]
    assert view.outcome is not None
    assert view.outcome.answer == 2
    assert [len(s.turns) for s in seen.states].count(0) == 4


def test_an_interrupted_run_comes_to_its_end_in_the_view() -> None:
    view, _ = watched()
    with pytest.raises(Interrupted) as caught:
        ToolLoopAgent(model=scripted("print(1)", KeyboardInterrupt()), hooks=(view,)).run("?")
    assert view.outcome is caught.value.outcome
    assert view.outcome.stop == "interrupted"
    assert view.outcome.steps == 1


def test_a_failed_run_comes_to_its_end_in_the_view() -> None:
    view, _ = watched()
    with pytest.raises(ModelError):
        ToolLoopAgent(model=scripted("print(1)", ModelError("no reply: try again")), hooks=(view,)).run("?")
    assert view.outcome is not None
    assert view.outcome.stop == "failed"


def test_a_run_that_cannot_begin_says_so() -> None:
    view, seen = watched()

    def broken() -> Any:
        raise RuntimeError(f"no REPL here {HOSTILE}")

    with pytest.raises(RuntimeError):
        ToolLoopAgent(model=scripted("1"), repl=broken, hooks=(view,)).run("?")
    last = seen.states[-1]
    assert "no REPL here" in (last.error or (last.outcome.reason if last.outcome else ""))
    assert "<script" not in live_html(last)
    assert not view.running


def test_an_error_before_the_first_turn_is_shown_in_place_of_the_run() -> None:
    view, seen = watched()
    view.on_run_start(agent="code", model="m")
    view.on_run_error(error=ValueError(HOSTILE))
    page = live_html(seen.states[-1])
    assert "failed" in page
    assert html.escape("<script>alert(1)</script>") in page
    assert "<progress" not in page
    assert live_text(seen.states[-1]).startswith("failed: ValueError: <script>")


def test_a_view_that_breaks_does_not_end_the_run(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Seen):
        def update(self, _: RunState) -> None:
            raise OSError("the notebook is gone")

    assert ToolLoopAgent(model=scripted("final_answer = 2"), hooks=(LiveView(Broken),)).run("?").answer == 2
    assert "the notebook is gone" in caplog.text


def test_the_steps_of_sub_agents_are_told_as_sub_calls() -> None:
    view, seen = watched(every=0.0)
    model = scripted("final_answer = llm_query('Sub?', context='part')", "final_answer = context", "never")
    outcome = ToolLoopAgent(model=model, max_depth=2, hooks=(view,)).run("?", context="whole")
    assert outcome.answer == "part"
    assert max(len(s.turns) for s in seen.states) == 1
    assert {s.turn for s in seen.states} == {0, 1}
    told = [s.subcalls for s in seen.states if s.subcalls]
    assert told[0] == "sub-calls: 0 done, 1 running, 0 tokens"
    assert told[-1].startswith("sub-calls: 1 done, 0 running")


def test_tools_are_named_while_they_run() -> None:
    def look(place: str) -> str:
        """Look somewhere."""
        return place

    from rlm_loop.models import ToolCall

    view, seen = watched(every=0.0)
    model = ScriptedModel([Reply("", (ToolCall("1", "look", '{"place": "here"}'),)), "done"])
    LeanAgent(model=model, presentation="native", tools=(look,), hooks=(view,)).run("?")
    assert "look runs" in [s.doing for s in seen.states]
    assert "turn 1: look runs" in [doing(s) for s in seen.states]


def test_what_comes_often_is_drawn_now_and_then_and_turns_always() -> None:
    clock = itertools.count()  # a second at each look
    view, seen = watched(every=10.0, clock=lambda: float(next(clock)))
    view.on_run_start(agent="a", model="m", question="?")
    for number in range(100):
        view.on_subcall_start(node=f"0.{number}", kind="completion", prompt="?")
    assert 5 <= len(seen.kinds) <= 15
    before = len(seen.kinds)
    view.on_step_end(turn=turn(1))
    assert len(seen.kinds) == before + 1


def test_what_was_written_cannot_become_markup_nor_steer_a_terminal() -> None:
    state = RunState(
        HOSTILE,
        HOSTILE,
        HOSTILE,
        (turn(1, HOSTILE),),
        2,
        HOSTILE,
        HOSTILE,
        {HOSTILE: 3},
        None,
        note=HOSTILE,
        written=HOSTILE,
    )
    page = live_html(state)
    assert "<script" not in page
    assert "<img" not in page
    assert html.escape("<script>") in page
    assert "\x1b" not in live_text(state)
    out = io.StringIO()
    surface = TextSurface(out)
    surface.begin(state)
    surface.update(state)
    surface.end(state)
    assert "\x1b" not in out.getvalue()
    assert "alert(1)" in out.getvalue()


def test_a_long_run_makes_no_long_page() -> None:
    turns = tuple(turn(n, "y" * 100_000) for n in range(1, 501))
    page = live_html(RunState("?", "a", "m", turns, 501))
    assert len(page) < 60_000
    assert page.count("<details") == WHOLE
    assert f"{500 - WHOLE - LINES} earlier turns" in page
    assert "turn 500: code" in page


def test_text_tells_each_turn_once_and_survives_a_poor_terminal() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    surface = TextSurface(stream)
    state = RunState("Größe?", "a", "m")
    surface.begin(state)
    for count in (1, 1, 2):
        surface.update(RunState("", "a", "m", tuple(turn(n + 1) for n in range(count))))
    stream.flush()
    text = raw.getvalue().decode("ascii")
    assert text.startswith("a with m: Gr??e?")
    assert [text.count(f"-- turn {n}:") for n in (1, 2)] == [1, 1]


def test_only_what_changed_is_drawn_again_so_that_what_a_reader_opened_stays_open() -> None:
    drawn: list[tuple[str, Bundle]] = []

    def draw(part: Bundle, *, raw: bool, display_id: str) -> None:
        drawn.append((display_id, part))

    surface = NotebookSurface(draw, draw)
    view = LiveView(lambda: surface, every=0.0)
    view.on_run_start(agent="a", model="m", question="?")
    over, now = (ident for ident, _ in drawn)
    view.on_step_end(turn=turn(1))
    assert "<details" in dict(drawn)[over]["text/html"]
    drawn.clear()
    assert view.on_text is not None
    view.on_step_start(turn_index=2)
    for word in ("I ", "look ", "here. "):
        view.on_text(kind="text", text=word, node="0")
    view.stopping()
    assert {ident for ident, _ in drawn} == {now}
    assert not any("<details" in part["text/html"] for _, part in drawn)
    view.on_step_end(turn=turn(2))
    assert "turn 2: code" in dict(drawn)[over]["text/html"]
    view.on_run_error(error=ValueError("gone"))
    drawn.clear()
    view.redraw()  # where the front end dropped the last drawing, all of it comes again
    assert [ident for ident, _ in drawn] == [over, now]


def test_causes_are_shown_while_it_runs() -> None:
    ledger = Ledger()
    ledger.charge([Part("task", 0, 0, 1000)], Usage(1000, 30), turn=1)
    view, seen = watched()
    view.on_run_start(agent="a", model="m", ledger=ledger)
    view.on_step_start(turn_index=1)
    page = live_html(seen.states[-1])
    assert "task" in page
    assert "1,000" in page
    call = CallTool("f", "{}"), Observation("2")
    view.on_step_end(turn=Turn(1, Reply("", usage=Usage(1000, 30)), (call[0],), (call[1],), 0.1))
    assert "call f" in live_html(seen.states[-1])
    assert "stopping" not in live_html(seen.states[-1])
    view.stopping()
    assert "stopping" in live_html(seen.states[-1])

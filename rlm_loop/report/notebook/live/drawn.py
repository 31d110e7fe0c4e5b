"""A moment of a run as HTML and as text."""

from __future__ import annotations

from rlm_loop.outcome import Turn
from rlm_loop.report.notebook.formatting import (
    causes_line,
    clipped,
    closing_line,
    step_text,
    turn_head,
    visible,
)
from rlm_loop.report.notebook.live.state import RunState

#: Turns of a running agent that are shown whole, the latest; of the others one line each.
WHOLE = 3
#: Lines of a reply that is being written.
WRITTEN = 20
#: Lines of earlier turns; of still earlier ones only the number is told.
LINES = 20


#: A part of the view as a notebook takes it: by MIME type.
Bundle = dict[str, str]


def live_parts(state: RunState) -> tuple[Bundle, Bundle]:
    """A run under way as its finished turns and what goes on now; once it is over, as its outcome and the note.

    The turns change when one ends and not while a reply is written, so that what a reader opens there stays open as
    long.  There is no script in it; what a model or a tool wrote is escaped.
    """
    from rlm_loop.report.notebook.html import causes_values, turn_values, view

    if state.outcome is not None:
        text = "\n".join(filter(None, [visible(str(state.outcome)), end_text(state)]))
        return _bundle(state.outcome.to_html(), text), _bundle(view("live_note", state.note), visible(state.note))
    if state.error:
        return _bundle(view("live_error", clipped(state.error)), end_text(state)), _bundle("", "")
    turns, written = state.turns[-WHOLE:], last_lines(state.written)
    over = view(
        "live_turns",
        question=clipped(state.question, 1_000),
        facts=" · ".join(fact for fact in (state.agent, state.model, state.note) if fact),
        earlier=_earlier(state.turns[:-WHOLE]),
        turns=[turn_values(turn) for turn in turns],
    )
    badge, (title, causes) = "stopping" if state.stopping else "running", causes_values(state.by_cause, state.counting)
    now = view("live_now", badge, doing(state), written, title, causes, state.how_to_stop)
    told = [visible(doing(state)), written, causes_line(state.by_cause, state.counting)]
    return (
        _bundle(over, "\n".join([begin_text(state), *map(turn_text, turns)])),
        _bundle(now, "\n".join(filter(None, told))),
    )


def _bundle(html: str, text: str) -> Bundle:
    return {"text/html": html, "text/plain": text}


def doing(state: RunState) -> str:
    """What goes on now, in a few words."""
    turn = f"turn {state.turn}" if state.turn else "starting"
    now = ": ".join(filter(None, [turn, state.subcalls or state.doing]))
    return f"{now} · {state.seconds:.0f} s" if state.seconds >= 1 else now


def last_lines(text: str) -> str:
    """The end of a text that is being written."""
    return visible("\n".join(text.split("\n")[-WRITTEN:]))


def begin_text(state: RunState) -> str:
    """What is told when a run begins."""
    question = " ".join(clipped(state.question, 300).split())
    lines = [f"{state.agent} with {state.model}: {question}", state.note, state.how_to_stop]
    return visible("\n".join(line for line in lines if line))


def turn_text(turn: Turn) -> str:
    """One turn; control characters that a model or a tool wrote cannot steer the terminal."""
    return visible(step_text(turn))


def end_text(state: RunState) -> str:
    """What is told when a run is over."""
    if state.outcome is None:
        return visible(f"failed: {clipped(state.error)}" if state.error else "")
    return visible("\n".join(filter(None, [closing_line(state.outcome), causes_line(state.by_cause, state.counting)])))


def _earlier(turns: tuple[Turn, ...]) -> list[str]:
    left_out = len(turns) - LINES
    lines = [turn_head(turn) for turn in turns[-LINES:]]
    return [f"{left_out} earlier turns", *lines] if left_out > 0 else lines

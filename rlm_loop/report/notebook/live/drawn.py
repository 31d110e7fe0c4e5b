"""A moment of a run as HTML and as text.  Strings from values: what a model or a tool wrote is escaped."""

from __future__ import annotations

from html import escape

from rlm_loop.outcome import Turn
from rlm_loop.report.notebook.live.state import RunState
from rlm_loop.report.notebook.run_html import (
    AMBER,
    BOX,
    RED,
    badge,
    causes_html,
    clipped,
    step_text,
    turn_head,
    turn_html,
)
from rlm_loop.report.notebook.text import causes_line, closing_line, visible

#: Turns of a running agent that are shown whole, the latest; of the others one line each.
WHOLE = 3
#: Lines of earlier turns; of still earlier ones only the number is told.
LINES = 20
_SMALL = "opacity:.75;font-size:.9em"


def live_html(state: RunState) -> str:
    """A run under way, or its outcome once it is over, with no script and no colour of its own."""
    if state.outcome is not None:
        note = f'<div class="rlm-loop-note" style="{_SMALL}">{escape(state.note)}</div>' if state.note else ""
        return state.outcome.to_html() + note
    if state.error:
        return f'<div class="rlm-loop-live" style="{BOX}">{badge("failed", RED)} {escape(clipped(state.error))}</div>'
    facts = [fact for fact in (state.agent, state.model, state.note) if fact]
    before, whole = state.turns[:-WHOLE], state.turns[-WHOLE:]
    return "".join(
        [
            f'<div class="rlm-loop-live" role="status" style="{BOX}">',
            f"<div>{badge('stopping' if state.stopping else 'running', AMBER)} {escape(doing(state))} "
            '<progress style="width:8em;vertical-align:middle" aria-label="running"></progress></div>',
            f'<div style="opacity:.8;white-space:pre-wrap">{escape(clipped(state.question, 1_000))}</div>',
            f'<div style="{_SMALL}">{escape(" · ".join(facts))}</div>' if facts else "",
            *(f'<div style="{_SMALL}">{escape(line)}</div>' for line in _earlier(before)),
            *(turn_html(turn, opened=turn is whole[-1]) for turn in whole),
            causes_html(state.by_cause, state.counting, opened=True),
            f'<div style="opacity:.6;font-size:.85em">{escape(state.how_to_stop)}</div>' if state.how_to_stop else "",
            "</div>",
        ]
    )


def doing(state: RunState) -> str:
    """What goes on now, in a few words."""
    turn = f"turn {state.turn}" if state.turn else "starting"
    return ": ".join(filter(None, [turn, state.subcalls or state.doing]))


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


def live_text(state: RunState) -> str:
    """A whole moment as text, for a front end that shows no HTML."""
    if state.outcome is not None:
        return "\n".join(filter(None, [visible(str(state.outcome)), end_text(state), visible(state.note)]))
    if state.error:
        return end_text(state)
    parts = [begin_text(state), *(turn_text(turn) for turn in state.turns[-WHOLE:]), visible(doing(state))]
    return "\n".join(filter(None, [*parts, causes_line(state.by_cause, state.counting)]))


def _earlier(turns: tuple[Turn, ...]) -> list[str]:
    left_out = len(turns) - LINES
    lines = [turn_head(turn) for turn in turns[-LINES:]]
    return [f"{left_out} earlier turns", *lines] if left_out > 0 else lines

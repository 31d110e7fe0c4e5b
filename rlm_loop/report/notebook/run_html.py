"""How a run looks to a reader: a turn as plain text, an outcome as HTML.  Strings from values, nothing else."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from html import escape
from typing import TYPE_CHECKING, Any

from rlm_loop.accounting.amounts import counted, number
from rlm_loop.actions import Action, Answer, CallTool, Display, Malformed, Observation, RunCode
from rlm_loop.messages import Reply
from rlm_loop.traces.received import shown
from rlm_loop.traces.redact import redact

if TYPE_CHECKING:
    from rlm_loop.outcome import Outcome, Turn

#: Characters of one text that are shown; the whole text is in the turn and in the trace.
SHOWN = 4_000

# Colours are translucent and the text colour is inherited, so that light and dark notebook themes both work.
BOX = "border:1px solid rgba(128,128,128,.35);border-radius:6px;padding:.5em .8em;margin:.3em 0"
PRE = (
    "margin:.25em 0;padding:.4em .6em;white-space:pre-wrap;overflow-wrap:anywhere;text-align:left;"
    "background:rgba(128,128,128,.12);border-radius:4px;font-size:.9em"
)
_CELL = "text-align:left;padding:.1em .8em .1em 0;border:0"
_IMAGE = '<img src="data:{mime};base64,{data}" style="max-width:100%;background:white">'
#: Else a picture in a cell's table would tell its server who reads the page, and when.
_POLICY = (
    '<meta http-equiv="Content-Security-Policy" '
    "content=\"default-src 'none'; img-src data:; style-src 'unsafe-inline'; form-action 'none'\">"
)
_FRAME = "width:100%;height:16em;resize:vertical;border:0;background:white"
GREEN, AMBER, RED = "rgba(46,160,67,.25)", "rgba(210,153,34,.3)", "rgba(218,54,51,.25)"


def clipped(text: str, limit: int = SHOWN) -> str:
    """Head and tail of a long text without secrets, with the number of characters left out.

    What is shown is kept: in a notebook, a log, a page.
    """
    text = redact(text)
    if len(text) <= limit:
        return text
    head = limit * 2 // 3
    tail = limit - head
    return f"{text[:head]}\n... {len(text) - limit:,} characters left out ...\n{text[-tail:]}"


def replied(reply: Reply) -> str:
    """What a reply cost, and what its request was to have and had not (see `models.adapting`)."""
    left = ", ".join(reply.extra.get("not_applied") or ())
    return counted(reply.usage) + (f"; not applied: {left}" if left else "")


def asked(action: Action) -> tuple[str, str]:
    """What an action asked for: a label and the text to show under it."""
    match action:
        case RunCode():
            return "code", action.code.rstrip("\n")
        case CallTool():
            return f"call {action.name}", _pretty(action.arguments)
        case Answer():
            return "answer", action.value if isinstance(action.value, str) else shown(action.value)
        case Malformed():
            return "not readable", action.reason


def observed(observation: Observation) -> tuple[str, str]:
    """What an action led to: a label and the text to show under it (empty text: nothing to show)."""
    if observation.failure is not None:
        text = observation.text or observation.failure.message
        return f"failed: {observation.failure.kind}", text
    if observation.answer is not None and not observation.text:
        return "answer", shown(observation.answer.value)
    return ("output" if observation.cause == "repl_output" else "result"), observation.text


def prose(turn: Turn) -> str:
    """What the model wrote around the code, calls and answers that are shown on their own."""
    text = turn.reply.text
    for action in turn.actions:
        if isinstance(action, RunCode) and action.code.strip():
            text = _without_block(text, action.code)
        elif isinstance(action, Answer) and isinstance(action.value, str) and text.strip().endswith(action.value):
            text = text.strip().removesuffix(action.value)
    return text.strip()


def step_text(turn: Turn) -> str:
    """One turn as plain text: what the model wrote, what it asked for, what came of it, what it cost."""
    lines = [f"-- turn {turn.index}: {replied(turn.reply)}, {turn.seconds:.1f} s"]
    if written := prose(turn):
        lines.append(clipped(written))
    for action, observation in zip(turn.actions, turn.observations, strict=True):
        for label, text in _shown(action, observation):
            lines.append(f"[{label}]")
            lines += ["    " + line for line in clipped(text).splitlines()]
        lines += [f"[display {display.mime}]" for display in observation.displays]
    return "\n".join(lines)


def compaction_line(event: Mapping[str, Any]) -> str:
    """A `compaction` event of a trace in one line."""
    tokens = f"{number(event['tokens_before'])} -> {number(event['tokens'])} tokens, " if event["tokens"] else ""
    done = [
        f"{what} {', '.join(map(str, event[field]))}"
        for field, what in (("left_out", "left out turns"), ("shortened", "shortened turns"))
        if event[field]
    ]
    why = f" ({event['fallback']})" if event["fallback"] else ""
    over = ", still over the limit" if event["over"] else ""
    return f"history: {event['policy']}{why}, {tokens}{'; '.join(done) or 'nothing to leave out'}{over}"


def shown_answer(outcome: Outcome) -> str:
    """The answer for a reader; of a run that has none, that."""
    if outcome.answer is None and not outcome.answered:
        return "no answer"
    return outcome.answer if isinstance(outcome.answer, str) else shown(outcome.answer)


def outcome_html(outcome: Outcome) -> str:
    """An outcome for a notebook: the answer, why the run ended, what it cost, every turn, tokens by cause.

    Whatever a model or a tool wrote is escaped.
    """
    colour = GREEN if outcome.answered else AMBER
    answer = shown_answer(outcome)
    facts = [
        outcome.agent,
        outcome.model,
        f"{outcome.steps} turn{'' if outcome.steps == 1 else 's'}",
        counted(outcome.usage),
        f"{outcome.seconds:.1f} s",
    ]
    parts = [
        f'<div class="rlm-loop-outcome" style="{BOX}">',
        f"<div>{badge(str(outcome.stop), colour)} {escape(clipped(outcome.reason))}</div>",
        f'<div style="opacity:.8">{escape(clipped(outcome.question))}</div>' if outcome.question else "",
        f'<pre style="{PRE};font-size:1em"><b>{escape(clipped(answer))}</b></pre>',
        f'<div style="opacity:.75;font-size:.9em">{escape(" · ".join(f for f in facts if f))}</div>',
        *(turn_html(turn) for turn in outcome.turns),
        causes_html(outcome.ledger.by_cause(), outcome.ledger.counting),
        f'<div style="opacity:.6;font-size:.85em">trace: {escape(outcome.trace)}</div>' if outcome.trace else "",
        "</div>",
    ]
    return "".join(parts)


def turn_head(turn: Turn) -> str:
    """A turn in one line: what it asked for, its tokens and its time."""
    labels = ", ".join(dict.fromkeys(asked(a)[0] for a in turn.actions))
    return f"turn {turn.index}: {labels} · {replied(turn.reply)} · {turn.seconds:.1f} s"


def turn_html(turn: Turn, *, opened: bool = False) -> str:
    """One turn as a row that opens; `opened` is whether it is open at first."""
    failed = any(o.failure is not None for o in turn.observations)
    mark = f" {badge('failed', RED)}" if failed else ""
    head = turn_head(turn)
    body: list[str] = []
    if written := prose(turn):
        body.append(f'<div style="white-space:pre-wrap;margin:.3em 0">{escape(clipped(written))}</div>')
    for action, observation in zip(turn.actions, turn.observations, strict=True):
        for label, text in _shown(action, observation):
            body.append(f'<div style="opacity:.65;font-size:.85em">{escape(label)}</div>')
            body.append(f'<pre style="{PRE}"><code>{escape(clipped(text.rstrip()))}</code></pre>')
        body += [_display_html(display) for display in observation.displays]
    return (
        f'<details{" open" if opened else ""} style="margin:.25em 0">'
        f'<summary style="cursor:pointer">{escape(head)}{mark}</summary>'
        f'<div style="margin-left:1.2em">{"".join(body)}</div></details>'
    )


def _display_html(display: Display) -> str:
    """A picture or table of a cell.  HTML gets a frame of its own, in which no script runs and nothing is fetched."""
    if display.mime in ("image/png", "image/jpeg"):
        return _IMAGE.format(mime=display.mime, data=escape(display.data))
    display = Display(display.mime, redact(display.data))
    match display.mime:
        case "image/svg+xml":  # as an image, so that its scripts do not run
            return _IMAGE.format(mime=display.mime, data=base64.b64encode(display.data.encode()).decode())
        case "text/html":
            return f'<iframe sandbox srcdoc="{escape(_POLICY + display.data)}" style="{_FRAME}"></iframe>'
        case _:
            return f'<pre style="{PRE}">{escape(clipped(display.data))}</pre>'


def by_cause_title(counting: str) -> str:
    """What heads input tokens by cause: how they were counted (`Ledger.counting`) always stands with them."""
    return f"input tokens by cause ({counting or 'how they were counted is not known'})"


def causes_html(by_cause: Mapping[str, int], counting: str, *, opened: bool = False) -> str:
    """Input tokens by cause as a table with bars, in a row that opens; empty where there are none yet."""
    total = sum(by_cause.values())
    if not total:
        return ""
    rows = "".join(
        f'<tr><td style="{_CELL}">{escape(cause)}</td><td style="{_CELL};text-align:right">{tokens:,}</td>'
        f'<td style="{_CELL};width:12em"><div style="background:rgba(31,119,180,.6);height:.7em;'
        f'width:{100 * tokens / total:.1f}%"></div></td></tr>'
        for cause, tokens in sorted(by_cause.items(), key=lambda item: -item[1])
    )
    return (
        f'<details{" open" if opened else ""} style="margin:.25em 0">'
        f'<summary style="cursor:pointer">{by_cause_title(counting)}</summary>'
        f'<table style="margin-left:1.2em;border-collapse:collapse"><tbody>{rows}</tbody></table></details>'
    )


def _shown(action: Action, observation: Observation) -> Iterator[tuple[str, str]]:
    label, text = asked(action)
    yield label, text
    after, seen = observed(observation)
    if seen and not (isinstance(action, (Answer, Malformed)) and seen in (text, repr(text))):
        yield after, seen
    if observation.answer is not None and not isinstance(action, Answer) and after != "answer":
        yield "answer", shown(observation.answer.value)


def badge(text: str, colour: str) -> str:
    """A word on a colour."""
    return f'<span style="background:{colour};border-radius:4px;padding:.05em .5em">{escape(text)}</span>'


def _pretty(arguments: str) -> str:
    """Arguments as `name=value` lines where they are a JSON object, else as they were written."""
    try:
        value: Any = json.loads(arguments or "{}")
    except ValueError:
        return arguments
    if not isinstance(value, dict):
        return arguments
    return "\n".join(_argument(str(name), item) for name, item in value.items())


def _argument(name: str, value: Any) -> str:
    if isinstance(value, str) and "\n" in value:
        return f"{name}=\n{value}"
    return f"{name}={json.dumps(value, ensure_ascii=False)}"


def _without_block(text: str, code: str) -> str:
    """The text without the fenced block that holds this code, if it is there word for word."""
    lines, wanted = text.splitlines(), [line.strip() for line in code.strip().splitlines()]
    for start in range(len(lines) - len(wanted) + 1):
        if [line.strip() for line in lines[start : start + len(wanted)]] != wanted:
            continue
        before, after = lines[:start], lines[start + len(wanted) :]
        while before and not before[-1].strip():
            before.pop()
        while after and not after[0].strip():
            after.pop(0)
        if before and _fence(before[-1]):
            before.pop()
        if after and _fence(after[0]):
            after.pop(0)
        return "\n".join([*before, *after])
    return text


def _fence(line: str) -> bool:
    return line.lstrip().startswith(("```", "~~~"))

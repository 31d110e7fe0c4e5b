"""A run in plain words: actions, results, turns and ends as text, for terminals, logs and pages.

Text that is shown is kept (in a notebook, a log, a page), so secrets are taken out of it (`clipped`, `visible`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rlm_loop.actions import Action, Answer, CallTool, Malformed, Observation, RunCode
from rlm_loop.messages import Reply, Usage
from rlm_loop.traces.received import shown
from rlm_loop.traces.redact import redact

if TYPE_CHECKING:
    from rlm_loop.outcome import Outcome, Turn

#: Characters of one text that are shown; the whole text is in the turn and in the trace.
SHOWN = 4_000
#: Control characters but tab and newline, and those that change the order in which others are shown.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_NO_MODULE = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")


def clipped(text: str, limit: int = SHOWN) -> str:
    """Head and tail of a long text without secrets, with the number of characters left out."""
    text = redact(text)
    if len(text) <= limit:
        return text
    head = limit * 2 // 3
    tail = limit - head
    return f"{text[:head]}\n... {len(text) - limit:,} characters left out ...\n{text[-tail:]}"


def visible(text: str) -> str:
    """Text without secrets that cannot steer the terminal, see `harmless`."""
    return harmless(redact(text))


def harmless(text: str) -> str:
    """Text that steers no terminal: control characters but tab and newline, and bidirectional ones, are visible."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n"))


def value_text(value: object) -> str:
    """A text as it is, any other value as Python writes it."""
    return value if isinstance(value, str) else shown(value)


def counted(usage: Usage | None) -> str:
    """Tokens of a call or of a run in a few words; an unknown figure is `?`."""
    if usage is None:
        return "tokens not reported"
    cached = _of(cached=usage.cache_read_tokens, written=usage.cache_write_tokens)
    thought = _of(thought=usage.reasoning_tokens)
    cost = f", ${usage.cost:.4f}" if usage.cost else ""
    return f"{number(usage.input_tokens)} tokens in{cached}, {number(usage.output_tokens)} out{thought}{cost}"


def _of(**parts: int | None) -> str:
    text = ", ".join(f"{tokens:,} {name}" for name, tokens in parts.items() if tokens)
    return f" ({text})" if text else ""


def number(value: int | None) -> str:
    """A figure, `?` where it is not known."""
    return "?" if value is None else f"{value:,}"


def plural(count: int, noun: str) -> str:
    """A count with its noun, such as "1 turn" or "2 turns"."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def reply_cost(reply: Reply) -> str:
    """Say what a reply cost, and which settings of its request were not applied (see `models.remote`)."""
    missing = ", ".join(reply.extra.get("not_applied") or ())
    return counted(reply.usage) + (f"; not applied: {missing}" if missing else "")


def action_text(action: Action) -> tuple[str, str]:
    """Return what an action asked for: a label and the text to show under it."""
    match action:
        case RunCode():
            return "code", action.code.rstrip("\n")
        case CallTool():
            stated = [f"{name}: {value}" for name, value in action.intent.items()]
            return f"call {action.name}", "\n".join([_arguments(action.arguments), *stated])
        case Answer():
            return "answer", value_text(action.value)
        case Malformed():
            return "not readable", action.reason


def observation_text(observation: Observation) -> tuple[str, str]:
    """Return what an action led to: a label and the text to show under it (empty text: nothing to show)."""
    if observation.failure is not None:
        return f"failed: {observation.failure.kind}", observation.text or observation.failure.message
    if observation.answer is not None and not observation.text:
        return "answer", shown(observation.answer.value)
    return ("output" if observation.cause == "repl_output" else "result"), observation.text


def labelled(action: Action, observation: Observation) -> Iterator[tuple[str, str]]:
    """The action and what came of it: labels and texts, each text once."""
    label, text = action_text(action)
    yield label, text
    after, seen = observation_text(observation)
    if seen and not (isinstance(action, (Answer, Malformed)) and seen in (text, repr(text))):
        yield after, seen
    if observation.answer is not None and not isinstance(action, Answer) and after != "answer":
        yield "answer", shown(observation.answer.value)


def prose(turn: Turn) -> list[str]:
    """The model's words before each action and after the last one, without the code and answers themselves."""
    rest, words = turn.reply.text, list[str]()
    for action in turn.actions:
        before, rest = rest, ""  # all of it stands before an action that is not in the text
        if isinstance(action, RunCode) and action.code.strip():
            before, rest = _around_block(before, action.code)
        elif isinstance(action, CallTool):
            before = before.strip().removesuffix(action.arguments)
        elif isinstance(action, Answer) and isinstance(action.value, str):
            before = before.strip().removesuffix(action.value)
        words.append(before.strip())
    return [*words, rest.strip()]


def turn_head(turn: Turn) -> str:
    """A turn in one line: what it asked for, its tokens and its time."""
    labels = ", ".join(dict.fromkeys(action_text(a)[0] for a in turn.actions))
    return f"turn {turn.index}: {labels} · {reply_cost(turn.reply)} · {turn.seconds:.1f} s"


def step_text(turn: Turn) -> str:
    """Return a turn as plain text: what the model wrote, what it asked for, what came of it, what it cost."""
    lines = [f"-- turn {turn.index}: {reply_cost(turn.reply)}, {turn.seconds:.1f} s"]
    *before, after = prose(turn)
    for words, action, observation in zip(before, turn.actions, turn.observations, strict=True):
        lines += [clipped(words)] if words else []
        for label, text in labelled(action, observation):
            lines.append(f"[{label}]")
            lines += ["    " + line for line in clipped(text).splitlines()]
        lines += [f"[display {display.mime}]" for display in observation.displays]
    return "\n".join([*lines, *([clipped(after)] if after else [])])


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


def answer_text(outcome: Outcome) -> str:
    """The answer for a reader; "no answer" where the run gave none."""
    return "no answer" if outcome.answer is None and not outcome.answered else value_text(outcome.answer)


def ending(outcome: Outcome) -> str:
    """Say why the run ended; where it gave no answer, with the packages that its cells could not import."""
    said = "" if outcome.answered else "\n".join(o.text for t in outcome.turns for o in t.observations)
    missing = dict.fromkeys(name.partition(".")[0] for name in _NO_MODULE.findall(said))
    packages = f"missing in its cells: {', '.join(missing)} (pip install {' '.join(missing)})" if missing else ""
    return "; ".join(filter(None, [outcome.reason, packages]))


def closing_line(outcome: Outcome) -> str:
    """Say why the run ended and what it cost, in one line."""
    why = ending(outcome)
    reason = f" ({redact(why)})" if why else ""
    turns = plural(outcome.steps, "turn")
    return f"{outcome.stop}{reason}: {turns}, {counted(outcome.usage)}, {outcome.seconds:.1f} s"


def causes_title(counting: str) -> str:
    """The heading of input tokens by cause; it always says how they were counted (`Ledger.counting`)."""
    return f"input tokens by cause ({counting or 'how they were counted is not known'})"


def most_first(by_cause: Mapping[str, int]) -> list[tuple[str, int]]:
    """Causes with their tokens, the most first; empty where no token has a cause yet."""
    return sorted(by_cause.items(), key=lambda item: -item[1]) if sum(by_cause.values()) else []


def causes_line(by_cause: Mapping[str, int], counting: str) -> str:
    """Input tokens by cause in one line; empty where there are none."""
    parts = [f"{cause} {tokens:,}" for cause, tokens in most_first(by_cause)]
    return visible(f"{causes_title(counting)}: {', '.join(parts)}") if parts else ""


def _arguments(arguments: str) -> str:
    """Arguments as `name=value` lines where they are a JSON object, else as they were written."""
    try:
        value: Any = json.loads(arguments or "{}")
    except ValueError:
        return arguments
    if not isinstance(value, dict):
        return arguments
    return "\n".join(
        f"{name}=\n{item}"
        if isinstance(item, str) and "\n" in item
        else f"{name}={json.dumps(item, ensure_ascii=False)}"
        for name, item in value.items()
    )


def _around_block(text: str, code: str) -> tuple[str, str]:
    """The text before and after the fenced block that holds this code, if it is there word for word."""
    lines, wanted = text.splitlines(), [line.strip() for line in code.strip().splitlines()]
    for start in range(len(lines) - len(wanted) + 1):
        if [line.strip() for line in lines[start : start + len(wanted)]] == wanted:
            before, after = "\n".join(lines[:start]).rstrip(), "\n".join(lines[start + len(wanted) :]).lstrip()
            (head, _, opening), (closing, _, tail) = before.rpartition("\n"), after.partition("\n")
            return head if _fence(opening) else before, tail if _fence(closing) else after
    return text, ""


def _fence(line: str) -> bool:
    return line.lstrip().startswith(("```", "~~~"))

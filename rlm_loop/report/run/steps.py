"""The steps of a run as HTML: what the model was told, what it wrote, what it asked for and what came of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rlm_loop.accounting.amounts import counted
from rlm_loop.accounting.tree.nodes import ROOT
from rlm_loop.actions import Action, Answer, CallTool, Malformed, Observation, RunCode
from rlm_loop.outcome import Turn
from rlm_loop.report.notebook.formatting import action_text, compaction_line, observation_text, prose
from rlm_loop.report.run.chart import OUTPUT, stacked
from rlm_loop.report.run.marked import brief, is_patch, patch, plain_text, python_code, safe
from rlm_loop.report.run.reading import UNREADABLE
from rlm_loop.report.run.subcalls import call_list
from rlm_loop.report.run.view import Event, RunView, spans_of

#: Turns up to which all steps of a run are open at first.
OPEN = 30
#: Events of a run from which tokens by cause are told in plain words: elements are what a long page takes time for.
LONG = 2_000
#: What a step itself shows; other text that is added to a prompt is shown as such.
_OWN = frozenset({"assistant", "repl_output", "tool_result", "error"})
#: How lines of a cell begin that do not tell what it is about.
_DULL = ("#", "@", "import ", "from ", '"', "try:", "with ", "global ")
#: Names of changed files that are shown of one action.
_FILES = 40


@dataclass
class Steps:
    """Writes the steps of one run.

    `shades` are the CSS classes of causes, `told` the steps written so far, `named` their ids.
    """

    view: RunView
    shades: Mapping[str, str]
    told: set[tuple[str, int]] = field(default_factory=set[tuple[str, int]])
    named: set[str] = field(default_factory=set[str])

    def of(self, node: str = ROOT) -> str:
        """All steps of a node as list items, with what happened in between."""
        main = node == ROOT
        opened = main and sum(e["event"] == "turn" for e in self.view.by_node.get(ROOT, ())) <= OPEN
        return self._brief(node) + "".join(self._items(node, main, opened)) + self._others(node, main)

    def _items(self, node: str, main: bool, opened: bool) -> Iterator[str]:
        for kind, event, turn in self.view.flow(node):
            who = str(event.get("node", ROOT)) if main else node
            match kind:
                case "turn" | "reply":
                    try:
                        if turn is None:
                            raise ValueError("a turn that cannot be read")
                        yield self._step(who, turn, main=main, opened=opened, finished=kind == "turn")
                    except UNREADABLE:
                        yield _between("bad", "A turn of an unknown form", _raw(event, self.view.limit))
                case "compaction":
                    yield _between("note", "Compaction", safe(_compaction(event)))
                case "model_error":
                    yield _between("bad", "Error of the model", plain_text(str(event.get("error", "")), 4_000))
                case "attempt_start":
                    agent = f" by {event['agent']}" if event.get("agent") else ""
                    yield _between("attempt", f"Attempt {who}{agent}", "", self.view.prefix.node(who))
                case "attempt_end":
                    yield _between("ok" if event.get("ok") else "bad", f"Attempt {who} ended", _ending(event))
                case _:
                    pass

    # -- one step

    def _step(self, node: str, turn: Turn, *, main: bool, opened: bool, finished: bool) -> str:
        limit = self.view.limit
        failures = [o.failure.kind for o in turn.observations if o.failure is not None]
        body = [self._added(node, turn.index)]
        if written := prose(turn):
            body.append(_block("The model wrote", plain_text(written, limit), "prose"))
        for action, seen in zip(turn.actions, turn.observations, strict=True):
            body.append(self._action(action, seen))
        if not finished:
            body.append('<p class="warn">The trace holds no end of this turn: the run stopped here.</p>')
        if (node, turn.index) not in self.told:
            body.append(call_list(self.view, node, turn.index, self.of))
        body.append(self._patch(node, turn.index))
        body.append(self._tokens(node, turn))
        reply = turn.reply
        marks = "".join(f'<span class="mark bad">{safe(kind)}</span>' for kind in dict.fromkeys(failures))
        if reply.cut_off:
            marks += '<span class="mark warn">cut off</span>'
        if turn.answer is not None:
            marks += '<span class="mark ok">answer</span>'
        if not finished:
            marks += '<span class="mark warn">unfinished</span>'
        step = self.view.prefix.step(node, turn.index, main)
        ident = "" if step in self.named else f' id="{step}"'  # twice only in a trace that was edited by hand
        self.told.add((node, turn.index))
        self.named.add(step)
        return (
            f'<li class="step{" failed" if failures else ""}"{ident}><details{" open" if opened else ""}>'
            f'<summary><span class="no" title="turn {turn.index}">{turn.index}</span>'
            f'<span class="gist">{_gist(turn)}</span>{marks}'
            f'<span class="cost">{_cost(turn)}</span></summary>'
            f'<div class="body">{"".join(body)}</div></details></li>'
        )

    def _others(self, node: str, main: bool) -> str:
        """Sub-calls whose turn is not in the trace: it was never finished, or is lost."""
        asking = {node, *self.view.attempts} if main else {node}
        lost = [key for key in self.view.asked_in if key[0] in asking and key not in self.told]
        lists = "".join(call_list(self.view, *key, self.of) for key in lost)
        return (
            f'<li class="between note"><b>Sub-calls of turns that are not in the trace</b>{lists}</li>' if lists else ""
        )

    def _action(self, action: Action, seen: Observation) -> str:
        limit = self.view.limit
        _, text = action_text(action)
        parts: list[str] = []
        match action:
            case RunCode():
                parts.append(_block("Code", python_code(text, limit), "code"))
            case CallTool():
                parts.append(_block(f"Call of <b>{safe(action.name)}</b>", plain_text(text, limit), "code"))
            case Answer():
                parts.append(_block("Answer", plain_text(text, limit), "answer"))
            case Malformed():
                parts.append(_block("Not readable", plain_text(text, limit), "error"))
        if action.notes:
            parts.append(f'<p class="small">Noticed when reading: {safe("; ".join(map(str, action.notes)))}</p>')
        what, came = observation_text(seen)
        if came and not (isinstance(action, (Answer, Malformed)) and came in (text, repr(text))):
            kind = "error" if seen.failure is not None else "output"
            head = what.capitalize() + (f" · {seen.seconds:.1f} s" if seen.seconds >= 0.05 else "")
            parts.append(_block(safe(head), plain_text(came.rstrip("\n"), limit), kind))
        elif not came and not isinstance(action, (Answer, Malformed)):
            parts.append('<p class="small">No output.</p>')
        if seen.full:
            whole = plain_text(seen.full, limit)
            parts.append(
                _folded(f"Before it was clipped for the model: {len(seen.full):,} characters", f"<pre>{whole}</pre>")
            )
        if seen.answer is not None and not isinstance(action, Answer) and what != "answer":
            parts.append(_block("Answer", plain_text(_value(seen.answer.value), limit), "answer"))
        if seen.pending is not None:
            parts.append(_block("Answer, pending", plain_text(_value(seen.pending.value), limit), "answer"))
        return "".join(parts) + _effects(seen.effects)

    def _added(self, node: str, turn: int) -> str:
        """What the request of this turn had added besides replies and results: nudges, reminders, summaries."""
        request = self.view.requests.get((node, turn))
        if request is None or request.get("base") is None:
            return ""
        parts: list[str] = []
        for key in request.get("added") or ():
            for span in spans_of(self.view.bodies.get(str(key))):
                if span[1] not in _OWN and span[0].strip():
                    parts.append(self._span(*span))
        return f'<div class="added"><h4>Added to the prompt</h4>{"".join(parts)}</div>' if parts else ""

    def _span(self, text: str, cause: str) -> str:
        shade = self.shades.get(cause, "c-other")
        return (
            f'<div class="span {shade}"><span class="cause">{safe(cause)}</span>'
            f"<pre>{plain_text(text.strip(chr(10)), self.view.limit)}</pre></div>"
        )

    def _brief(self, node: str) -> str:
        """What the model was told before its first turn, each stretch with its cause."""
        request = self.view.first_requests.get(node)
        if request is None:
            return ""
        parts: list[str] = []
        for key in request.get("added") or ():
            body = self.view.bodies.get(str(key))
            role = safe((body or {}).get("role", "?"))
            spans = "".join(self._span(*span) for span in spans_of(body))
            parts.append(f"<h4>{role}</h4>{spans or '<p class=small>This message is not in the trace.</p>'}")
        tools = self.view.settings.get(str(request.get("settings")), {}).get("tools") or ()
        if tools:
            names = ", ".join(_tool_name(t) for t in tools)
            schemas = plain_text(json.dumps(tools, indent=1, ensure_ascii=False), self.view.limit)
            parts.append(_folded(f"Tool schemas: {safe(brief(names, 120))}", f"<pre>{schemas}</pre>"))
        return (
            f'<li class="step first"><details><summary><span class="no" aria-hidden="true">0</span>'
            f'<span class="gist">What the model was told first</span></summary>'
            f'<div class="body">{"".join(parts)}</div></details></li>'
        )

    def _patch(self, node: str, turn: int) -> str:
        """The state of the workspace after this turn, as a patch against its start."""
        last = self.view.trees.get((node, turn))
        if last is None:
            return ""
        text = self.view.texts.get(str(last.get("patch")))
        if text is None:
            size = last.get("characters")
            said = f" of {size:,} characters" if isinstance(size, int) else ""
            return f'<p class="small">The patch{said} is not in the trace.</p>'
        shown = f'<pre class="diff">{patch(text, self.view.limit)}</pre>' if text else "<p>No change is left.</p>"
        return _folded(f"Workspace after this turn, against its start{_changed(text)}", shown)

    def _tokens(self, node: str, turn: Turn) -> str:
        """The turn's tokens by cause, in words."""
        sums: dict[str, int] = {}
        calls = self.view.spent_in.get((node, turn.index), ())
        for one in calls:
            for cause, tokens in one.causes.items():
                sums[cause] = sums.get(cause, 0) + tokens
            if one.usage.output_tokens:
                sums[OUTPUT] = sums.get(OUTPUT, 0) + one.usage.output_tokens
        if not sums:
            return ""
        if len(self.view.by_node.get(ROOT, ())) > LONG:
            told = " · ".join(f"{safe(n)} {t:,}" for n, t in sorted(sums.items(), key=lambda i: stacked(i[0])) if t)
            return f'<p class="small">Tokens: {told}</p>'
        items = "".join(
            f'<li><span class="swatch {self.shades.get(name, "c-other")}"></span>{safe(name)} <b>{tokens:,}</b></li>'
            for name, tokens in sorted(sums.items(), key=lambda item: stacked(item[0]))
            if tokens
        )
        said: list[str] = []
        known = [one.sent for one in calls if one.sent is not None]
        if len(known) == len(calls) and sum(known):
            said.append(f"{sum(known):,} of the input sent before")
        if turn.reply.usage is not None and turn.reply.usage.cache_read_tokens:
            said.append(f"{turn.reply.usage.cache_read_tokens:,} from the provider's cache")
        if not all(one.exact for one in calls):
            said.append("shared out by length")
        more = f"<li>{', '.join(said)}</li>" if said else ""
        return f'<ul class="legend small" aria-label="tokens by cause">{items}{more}</ul>'


# -- pieces


def _block(label: str, inner: str, kind: str) -> str:
    return f'<div class="block {kind}"><h4>{label}</h4><pre>{inner}</pre></div>'


def _folded(label: str, inner: str) -> str:
    return f'<details class="more"><summary>{label}</summary>{inner}</details>'


def _between(kind: str, label: str, inner: str, ident: str = "") -> str:
    """Something that is no step, in the flow of steps."""
    where = f' id="{ident}"' if ident else ""
    return f'<li class="between {kind}"{where}><b>{safe(label)}</b> {inner}</li>'


def tried(make: Callable[[], str]) -> str:
    """A part of the page, or a line in its place where the trace has a form that it cannot be made of."""
    try:
        return make()
    except UNREADABLE:
        return '<p class="warn">This part cannot be shown: the trace has an unknown form here.</p>'


def _raw(value: Any, limit: int) -> str:
    return f"<pre>{plain_text(json.dumps(value, indent=1, ensure_ascii=False), limit)}</pre>"


def raw_events(events: Any, limit: int) -> str:
    """Events of an unknown shape, as JSON."""
    return "".join(_raw(event, limit) for event in events)


def _value(value: Any) -> str:
    return value if isinstance(value, str) else repr(value)


def value_block(label: str, value: Any, limit: int, kind: str = "answer") -> str:
    """A value under a label: a text as it is, a patch coloured, anything else as Python writes it."""
    text = _value(value)
    if is_patch(text):
        return f'<div class="block {kind}"><h4>{label}</h4><pre class="diff">{patch(text, limit)}</pre></div>'
    return _block(label, plain_text(text, limit), kind)


def _gist(turn: Turn) -> str:
    """The line that tells what a turn was about."""
    if not turn.actions:
        return safe(brief(turn.reply.text)) or "no text"
    action = turn.actions[0]
    match action:
        case RunCode():
            lines = [line.strip() for line in action.code.splitlines() if line.strip()]
            told = [line for line in lines if not line.startswith(_DULL)] or lines
            text = f"<code>{safe(brief(told[0]))}</code>" if told else "an empty cell"
        case CallTool():
            text = f"<code><b>{safe(action.name)}</b> {safe(brief(action.arguments, 70))}</code>"
        case Answer():
            text = safe(brief(_value(action.value)))
        case Malformed():
            text = safe(brief(action.reason))
    more = len(turn.actions) - 1
    return text + (f' <small class="more-actions">and {more} more</small>' if more else "")


def _cost(turn: Turn) -> str:
    used = turn.reply.usage
    tokens = counted(used) if used is None else f"{_known(used.input_tokens)} in · {_known(used.output_tokens)} out"
    return f"{safe(tokens)}{f' · {turn.seconds:.1f} s' if turn.seconds else ''}"


def _known(tokens: Any) -> str:
    return f"{tokens:,}" if isinstance(tokens, int) else "?"


def _tool_name(tool: Any) -> str:
    try:
        return str(tool.get("function", tool)["name"])
    except UNREADABLE:
        return "?"


def _compaction(event: Event) -> str:
    try:
        return compaction_line(event)
    except UNREADABLE:
        return json.dumps(event, ensure_ascii=False)


def _ending(event: Event) -> str:
    error, parts = event.get("error"), list[str]()
    if isinstance(error, dict):
        known: dict[str, Any] = error
        parts.append(str(known.get("message", "")))
    if event.get("stop"):
        parts.append(str(event["stop"]))
    if isinstance(event.get("seconds"), (int, float)):
        parts.append(f"{event['seconds']:.1f} s")
    feedback = event.get("feedback")
    shown = f"<pre>{plain_text(str(feedback), 4_000)}</pre>" if feedback else ""
    return safe(" · ".join(p for p in parts if p)) + shown


def _changed(text: str) -> str:
    added = sum(line.startswith("+") and not line.startswith("+++") for line in text.split("\n"))
    removed = sum(line.startswith("-") and not line.startswith("---") for line in text.split("\n"))
    return f' <span class="plus">+{added}</span> <span class="minus">−{removed}</span>' if added or removed else ""


def _effects(effects: Mapping[str, Any]) -> str:
    """The files that an action changed."""
    if not effects:
        return ""
    if effects.get("unknown"):
        return f'<p class="small warn">What changed in the workspace is not known: {safe(effects["unknown"])}</p>'
    items: list[str] = []
    for kind, sign in (("added", "+"), ("changed", "~"), ("removed", "−")):
        for name in effects.get(kind) or ():
            items.append(f'<li class="{kind}"><b title="{kind}">{sign}</b> {safe(name)}</li>')
    left = max(0, len(items) - _FILES) + int(effects.get("left_out") or 0)
    more = f"<li>and {left:,} more</li>" if left else ""
    shown = "".join(items[:_FILES]) + more
    return f'<div class="effects"><h4>Changed files</h4><ul>{shown}</ul></div>' if shown else ""

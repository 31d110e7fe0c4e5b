"""The steps of a run as HTML: what the model was told, what it wrote, what it asked for and what came of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup

from rlm_loop.accounting.tree import ROOT, Node
from rlm_loop.actions import Action, Answer, CallTool, Malformed, Observation, RunCode
from rlm_loop.outcome import Turn
from rlm_loop.report.call_tree import FOLD, head, status
from rlm_loop.report.figures.style import cause_place
from rlm_loop.report.notebook.formatting import (
    action_text,
    compaction_line,
    counted,
    labelled,
    number,
    plural,
    prose,
    value_text,
)
from rlm_loop.report.run.marked import brief, is_patch, parts, patch, plain_text, python_code
from rlm_loop.report.run.view import OUTPUT, Event, RunView, by_cause, mapping, spans_of

#: Turns up to which all steps of a run are open at first.
OPEN = 30
#: Causes whose text a step shows anyway; text of other causes is shown as added to the prompt.
_OWN = frozenset({"assistant", "repl_output", "tool_result", "error"})
#: Beginnings of lines that do not say what a cell is about.
_DULL = ("#", "@", "import ", "from ", '"', "try:", "with ", "global ")
#: Names of changed files that are shown of one action.
_FILES = 40


@dataclass
class Steps:
    """Writes the steps of one run; `shades` are the CSS classes of causes, `told` the steps written so far."""

    view: RunView
    shades: Mapping[str, str]
    told: set[tuple[str, int]] = field(default_factory=set[tuple[str, int]])

    def of(self, node: str = ROOT) -> Markup:
        """All steps of a node as list items, with what happened in between."""
        items = [self._item(node, *told) for told in self.view.flow(node)]
        return Markup("").join([self._first(node), *items, self._others(node)])

    def _item(self, node: str, kind: str, event: Event, turn: Turn | None) -> str:
        """A step, or what happened in between."""
        if turn is not None:
            return self._step(node, turn, finished=kind == "turn")
        if kind == "compaction":
            return parts().between("note", "Compaction", compaction_line(event))
        return parts().between("bad", "Error of the model", plain_text(str(event.get("error", "")), 4_000))

    # -- one step

    def _step(self, node: str, turn: Turn, *, finished: bool) -> str:
        body = [self._added(node, turn.index)]
        *before, after = prose(turn)
        for words, action, seen in zip(before, turn.actions, turn.observations, strict=True):
            body += [self._words(words), *self._action(action, seen)]
        body.append(self._words(after))
        if not finished:
            body.append(parts().unfinished())
        ident = ""  # a damaged trace can have two steps of one name: an id is there once
        if (node, turn.index) not in self.told:
            ident = f"{self.view.prefix}{'' if node == ROOT else f'n{node}.'}t{turn.index}"
            self.told.add((node, turn.index))
            body.append(call_list(self.view, node, turn.index, self.of))
        body += [self._patch(node, turn.index), self._tokens(node, turn)]
        failures = dict.fromkeys(o.failure.kind for o in turn.observations if o.failure is not None)
        marks = [("bad", str(kind)) for kind in failures]
        if turn.reply.cut_off:
            marks.append(("warn", "cut off"))
        if turn.answer is not None:
            marks.append(("ok", "answer"))
        if not finished:
            marks.append(("warn", "unfinished"))
        opened = node == ROOT and self.view.turns <= OPEN
        return parts().step(ident, turn.index, _gist(turn), marks, _cost(turn), body, bool(failures), opened)

    def _words(self, text: str) -> str:
        return parts().block("The model wrote", plain_text(text), "prose") if text else Markup("")

    def _others(self, node: str) -> str:
        """Sub-calls whose turn is not in the trace: it was never finished, or is lost."""
        lost = [key for key in self.view.asked_in if key[0] == node and key not in self.told]
        lists = Markup("").join(call_list(self.view, *key, self.of) for key in lost)
        return parts().between("note", "Sub-calls of turns that are not in the trace", lists) if lists else Markup("")

    def _action(self, action: Action, seen: Observation) -> Iterator[str]:
        block, small = parts().block, parts().small
        (_, text), *results = labelled(action, seen)
        match action:
            case RunCode():
                yield block("Code", python_code(text), "code")
            case CallTool():
                yield block(parts().called(action.name), plain_text(text), "code")
            case Answer():
                yield block("Answer", plain_text(text), "answer")
            case Malformed():
                yield block("Not readable", plain_text(text), "error")
        if action.notes:
            yield small(f"Noticed when reading: {'; '.join(map(str, action.notes))}")
        for label, came in results:
            kind = "answer" if label == "answer" else "error" if seen.failure is not None else "output"
            came = value_text(seen.answer.value) if label == "answer" and seen.answer is not None else came
            took = f" · {seen.seconds:.1f} s" if kind != "answer" and seen.seconds >= 0.05 else ""
            yield block(label.capitalize() + took, plain_text(came.rstrip("\n")), kind)
        for display in seen.displays:
            yield parts().picture(display.mime, display.data)
        if not results and not isinstance(action, (Answer, Malformed)):
            yield small("No output.")
        if seen.full:
            label = f"Before it was clipped for the model: {len(seen.full):,} characters"
            yield parts().folded(label, parts().preformatted(plain_text(seen.full)))
        if seen.pending is not None:
            yield block("Answer, pending", plain_text(value_text(seen.pending.value)), "answer")
        yield _effects(seen.effects)

    def _added(self, node: str, turn: int) -> str:
        """Return what the request of this turn had added besides replies and results: nudges, reminders, summaries."""
        request = self.view.requests.get((node, turn))
        if request is None or request.get("base") is None:
            return ""
        spans = [span for key in request["added"] for span in spans_of(self.view.bodies.get(key))]
        shown = [self._span(text, cause) for text, cause in spans if cause not in _OWN and text.strip()]
        return parts().added(shown) if shown else ""

    def _span(self, text: str, cause: str) -> tuple[str, str, Markup]:
        """A stretch of a prompt for the template: the class of its colour, its cause and its text."""
        return self.shades.get(cause, "c-other"), cause, plain_text(text.strip("\n"))

    def _first(self, node: str) -> str:
        """Return what the model was told before its first turn, each stretch with its cause."""
        request = self.view.first_requests.get(node)
        if request is None:
            return Markup("")
        bodies = [self.view.bodies.get(key) for key in request["added"]]
        messages = [((body or {}).get("role", "?"), [self._span(*span) for span in spans_of(body)]) for body in bodies]
        schemas = ""
        if tools := self.view.settings.get(request.get("settings", ""), {}).get("tools"):
            names = brief(", ".join(str(mapping(t.get("function", t)).get("name", "?")) for t in tools), 120)
            schemas = parts().folded(f"Tool schemas: {names}", raw_events([tools]))
        return parts().first_step(messages, schemas)

    def _patch(self, node: str, turn: int) -> str:
        """The state of the workspace after this turn, as a patch against its start."""
        last = self.view.trees.get((node, turn))
        if last is None:
            return ""
        text = self.view.record.texts.get(str(last.get("patch")))
        if text is None:
            return parts().small("The patch is not in the trace.")
        shown = parts().preformatted(patch(text), "diff") if text else parts().nothing_left()
        return parts().folded("Workspace after this turn, against its start", shown)

    def _tokens(self, node: str, turn: Turn) -> str:
        """The turn's tokens by cause, in words."""
        calls = self.view.spent_in.get((node, turn.index), ())
        cached = turn.reply.usage and turn.reply.usage.cache_read_tokens
        said = [f"{cached:,} from the provider's cache"] if cached else []
        said += [] if all(one.exact for one in calls) else ["shared out by length"]
        return token_list(by_cause(calls), self.shades, ", ".join(said))


def token_list(sums: Mapping[str, int], shades: Mapping[str, str], more: str = "") -> str:
    """Tokens by cause, in the order of the figures; empty where there are none."""
    order = sorted(
        (name for name, tokens in sums.items() if tokens), key=lambda name: (name == OUTPUT, cause_place(name))
    )
    return parts().tokens([(shades.get(n, "c-other"), n, f"{sums[n]:,}") for n in order], more) if order else ""


def raw_events(events: Any) -> Markup:
    """Events as they are, as JSON."""
    texts = (json.dumps(event, indent=1, ensure_ascii=False) for event in events)
    return Markup("").join(parts().preformatted(plain_text(text)) for text in texts)


def value_block(label: str, value: Any, kind: str = "answer") -> str:
    """A value under a label: a text as it is, a patch coloured, anything else as Python writes it."""
    text = value_text(value)
    if is_patch(text):
        return parts().block(label, patch(text), kind, "diff")
    return parts().block(label, plain_text(text), kind)


def _gist(turn: Turn) -> str:
    """The line of a turn in the list of steps: its first telling line of code, call or text."""
    if not turn.actions:
        return brief(turn.reply.text) or "no text"
    action = turn.actions[0]
    name, text = (action.name, action.arguments) if isinstance(action, CallTool) else ("", action_text(action)[1])
    lines = [line.strip() for line in text.splitlines() if line.strip()] or ["empty"]
    told = next((line for line in lines if not line.startswith(_DULL)), lines[0])
    return parts().gist(isinstance(action, RunCode | CallTool), name, brief(told), len(turn.actions) - 1)


def _cost(turn: Turn) -> str:
    used = turn.reply.usage
    tokens = counted(used) if used is None else f"{number(used.input_tokens)} in · {number(used.output_tokens)} out"
    return f"{tokens}{f' · {turn.seconds:.1f} s' if turn.seconds else ''}"


def _effects(effects: Mapping[str, Any]) -> str:
    """The files that an action changed."""
    if not effects:
        return ""
    if effects.get("unknown"):
        return parts().small(f"Which files changed is not known: {effects['unknown']}", warn=True)
    signs = (("added", "+"), ("changed", "~"), ("removed", "−"))
    files = [(kind, sign, str(name)) for kind, sign in signs for name in effects.get(kind) or ()]
    left = max(0, len(files) - _FILES) + int(effects.get("left_out") or 0)
    return parts().effects(files[:_FILES], f"{left:,}" if left else "") if files or left else ""


def call_list(view: RunView, node: str, turn: int, steps: Callable[[str], Markup]) -> str:
    """The sub-calls of one turn: what was asked, what came back, and the steps of sub-agents."""
    calls = view.asked_in.get((node, turn), ())
    if not calls:
        return ""
    failed = sum(call.ok is False for call in calls)
    items = [_call(view, call, steps) for call in calls]
    return parts().calls(plural(len(calls), "sub-call"), failed, len(calls) <= FOLD, items)


def _call(view: RunView, call: Node, steps: Callable[[str], Markup]) -> str:
    block, body = parts().block, list[str]()
    if (asked := view.asked.get(call.node)) is not None:
        body.append(block("Asked", plain_text(asked), "code"))
    if call.kind == "agent" or view.tree.children(call.node):
        body.append(parts().steps(steps(call.node), " inner"))
    if call.kind != "agent" and call.node in view.answers:
        body.append(block("Answer", plain_text(view.answers[call.node]), "output"))
    if call.error:
        body.append(block("Error", plain_text(call.error), "error"))
    return parts().call(f"{view.prefix}n{call.node}", status(call), head(view.tree, call), call.title, body)

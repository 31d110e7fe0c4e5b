"""ReAct as text: one template with Thought, Action and Observation lines (Yao et al. 2023, arXiv 2210.03629).

Labels are read in any letter case, numbered, bold or as headings.  Only the first action counts, and nothing that a
model wrote after an Observation of its own making does.  The other form, an initiator and a thought prompt every turn
over tool calls, is `FunctionCalls` with injectors: see `agents.ReActAgent`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from rlm_loop.actions import Action, Answer, CallTool, Malformed, Note
from rlm_loop.dialects.base import ActionMode, Dialect, Problem, assistant_message, result_spans
from rlm_loop.dialects.reader import calls_in_place, decode, loads, read_arguments, without_reasoning
from rlm_loop.dialects.wording import REACT_TEMPLATE
from rlm_loop.messages import Message, Prompt, Reply, Span
from rlm_loop.outcome import Turn
from rlm_loop.repl.text import dedented
from rlm_loop.tools.function import Tool

LABEL = "Observation: "

_FINISH = ("finish", "final_answer")
_LABEL = re.compile(
    r"^[ \t#*_-]*+(?:thought|(?P<input>action[ _]?input|input)|(?P<action>action)|(?P<final>final[ _]?answer))"
    r"[ \t]*+\d*+[ \t*_]*+:[*_]*+",
    re.IGNORECASE | re.MULTILINE,
)
_OBSERVATION = re.compile(r"(?:\A\s*+|\r?\n)[ \t#*_]*+observation[ \t]*+\d*+[ \t*_]*+:", re.IGNORECASE)
_NAME = re.compile(r"""[`"'*]{0,3}([^\W\d][\w.-]*)[`"'*]{0,3}""")
#: What a tool list shows behind a name; models copy it, and give the input on a line of its own.
_PARAMETER = r"\w+[ \t]*:[ \t]*(?:str|int|float|bool|list|dict|tuple|Any|None)\b[^,()\n]*"
_SIGNATURE = re.compile(rf"\({_PARAMETER}(?:,[ \t]*{_PARAMETER})*\)(?:[ \t]*->[^\n]*)?[ \t`\"'*.]*(?=\n|$)")
_SPACE = re.compile(r"\s*")


@dataclass(frozen=True)
class ReActText(Dialect):
    """Speak in Thought / Action / Observation lines; only the model's own words are kept in the history."""

    rule: str = REACT_TEMPLATE
    heading: str = "Tools:"
    name: str = "react"
    action_mode: ActionMode = "calls"
    may_block: bool = False

    def format_task(self, problem: Problem, tools: Mapping[str, Tool]) -> Prompt:
        offered = {name: tool for name, tool in tools.items() if name != "final_answer"}
        # With its line break, since a bare "Observation:" as a stop string leaves some replies empty.
        return replace(super().format_task(problem, offered), stop=("\nObservation:",))

    def read(self, text: str, reply: Reply, tools: Mapping[str, Tool]) -> Sequence[Action]:
        own = own_words(text)
        name, given, notes = read_step(own)
        notes = (*notes, *(["text from an invented observation on dropped"] if own != text else []))
        if name is None:
            none = Malformed("No action found. Write an Action line and an Action Input line.", notes=notes)
            return calls_in_place(own, tools.keys()) or [none]
        if name not in _FINISH:
            arguments, repairs = read_arguments(tools.get(name), given)
            return [CallTool(name, arguments, lenient=True, notes=(*notes, *repairs))]
        if not given.strip():
            reason = 'finish needs the answer: Action Input: {"answer": ...}'
            return [Malformed(reason, notes=(*notes, Note.EMPTY_ANSWER))]
        arguments, repairs = read_arguments(None, given.strip())
        value = loads(arguments)
        value = next(iter(value.values())) if isinstance(value, dict) and len(value) == 1 else value
        return [Answer(given.strip() if value is None and "null" not in arguments else value, notes=(*notes, *repairs))]

    def format_turn(self, turn: Turn) -> Sequence[Message]:
        label = Span(LABEL, "scaffold:observation_label")
        results = Message("user", (label, *result_spans(turn)), turn=turn.index)
        return [assistant_message(turn, own_words(turn.reply.text)), results]


def own_words(text: str) -> str:
    """Return a reply up to an observation that the model invented, as a stop string would have left it."""
    body = without_reasoning(text)
    invented = _OBSERVATION.search(body)
    return text[: len(text) - len(body) + invented.start()] if invented else text


def read_step(text: str) -> tuple[str | None, str, tuple[str, ...]]:
    """Return the first action of a text: its tool (`finish` for an answer), its input ("" if none), and the repairs.

    The tool is as it was written, known or not.  Where no action can be read it is None, and the notes say why.  Total.
    """
    body = without_reasoning(text)
    labels = list(_LABEL.finditer(body))
    step = next((label for label in labels if label.lastgroup in ("action", "final")), None)
    if step is None:
        return None, "", ()
    after = [label for label in labels if label.start() >= step.end()]
    stop = next((label.start() for label in after if label.lastgroup != "input"), len(body))
    if step.lastgroup == "final":
        answer = body[step.end() : stop].strip()
        return "finish", answer.removesuffix("**").rstrip() if step[0].count("**") == 1 else answer, ()
    label = next((label for label in after if label.start() < stop and label.lastgroup == "input"), None)
    name, given, end, notes = _action(body, _skip(body, step.end()), label.start() if label else stop)
    if name is None or label is None or label.start() < end:
        return name, given, notes
    if given:
        return name, given, (*notes, "second input ignored")
    return name, _input(body, label.end(), stop), notes


def _action(body: str, at: int, stop: int) -> tuple[str | None, str, int, tuple[str, ...]]:
    """Read the action at `at`: `tool[...]`, `tool(...)`, or a name alone; return where it ends besides."""
    line = body[at : max(at, stop)].partition("\n")[0].strip()
    match = _NAME.match(line)
    rest = line[match.end() :].strip(" \t`\"'*.,;") if match else line
    if match is None or (rest and rest[0] not in "[("):
        word = line.strip("`\"'*.,; ")
        return None, "", stop, (f"unreadable action: {word[:60]!r}" if word else "empty action",)
    name = "finish" if match[1].lower() in _FINISH else match[1]
    behind = body.index(match[0], at) + len(match[0])
    if not rest:
        return name, "", behind, ()
    if signature := _SIGNATURE.match(body, behind, stop):
        return name, "", signature.end(), ("signature copied",)
    return name, _bracketed(body[behind:stop].strip(), "]" if rest[0] == "[" else ")"), behind, ()


def _bracketed(section: str, closing: str) -> str:
    """Return the input in the bracket that a text begins with."""
    line = section.partition("\n")[0]
    section = line if closing in line and not section.endswith(closing) else section
    return section[1 : section.rfind(closing) if closing in section else None].strip()


def _input(body: str, start: int, stop: int) -> str:
    """Return the input that begins at `start`; an object may reach past `stop`, plain text may not."""
    at = _skip(body, start)
    if at < stop and body[at] == "{" and isinstance((found := decode(body, at)).value, dict):
        return body[at : found.end]
    line, _, rest = body[start:stop].partition("\n")
    return body[start:stop].strip() if line.strip() else dedented(rest).rstrip()


def _skip(text: str, at: int) -> int:
    return _SPACE.match(text, at).end()  # pyright: ignore[reportOptionalMemberAccess]

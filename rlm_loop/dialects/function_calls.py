"""The lean function-calling loop: tools, calls, results, and nothing added per turn.

How the tools are presented is a factor of its own: `native` schemas, a short `text` list, or a text list with replies
`constrained` by a JSON schema.  A call that a model wrote as text is read where that is unambiguous, and marked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal

from rlm_loop.actions import Action, Answer, CallTool, Malformed, Note
from rlm_loop.dialects.answer_text import looks_like_refusal, strip_answer_prefix
from rlm_loop.dialects.base import NO_TOOLS, ActionMode, DialectDefaults, Problem, text_to_read
from rlm_loop.dialects.reader import CODE_TOOL, calls_in_place, read_arguments, with_cell, wrapped
from rlm_loop.dialects.shown import assistant_message, result_span, system_message, task_message, user_results
from rlm_loop.dialects.tool_text import BARE_VALUE, TextCall, read_calls
from rlm_loop.dialects.wording import CALLS_RULE, NO_CALL, tool_lines
from rlm_loop.messages import Message, Prompt, Reply, ToolCall
from rlm_loop.outcome import Turn
from rlm_loop.tools.function import Tool
from rlm_loop.tools.gateway import JSON_HINT

Presentation = Literal["native", "text", "constrained"]


#: A text with these keys, where no call could be read, is a broken call and not an answer.
_CALL = re.compile(r"""["']name["']\s*:.{0,200}?["']arguments["']\s*:""", re.DOTALL)


@dataclass(frozen=True)
class FunctionCalls(DialectDefaults):
    """Speak in tool calls.

    `rule` is the system text of the text presentations; `native` has none, since the schemas say it all, unless
    `native_rule` is given.  A reply without a call is the answer, unless `text_answers` is off: then the model is told
    that it called nothing, and only a call of `final_answer` ends the run.  With `may_block` a line `BLOCKED: reason`
    gives up.
    """

    presentation: Presentation = "native"
    rule: str = CALLS_RULE
    native_rule: str = ""
    heading: str = "Tools:"
    text_answers: bool = True
    name: str = "calls"
    action_mode: ActionMode = "calls"
    may_block: bool = False

    def format_task(self, problem: Problem, tools: Mapping[str, Tool]) -> Prompt:
        task = task_message(problem)
        if self.presentation == "native":
            return Prompt((*system_message(self.native_rule), task), tuple(t.schema for t in tools.values()))
        schema = call_schema(tools) if self.presentation == "constrained" else None
        return Prompt((*system_message(self.rule, tool_lines(self.heading, tools)), task), reply_schema=schema)

    def parse_reply(self, reply: Reply, tools: Mapping[str, Tool] = NO_TOOLS) -> Sequence[Action]:
        text = text_to_read(reply, may_block=self.may_block)
        if isinstance(text, Malformed):
            return [replace(text, call_id=i) for i in _call_ids(reply)] or [text]
        if reply.tool_calls:
            return [_native(c, i, tools) for c, i in zip(reply.tool_calls, _call_ids(reply), strict=True)]
        return self._text(text, tools)

    def format_turn(self, turn: Turn) -> Sequence[Message]:
        if not turn.reply.tool_calls:
            return [assistant_message(turn), user_results(turn)]
        ids = _call_ids(turn.reply)
        calls = tuple(
            replace(c, id=i, arguments=_as_json(c, a))
            for c, i, a in zip(turn.reply.tool_calls, ids, turn.actions, strict=True)
        )
        said = replace(assistant_message(turn), tool_calls=calls)
        results = [
            Message("tool", (result_span(o),), tool_call_id=i, turn=turn.index)
            for i, o in zip(ids, turn.observations, strict=True)
        ]
        return [said, *results]

    def _text(self, text: str, tools: Mapping[str, Tool]) -> Sequence[Action]:
        calls, notes = read_calls(text, tools.keys())
        if actions := [_lenient(c, tools) for c in calls] or calls_in_place(text, tools.keys()):
            return actions
        problem = next((n for n in notes if n.startswith(("unfinished", "unreadable", "arguments"))), None)
        if problem is not None:
            hint = f"; {JSON_HINT}" if problem.startswith("unreadable") else ""
            return [Malformed(f"The tool call could not be read: {problem}{hint}.", notes=notes)]
        if _CALL.search(text):
            return [Malformed(f"The tool call could not be read: it is not valid JSON; {JSON_HINT}.", notes=notes)]
        if looks_like_refusal(text):
            return [Malformed("Please try: call a tool.", notes=(*notes, Note.REFUSAL))]
        if not self.text_answers:
            return [Malformed(NO_CALL, notes=notes)]
        return [Answer(strip_answer_prefix(text).strip(), notes=notes)]


def _native(call: ToolCall, call_id: str, tools: Mapping[str, Tool]) -> CallTool:
    code = call.name == CODE_TOOL
    arguments, notes = read_arguments(tools.get(call.name), call.arguments) if code else (call.arguments, ())
    return CallTool(call.name, arguments, call_id, notes=notes)


def _lenient(call: TextCall, tools: Mapping[str, Tool]) -> Action:
    """Return a call out of text, marked as such; a bare value is the parameter of a tool that has just one."""
    bare = BARE_VALUE in call.notes
    arguments = wrapped(tools.get(call.name), json.loads(call.arguments)) if bare else call.arguments
    if arguments is None:
        reason = f"The tool call could not be read: arguments of {call.name} must be a JSON object."
        return Malformed(reason, notes=call.notes)
    arguments, notes = with_cell(arguments, call.notes) if call.name == CODE_TOOL else (arguments, call.notes)
    return CallTool(call.name, arguments, lenient=True, notes=notes)


def _call_ids(reply: Reply) -> list[str]:
    """Return an id for each call, in order; missing and duplicate ids are replaced.

    So every call gets exactly one result.
    """
    seen: set[str] = set()
    ids: list[str] = []
    for number, call in enumerate(reply.tool_calls, 1):
        chosen = call.id or f"call_{number}"
        while chosen in seen:
            chosen = f"{chosen}_{number}"
        seen.add(chosen)
        ids.append(chosen)
    return ids


def _as_json(call: ToolCall, action: Action) -> str:
    """Return the arguments to send back: as they came, else repaired, else `{}`: providers refuse what is no JSON."""
    for text in (call.arguments, action.arguments if isinstance(action, CallTool) else "{}"):
        with suppress(ValueError, RecursionError):
            json.loads(text, strict=False)
            return text
    return "{}"


def call_schema(tools: Mapping[str, Tool]) -> dict[str, Any]:
    """Return a JSON schema of one call of any of the tools: `{"name": ..., "arguments": {...}}`."""
    choices = [
        {
            "type": "object",
            "properties": {"name": {"const": t.name}, "arguments": _inlined(t.parameters)},
            "required": ["name", "arguments"],
            "additionalProperties": False,
        }
        for t in tools.values()
    ]
    return choices[0] if len(choices) == 1 else {"anyOf": choices}


def _inlined(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in schema.items() if k not in ("title", "description")}

"""The lean function-calling loop: tools, calls, results, and nothing added per turn.

How the tools are presented is a factor of its own: `native` schemas, a short `text` list, or a text list with replies
`constrained` by a JSON schema.  A call that a model wrote as text is read where that is unambiguous, and marked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from rlm_loop.actions import Action, Answer, CallTool, Malformed, Note
from rlm_loop.dialects.answer_text import looks_like_refusal, strip_answer_prefix
from rlm_loop.dialects.base import NO_TOOLS, ActionMode, DialectDefaults, Problem, whole
from rlm_loop.dialects.lenient_json import wrapped
from rlm_loop.dialects.shown import assistant_message, result_span, system_message, task_message, user_results
from rlm_loop.dialects.tool_text import BARE_VALUE, TextCall, read_calls
from rlm_loop.dialects.wording import CALLS_RULE, NO_CALL, tool_lines
from rlm_loop.messages import Message, Prompt, Reply
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
    that it called nothing, and only a call of `final_answer` ends the run.
    """

    presentation: Presentation = "native"
    rule: str = CALLS_RULE
    native_rule: str = ""
    heading: str = "Tools:"
    text_answers: bool = True
    name: str = "calls"
    action_mode: ActionMode = "calls"

    def format_task(self, problem: Problem, tools: Mapping[str, Tool]) -> Prompt:
        task = task_message(problem)
        if self.presentation == "native":
            return Prompt((*system_message(self.native_rule), task), tuple(t.schema for t in tools.values()))
        schema = call_schema(tools) if self.presentation == "constrained" else None
        return Prompt((*system_message(self.rule, tool_lines(self.heading, tools)), task), reply_schema=schema)

    def parse_reply(self, reply: Reply, tools: Mapping[str, Tool] = NO_TOOLS) -> Sequence[Action]:
        refused = whole(reply)
        if refused is not None:
            return [replace(refused, call_id=i) for i in _call_ids(reply)] or [refused]
        if reply.tool_calls:
            ids = _call_ids(reply)
            return [CallTool(c.name, c.arguments, i) for c, i in zip(reply.tool_calls, ids, strict=True)]
        return self._text(reply, tools)

    def format_turn(self, turn: Turn) -> Sequence[Message]:
        if not turn.reply.tool_calls:
            return [assistant_message(turn), user_results(turn)]
        ids = _call_ids(turn.reply)
        calls = tuple(
            replace(c, id=i, arguments=c.arguments if _is_json(c.arguments) else "{}")
            for c, i in zip(turn.reply.tool_calls, ids, strict=True)
        )
        said = replace(assistant_message(turn), tool_calls=calls)
        results = [
            Message("tool", (result_span(o),), tool_call_id=i, turn=turn.index)
            for i, o in zip(ids, turn.observations, strict=True)
        ]
        return [said, *results]

    def _text(self, reply: Reply, tools: Mapping[str, Tool]) -> Sequence[Action]:
        calls, notes = read_calls(reply.text, tools.keys())
        if calls:
            return [_lenient(c, tools) for c in calls]
        problem = next((n for n in notes if n.startswith(("unfinished", "unreadable", "arguments"))), None)
        if problem is not None:
            hint = f"; {JSON_HINT}" if problem.startswith("unreadable") else ""
            return [Malformed(f"The tool call could not be read: {problem}{hint}.", notes=notes)]
        if _CALL.search(reply.text):
            return [Malformed(f"The tool call could not be read: it is not valid JSON; {JSON_HINT}.", notes=notes)]
        if looks_like_refusal(reply.text):
            return [Malformed("Please try: call a tool.", notes=(*notes, Note.REFUSAL))]
        if not self.text_answers:
            return [Malformed(NO_CALL, notes=notes)]
        return [Answer(strip_answer_prefix(reply.text).strip(), notes=notes)]


def _lenient(call: TextCall, tools: Mapping[str, Tool]) -> Action:
    """A call out of text, marked as such; a bare value is the parameter of a tool that has just one."""
    if BARE_VALUE not in call.notes:
        return CallTool(call.name, call.arguments, lenient=True, notes=call.notes)
    arguments = wrapped(tools.get(call.name), json.loads(call.arguments))
    if arguments is None:
        reason = f"The tool call could not be read: arguments of {call.name} must be a JSON object."
        return Malformed(reason, notes=call.notes)
    return CallTool(call.name, arguments, lenient=True, notes=call.notes)


def _call_ids(reply: Reply) -> list[str]:
    """One id per call, in order; missing and duplicate ids are replaced, so every call gets exactly one result."""
    seen: set[str] = set()
    ids: list[str] = []
    for number, call in enumerate(reply.tool_calls, 1):
        chosen = call.id or f"call_{number}"
        while chosen in seen:
            chosen = f"{chosen}_{number}"
        seen.add(chosen)
        ids.append(chosen)
    return ids


def _is_json(text: str) -> bool:
    """Providers refuse to be sent back arguments that are not JSON, so those are sent as `{}`."""
    try:
        json.loads(text, strict=False)
    except ValueError:
        return False
    return True


def call_schema(tools: Mapping[str, Tool]) -> dict[str, Any]:
    """A JSON schema of one call of any of the tools: `{"name": ..., "arguments": {...}}`."""
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

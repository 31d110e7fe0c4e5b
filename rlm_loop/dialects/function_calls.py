"""The lean function-calling loop: tools, calls, results, and nothing added per turn.

How the tools are presented is a factor of its own: `native` schemas, a short `text` list, or a text list with replies
`constrained` by a JSON schema.  A call that a model wrote as text is read where that is unambiguous, and marked.
Typed actions: each call states its expected outcome, its stop condition and its risk beside its arguments.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal

from rlm_loop.actions import INTENT, INTENT_CAUSE, Action, Answer, CallTool, Malformed, Note
from rlm_loop.dialects import base, reader
from rlm_loop.dialects.base import NO_TOOLS, ActionMode, Dialect, Problem
from rlm_loop.dialects.reader import CODE_TOOL, UNREAD
from rlm_loop.dialects.wording import CALLS_RULE, NO_CALL, TYPED_RULE
from rlm_loop.messages import Message, Prompt, Reply, Span, ToolCall
from rlm_loop.outcome import Turn
from rlm_loop.tools.function import Tool
from rlm_loop.tools.gateway import JSON_HINT

Presentation = Literal["native", "text", "constrained"]

#: A text with these keys, where no call could be read, is a broken call and not an answer.
_CALL = re.compile(r"""["']name["']\s*:.{0,200}?["']arguments["']\s*:""", re.DOTALL)


@dataclass(frozen=True)
class FunctionCalls(Dialect):
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
    may_block: bool = False

    def format_task(self, problem: Problem, tools: Mapping[str, Tool]) -> Prompt:
        if self.presentation == "native":
            messages = (*base.system_message(self.native_rule), base.task_message(problem))
            return Prompt(messages, tuple(map(self.schema, tools.values())))
        schema = self.call_schema(tools) if self.presentation == "constrained" else None
        return replace(super().format_task(problem, tools), reply_schema=schema)

    def schema(self, tool: Tool) -> Mapping[str, Any]:
        """Return the native schema of a tool."""
        return tool.schema

    def call_schema(self, tools: Mapping[str, Tool]) -> dict[str, Any]:
        """Return a JSON schema of one call of any of the tools: `{"name": ..., "arguments": {...}}`."""
        choices: list[dict[str, Any]] = []
        for tool in tools.values():
            parameters = self.schema(tool)["function"]["parameters"]
            arguments = {k: v for k, v in parameters.items() if k not in ("title", "description")}
            choice = {"type": "object", "properties": {"name": {"const": tool.name}, "arguments": arguments}}
            choices.append({**choice, "required": ["name", "arguments"], "additionalProperties": False})
        return choices[0] if len(choices) == 1 else {"anyOf": choices}

    def parse_reply(self, reply: Reply, tools: Mapping[str, Tool] = NO_TOOLS) -> Sequence[Action]:
        actions, ids = super().parse_reply(reply, tools), _call_ids(reply)
        unread = [replace(actions[0], call_id=call_id) for call_id in ids] if isinstance(actions[0], Malformed) else []
        return unread or actions

    def format_turn(self, turn: Turn) -> Sequence[Message]:
        if not turn.reply.tool_calls:
            return super().format_turn(turn)
        calls: list[ToolCall] = []
        results: list[Message] = []
        for call, call_id, action, observation in zip(
            turn.reply.tool_calls, _call_ids(turn.reply), turn.actions, turn.observations, strict=True
        ):
            calls.append(replace(call, id=call_id, arguments=_as_json(call, action)))
            results.append(Message("tool", (base.result_span(observation),), tool_call_id=call_id, turn=turn.index))
        return [replace(base.assistant_message(turn), tool_calls=tuple(calls)), *results]

    def read(self, text: str, reply: Reply, tools: Mapping[str, Tool]) -> Sequence[Action]:
        if reply.tool_calls:
            return [_native(c, i, tools) for c, i in zip(reply.tool_calls, _call_ids(reply), strict=True)]
        calls, problems = reader.read_calls(text, tools)
        if actions := calls or reader.calls_in_place(text, tools.keys()):
            return actions
        if problems:
            hint = f"; {JSON_HINT}" if problems[0].startswith("unreadable") else ""
            return [Malformed(f"{UNREAD}: {problems[0]}{hint}.", notes=tuple(problems))]
        if _CALL.search(text):
            return [Malformed(f"{UNREAD}: it is not valid JSON; {JSON_HINT}.")]
        if reader.looks_like_refusal(text):
            return [Malformed("Please try: call a tool.", notes=(Note.REFUSAL,))]
        return [Answer(reader.strip_answer_prefix(text).strip()) if self.text_answers else Malformed(NO_CALL)]


@dataclass(frozen=True)
class TypedCalls(FunctionCalls):
    """Speak in tool calls that state `expected_outcome`, `stop_condition` and `risk` beside their arguments.

    They are asked for by the schemas, and in the text presentations by a line; their tokens are charged to
    `scaffold:typed_action`.  No tool sees them: they are in `CallTool.intent`, which `approve` is shown.  A call
    without them runs all the same.  A parameter of the tool's own that has such a name stays the tool's.
    """

    name: str = "typed_calls"

    def format_task(self, problem: Problem, tools: Mapping[str, Tool]) -> Prompt:
        prompt = super().format_task(problem, tools)
        if self.presentation == "native":
            return prompt
        texts = prompt.messages[0].spans if prompt.messages[0].role == "system" else ()
        line = Span(("\n" if texts else "") + TYPED_RULE, INTENT_CAUSE)
        return replace(prompt, messages=(Message("system", (*texts, line)), *prompt.messages[bool(texts) :]))

    def schema(self, tool: Tool) -> Mapping[str, Any]:
        """Return the native schema of a tool with the statements; giving the answer has none."""
        if tool.name == "final_answer":
            return tool.schema
        function = tool.schema["function"]
        parameters = function["parameters"]
        asked = {k: v for k, v in INTENT.items() if k not in parameters["properties"]}
        required = [*parameters.get("required", ()), *asked]
        parameters = {**parameters, "properties": {**parameters["properties"], **asked}, "required": required}
        return {**tool.schema, "function": {**function, "parameters": parameters}}

    def parse_reply(self, reply: Reply, tools: Mapping[str, Tool] = NO_TOOLS) -> Sequence[Action]:
        actions = super().parse_reply(reply, tools)
        return [_with_intent(a, tools.get(a.name)) if isinstance(a, CallTool) else a for a in actions]


def _native(call: ToolCall, call_id: str, tools: Mapping[str, Tool]) -> CallTool:
    if call.name != CODE_TOOL:
        return CallTool(call.name, call.arguments, call_id)
    arguments, notes = reader.read_arguments(tools.get(CODE_TOOL), call.arguments)
    return CallTool(CODE_TOOL, arguments, call_id, notes=notes)


def _call_ids(reply: Reply) -> list[str]:
    """Return an id for each call, in order; missing and duplicate ids are replaced, so every call gets one result."""
    ids: list[str] = []
    for number, call in enumerate(reply.tool_calls, 1):
        chosen = call.id or f"call_{number}"
        while chosen in ids:
            chosen = f"{chosen}_{number}"
        ids.append(chosen)
    return ids


def _as_json(call: ToolCall, action: Action) -> str:
    """Return the arguments to send back: as they came, else repaired, else `{}`: providers refuse what is no JSON."""
    for text in (call.arguments, action.arguments if isinstance(action, CallTool) else "{}"):
        with suppress(ValueError, RecursionError):
            json.loads(text, strict=False)
            return text
    return "{}"


def _with_intent(call: CallTool, tool: Tool | None) -> CallTool:
    """Return the call with its statements apart from the tool's own arguments."""
    arguments = reader.loads(call.arguments)
    own = () if tool is None else tool.names
    stated = [k for k in INTENT if k in arguments and k not in own] if isinstance(arguments, dict) else []
    if not stated:
        return call
    intent = {k: v if isinstance(v := arguments.pop(k), str) else json.dumps(v) for k in stated}
    return replace(call, arguments=json.dumps(arguments, ensure_ascii=False), intent=intent)

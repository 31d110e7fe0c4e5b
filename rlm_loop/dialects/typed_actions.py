"""Typed actions: each call states its expected outcome, its stop condition and its risk beside its arguments."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rlm_loop.actions import INTENT, INTENT_CAUSE, Action, CallTool
from rlm_loop.dialects.base import NO_TOOLS, Problem
from rlm_loop.dialects.function_calls import FunctionCalls
from rlm_loop.dialects.lenient_json import loads
from rlm_loop.dialects.wording import TYPED_RULE
from rlm_loop.messages import Message, Prompt, Reply, Span
from rlm_loop.tools.function import Tool


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
        messages, schema = prompt.messages, prompt.reply_schema
        if self.presentation != "native":
            texts = messages[0].spans if messages[0].role == "system" else ()
            line = Span(("\n" if texts else "") + TYPED_RULE, INTENT_CAUSE)
            messages = (Message("system", (*texts, line)), *messages[bool(texts) :])
        if schema is not None:
            choices = [_typed_choice(c) for c in schema.get("anyOf", [schema])]
            schema = choices[0] if "anyOf" not in schema else {"anyOf": choices}
        return replace(prompt, messages=messages, tools=tuple(map(_typed_tool, prompt.tools)), reply_schema=schema)

    def parse_reply(self, reply: Reply, tools: Mapping[str, Tool] = NO_TOOLS) -> Sequence[Action]:
        actions = super().parse_reply(reply, tools)
        return [_with_intent(a, tools.get(a.name)) if isinstance(a, CallTool) else a for a in actions]


def _typed_tool(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    function = tool["function"]
    parameters = _typed(function["name"], function["parameters"])
    return {**tool, "function": {**function, "parameters": parameters}}


def _typed_choice(choice: Mapping[str, Any]) -> dict[str, Any]:
    properties = choice["properties"]
    arguments = _typed(properties["name"]["const"], properties["arguments"])
    return {**choice, "properties": {**properties, "arguments": arguments}}


def _typed(name: str, parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema of a call's arguments with those of a typed action; giving the answer is none."""
    if name == "final_answer":
        return parameters
    asked = {k: v for k, v in INTENT.items() if k not in parameters["properties"]}
    required = [*parameters.get("required", ()), *asked]
    return {**parameters, "properties": {**parameters["properties"], **asked}, "required": required}


def _with_intent(call: CallTool, tool: Tool | None) -> CallTool:
    """Return the call with its statements apart from the tool's own arguments."""
    arguments = loads(call.arguments)
    own = () if tool is None else tool.names
    stated = [k for k in INTENT if k in arguments and k not in own] if isinstance(arguments, dict) else []
    if not stated:
        return call
    intent = {k: v if isinstance(v := arguments.pop(k), str) else json.dumps(v) for k in stated}
    return replace(call, arguments=json.dumps(arguments, ensure_ascii=False), intent=intent)

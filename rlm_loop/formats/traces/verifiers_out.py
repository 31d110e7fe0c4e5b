"""Traces of verifiers (0.4), a library of environments for reinforcement learning: one JSON record a run.

A record is a graph of messages: each is stored once, and a call of a model adds those that are new and its reply.
Where a model kept the ids of its tokens (`LocalModel(token_ids=True)`), a reply's node has the ids from the end of
the call before to its own: the new part of the prompt, masked, then what was sampled, with log-probabilities.  So the
ids along a path are what the model read and wrote.  A request that goes on otherwise than with these ids starts a
path of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rlm_loop.formats.traces.calls import OURS, function_of, replied, with_ids
from rlm_loop.formats.traces.conversation import AgentConversation, RunConversation, Step
from rlm_loop.formats.traces.otel.messages import text_of
from rlm_loop.formats.traces.usage import known, to_verifiers
from rlm_loop.messages import Message, Prompt, Reply

#: Gives the ids of a request's tokens, by the name of its model.
PromptIds = Callable[[str, Prompt], Sequence[int]]
#: Stops that say that the run was cut short, by the words of verifiers.
_STOPS = {"answered": "agent_completed", "steps": "max_turns", "tokens": "max_total_tokens", "seconds": "agent_timeout"}


def record_of_run(conversation: RunConversation, prompt_ids: PromptIds | None = None) -> dict[str, Any]:
    """The record of a run; `prompt_ids` is asked where a model kept the ids of its replies, else there are none."""
    graph = _Graph(prompt_ids)
    for agent in conversation.agents:
        graph.add(agent)
    root, score = conversation.root, conversation.score
    failed = conversation.stop in ("failed", "interrupted", None)
    reason = str((root.end or {}).get("reason") or conversation.stop or "the run never came to its end")
    ours = {"run": conversation.id, "stop": conversation.stop, "episode": dict(conversation.episode) or None}
    judged = score is not None and score.resolved is not None
    return {
        "version": 1,
        "id": conversation.id,
        "task": {"type": "Task", "data": {"id": conversation.task, "prompt": conversation.question}},
        "agent": {"config": {"model": conversation.model}, "name": conversation.agent},
        "tools": [_tool(tool) for tool in (root.steps[0].tools if root.steps else ())],
        "nodes": graph.nodes,
        "calls": graph.calls,
        "rewards": {"resolved": {"score": score.value} if score is not None and judged else None},
        "metrics": {f"tokens/{cause}": float(tokens) for cause, tokens in conversation.causes.items()},
        "info": {OURS: known(ours)},
        "root_reply": None if conversation.answer is None else text_of(conversation.answer),
        "is_completed": conversation.stop is not None,
        "ok": not failed,
        "stop_condition": _STOPS.get(str(conversation.stop), conversation.stop),
        "errors": [{"type": str(conversation.stop or "unfinished"), "message": reason}] if failed else [],
        "timing": {"start": root.began, "agent": {"start": root.began, "end": root.ended}},
    }


class _Graph:
    """The nodes of all agents and the calls that made them."""

    def __init__(self, prompt_ids: PromptIds | None) -> None:
        self.prompt_ids = prompt_ids
        self.nodes: list[dict[str, Any]] = []
        self.calls: list[dict[str, Any]] = []

    def add(self, agent: AgentConversation) -> None:
        """An agent's calls; those for another purpose (a summary) are paths of their own."""
        paths: dict[str, list[tuple[Any, int]]] = {}
        for step in agent.steps:
            paths[step.purpose] = self._call(step, paths.get(step.purpose, []))

    def _call(self, step: Step, path: list[tuple[Any, int]]) -> list[tuple[Any, int]]:
        call = {"model": step.model, "time": {"start": step.started, "end": step.ended}}
        if step.reply is None:
            error = step.error or "unfinished"
            self.calls.append({**call, "error": {"type": error.partition(":")[0], "message": error}})
            return path
        kept = 0
        while kept < min(len(path), len(step.messages)) and path[kept][0] == _key(step.messages[kept]):
            kept += 1
        tokens = self._tokens(step, step.reply, path[:kept])
        if tokens is not None and tokens[0]:  # the ids do not go on where the path ends
            kept = 0
        path = path[:kept]
        for place, message in enumerate(step.messages[kept:], kept):
            tools = [_tool(tool) for tool in step.tools] if not place else []
            path.append((_key(message), self._node(path, step.started, _message(message), tools=tools or None)))
        said = replied(step.reply)
        ids = {} if tokens is None else tokens[1]
        node = self._node(path, step.ended, _message(said), sampled=True, **ids)
        finish = step.reply.finish_reason
        more = {
            "node": node,
            "finish_reason": finish if finish in ("stop", "length", "tool_calls") else None,
            "usage": None if step.usage is None else to_verifiers(step.usage),
        }
        self.calls.append(call | known(more))
        return [*path, (_key(said), node)]

    def _tokens(self, step: Step, reply: Reply, path: list[tuple[Any, int]]) -> tuple[bool, dict[str, Any]] | None:
        """Whether the ids start anew, and the fields of the reply's node; `None` where nobody kept ids."""
        sampled: Mapping[str, Any] | None = reply.extra.get("tokens")
        if sampled is None or self.prompt_ids is None:
            return None
        asked = list(self.prompt_ids(step.model, Prompt(step.messages, step.tools)))
        before = [id for _, node in path for id in self.nodes[node].get("token_ids", [])]
        anew = bool(path) and asked[: len(before)] != before
        added, ids = asked if anew else asked[len(before) :], sampled["ids"]
        mask = [False] * len(added) + [True] * len(ids)
        return anew, {"token_ids": [*added, *ids], "mask": mask, "logprobs": sampled["logprobs"]}

    def _node(self, path: list[tuple[Any, int]], at: float, message: dict[str, Any], **more: Any) -> int:
        parent = path[-1][1] if path else None
        self.nodes.append({"parent": parent, "message": message, "timestamp": at, **known(more)})
        return len(self.nodes) - 1


def _key(message: Message) -> Any:
    """By what a message is known again in a later request."""
    calls = tuple((call.name, call.arguments) for call in message.tool_calls)
    return message.role, message.text, calls, message.tool_call_id


def _message(message: Message) -> dict[str, Any]:
    found: dict[str, Any] = {"role": message.role, "content": message.text}
    if message.role == "tool":
        found["tool_call_id"] = message.tool_call_id or ""
    if message.tool_calls:
        found["tool_calls"] = [asdict(call) for call in with_ids(message.tool_calls)]
    return found


def _tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    function = function_of(tool)
    return {name: function[name] for name in ("name", "description", "parameters") if name in function}

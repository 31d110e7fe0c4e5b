"""What sub-calls answered, by what they were asked: for traces that do not hold the calls of cells themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rlm_loop.agents.recursion.record import sha256_of
from rlm_loop.repl.rebuild import Fallback
from rlm_loop.repl.worker import SubAnswer, SubFailure
from rlm_loop.replay.recorded import NodeRecord, Recorded


class _Failed(Exception):
    """A sub-call gave no answer; raised under the name by which cells know that."""


def past_answers(recorded: Recorded, node: NodeRecord, turn: int) -> Fallback:
    """A function that answers `llm_query` and `llm_query_batched` as they were answered in that turn."""
    left = [dict(start) for start in node.children.get(turn, ())]

    def take(prompt: Any) -> Mapping[str, Any]:
        for place, start in enumerate(left):
            if isinstance(prompt, str) and start["prompt_sha256"] == sha256_of(prompt):
                return left.pop(place)
        raise LookupError(prompt)

    def answer(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        if name == "llm_query":
            found = _answer(recorded, take(args[0] if args else kwargs.get("prompt")))
            if isinstance(found, str):
                return found
            raise type(found.__class__.__name__, (Exception,), {})(str(found))
        if name == "llm_query_batched":
            prompts = args[0] if args else kwargs.get("prompts", ())
            answers = [_answer(recorded, take(p)) for p in prompts]
            return [SubAnswer(a) if isinstance(a, str) else SubFailure(str(a)) for a in answers]
        raise LookupError(name)

    return answer


def _answer(recorded: Recorded, start: Mapping[str, Any]) -> str | Exception:
    node = recorded.node(start["node"])
    over = node.over
    if over is not None and not over["ok"]:
        kind = "DepthExceeded" if start["kind"] == "denied" else "SubCallError"
        return type(kind, (_Failed,), {})(over["error"]["message"])
    if start["kind"] == "agent" and node.end is not None:
        return str(node.end["answer"])
    if node.calls and node.calls[-1].reply is not None:
        return node.calls[-1].reply.text
    wanted = (over or {}).get("answer_sha256")  # answered from an earlier one
    for other in recorded.nodes.values():
        for call in other.calls:
            if call.reply is not None and sha256_of(call.reply.text) == wanted:
                return call.reply.text
    raise LookupError(start["node"])

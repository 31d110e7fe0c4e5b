"""The sub-calls of a recorded turn: charged and told again as they were, and what they answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rlm_loop.accounting.call_tree import Caller
from rlm_loop.agents.metered import Metered
from rlm_loop.agents.recursion import SubcallRunner
from rlm_loop.agents.recursion.record import sha256_of
from rlm_loop.repl.rebuild import Fallback
from rlm_loop.repl.worker import SubAnswer, SubFailure
from rlm_loop.replay.recorded import ROOT, NodeRecord, Recorded
from rlm_loop.replay.replies import ReplayState

#: Events that the loop itself tells again.
_TOLD = ("request", "reply", "message", "settings", "run_start", "context", "turn", "problem", "compaction", "resumed")


class Playback:
    """Copies what happened below the root into the account, the ledger and the trace of a fork."""

    def __init__(self, course: ReplayState, asking: SubcallRunner) -> None:
        self._course, self._asking = course, asking
        self._nodes: dict[str, Caller] = {ROOT: asking.agent.node}
        self._metered: dict[str, Metered] = {}
        self._turns = _by_turn(course.recorded.record.events)
        self._batches: set[str] = set()

    def turn(self, number: int) -> None:
        """Everything that happened in one turn of the root besides its own call."""
        trace = self._asking.agent.trace
        for event in self._turns.get(number, ()):
            kind, path = str(event["event"]), str(event.get("node", ROOT))
            if kind == "text":
                trace.text(str(event["text"]))
            elif kind == "tools":
                trace.once("tools", tools=event["tools"])
            elif path == ROOT and kind in _TOLD:
                continue
            elif kind == "request":
                self._charge(path)
            elif kind not in ("reply", "message", "settings", "model_error"):
                self._count(event)
                trace.copy(kind, **{k: v for k, v in event.items() if k not in ("run", "event", "at")})

    def _charge(self, path: str) -> None:
        course = self._course
        calls, place = course.recorded.node(path).calls, course.given.get(path, 0)
        call = calls[place]
        if call.reply is None:  # a call that failed: it counts as one, and cost nothing that is known
            course.given[path] = place + 1
            account = self._asking.agent.account
            account.settle(account.reserve(0, None), None)
            return
        metered = self._metered.setdefault(
            path, self._asking.agent.scoped(self._node(path), purpose=str(call.event.get("purpose", "llm_query")))
        )
        kept, own = metered.purpose, str(call.event.get("purpose", metered.purpose))
        asks = metered if own == kept else replace(metered, purpose=own)
        asks.max_tokens = call.event.get("max_tokens")
        course.path.append(path)
        asks.complete(call.prompt, turn=int(call.event["turn"]))  # the model is that of the record as yet
        course.path.pop()

    def _node(self, path: str) -> Caller:
        if path not in self._nodes:
            above, _, number = path.rpartition(".")
            self._nodes[path] = Caller(self._node(above), int(number))
        return self._nodes[path]

    def _count(self, event: Mapping[str, Any]) -> None:
        """Numbers of sub-calls and batches go on after the recorded ones."""
        if event["event"] != "subcall_start" or event["parent"] != ROOT:
            return
        root = self._asking.agent.node
        root.numbers(1)
        if event.get("batch") and event["batch"] not in self._batches:
            self._batches.add(event["batch"])
            root.batch()


def _by_turn(events: Sequence[Mapping[str, Any]]) -> dict[int, list[Mapping[str, Any]]]:
    """The events of each turn of the root: those since the turn before."""
    found: dict[int, list[Mapping[str, Any]]] = {}
    since: list[Mapping[str, Any]] = []
    for event in events:
        since.append(event)
        if event["event"] == "turn" and event.get("node", ROOT) == ROOT and not event.get("depth", 0):
            found[event["turn"]], since = since, []
    return found


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
            text, failed = _answer(recorded, take(args[0] if args else kwargs.get("prompt")))
            if failed:  # raised under the name by which cells know it
                raise type(failed, (Exception,), {})(text)
            return text
        if name == "llm_query_batched":
            prompts = args[0] if args else kwargs.get("prompts", ())
            answers = [_answer(recorded, take(p)) for p in prompts]
            return [SubFailure(text) if failed else SubAnswer(text) for text, failed in answers]
        raise LookupError(name)

    return answer


def _answer(recorded: Recorded, start: Mapping[str, Any]) -> tuple[str, str]:
    """What a sub-call came to; with it the name of the error that it was, else nothing."""
    node = recorded.node(start["node"])
    over = node.over
    if over is not None and not over["ok"]:
        return over["error"]["message"], "DepthExceeded" if start["kind"] == "denied" else "SubCallError"
    if start["kind"] == "agent" and node.end is not None:
        return str(node.end["answer"]), ""
    if node.calls and node.calls[-1].reply is not None:
        return node.calls[-1].reply.text, ""
    wanted = (over or {}).get("answer_sha256")  # answered from an earlier one
    for other in recorded.nodes.values():
        for call in other.calls:
            if call.reply is not None and sha256_of(call.reply.text) == wanted:
                return call.reply.text, ""
    raise LookupError(start["node"])

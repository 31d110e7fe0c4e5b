"""Traces of call trees that are told line by line, written by the real `Trace`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from rlm_loop.actions import Action, Answer, FinalAnswer, Observation, RunCode
from rlm_loop.messages import Prompt, Reply, Usage, say
from rlm_loop.traces import RunRecord, Trace


def fingerprint(context: str | None) -> dict[str, Any] | None:
    """Return the entry of a context in a trace: its type, its size and a hash."""
    data = (context or "").encode()
    return context and {"type": "str", "bytes": len(data), "sha256": sha256(data).hexdigest()}


class Told:
    """A trace as it is told: `turn`, `child` and `end` record what the loop would."""

    def __init__(self, path: Path | None = None, *, context: Any = None, question: str = "How many?") -> None:
        self.trace = Trace(path, clock=lambda: 0.0)
        told = {"task": "t", "question": question, "agent": "tool-loop", "model": "m", "versions": {}}
        self.trace.start(**told, context=fingerprint(context))
        self._asked: dict[str, Prompt] = {}
        self._children, self._turns, self._calls = Counter[str](), Counter[str](), 0

    @property
    def record(self) -> RunRecord:
        return RunRecord(tuple(self.trace.events))

    def call(self, node: str, prompt: Prompt, text: str = "", *, turn: int = 0, usage: Usage | None = None) -> None:
        """One request and its reply."""
        self._calls += 1
        where = {"turn": turn, "depth": node.count("."), "node": node, "call_id": self._calls}
        self.trace.record("request", prompt=prompt, purpose="agent", model="m", **where)
        charged = {"call": self._calls, "purpose": "agent", "exact": True, "sent": 0, "after": 0, "parts": None}
        reply = Reply(text, usage=usage or Usage(100, 10, 0, cost=None), seconds=0.5)
        self.trace.record("reply", request=prompt, reply=reply, charged=charged, **where)

    def turn(self, code: str | Action, output: str | Observation = "", *, node: str = "0", brief: str = "") -> None:
        """A turn of an agent: a request, the reply, and the turn with its one action."""
        self._turns[node] += 1
        number = self._turns[node]
        prompt = self._asked.get(node) or Prompt((say("system", "rule", "system"), say("user", brief or "?", "task")))
        self.call(node, prompt, str(code), turn=number)
        action = RunCode(code) if isinstance(code, str) else code
        seen = output if isinstance(output, Observation) else Observation(output, cause="repl_output")
        said = say("assistant", str(code), "assistant", turn=number), say("user", seen.text, "repl_output", turn=number)
        self._asked[node] = prompt + said
        told = {"actions": (action,), "observations": (seen,), "seconds": 1.0}
        self.trace.record("turn", depth=node.count("."), node=node, turn=number, **told)

    def says(self, text: str, *, node: str = "0") -> None:
        """A turn that answers in words."""
        self.turn(Answer(text), Observation(answer=FinalAnswer(text, "text")), node=node)

    def start(self, parent: str = "0", *, kind: str = "completion", context: Any = None, **more: Any) -> str:
        """The start of a sub-call; returns its node."""
        self._children[parent] += 1
        node = f"{parent}.{self._children[parent]}"
        told = {"turn": self._turns[parent] + 1, "model": "m", "batch": None, "index": None, **more}
        place = {"node": node, "parent": parent, "depth": node.count("."), "kind": kind}
        self.trace.record("subcall_start", **place, context=fingerprint(context), **told)
        return node

    def stop(self, node: str, *, error: Mapping[str, str] | None = None, seconds: float = 1.0, **more: Any) -> None:
        self.trace.record("subcall_end", node=node, ok=error is None, error=error, seconds=seconds, **more)

    def child(self, prompt: str, text: str = "", *, parent: str = "0", usage: Usage | None = None, **more: Any) -> str:
        """A whole completion as a sub-call."""
        node = self.start(parent, **more)
        self.call(node, Prompt.ask(prompt), text, usage=usage)
        self.stop(node)
        return node

    def batch(self, prompts: Sequence[str], texts: Sequence[str]) -> list[str]:
        pairs = enumerate(zip(prompts, texts, strict=True))
        return [self.child(p, t, batch="0.b1", index=i) for i, (p, t) in pairs]

    def end(self, answer: Any = None, stop: str = "answered", **more: Any) -> RunRecord:
        self.trace.record("run_end", depth=0, node="0", stop=stop, reason="", answer=answer, seconds=9.0, **more)
        return self.record


def told_tree(path: Path | None = None) -> Told:
    """A root of two turns with a sub-agent (which asks once), a cached answer, and a batch of which one fails."""
    told = Told(path)
    told.turn("x = 1")
    agent = told.start(kind="agent")
    told.turn("llm_query('deep')", node=agent, brief="Look into the first half")
    told.child("deep", "yes", parent=agent, usage=Usage(7, 3, 0, cost=0.5))
    told.stop(agent, seconds=4.0, stop="answered")
    told.start(kind="cached")
    told.stop("0.2", seconds=0.0)
    for i in range(20):
        node = told.start(batch="0.b1", index=i)
        told.call(node, Prompt.ask(f"piece {i}"), usage=Usage(10, 1, 0, cost=0.25))
        told.stop(node, error={"kind": "provider", "message": "no <route>"} if i == 13 else None, seconds=i / 10)
    told.turn("final_answer = 3", Observation(cause="repl_output", answer=FinalAnswer(3, "object")))
    told.end(3)
    return told

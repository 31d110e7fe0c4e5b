"""What a trace, the ledger and the hooks are told of one sub-call: that it started, and once how it ended."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from rlm_loop.accounting.call_tree import Caller
from rlm_loop.agents.meter import Meter
from rlm_loop.messages import Usage
from rlm_loop.repl.contexts.fingerprint import context_fingerprint, known_at_once

Kind = Literal["completion", "agent", "cached", "fallback", "denied"]


@dataclass(frozen=True)
class SubCall:
    """What is asked.  `context` is handed to the sub-agent as its variable, or follows the prompt of a completion.

    `batch` is the batch that it belongs to and `index` its place there.
    """

    prompt: str
    context: Any = None
    model: str | None = None
    max_tokens: int | None = None
    batch: str | None = None
    index: int | None = None

    @cached_property
    def known(self) -> dict[str, Any]:
        """Type and size of the context, and the hash of a small one."""
        return known_at_once(self.context) or {}

    @cached_property
    def fingerprint(self) -> dict[str, Any]:
        """Type, size and hash of the context, made once."""
        return self.known if "sha256" in self.known else context_fingerprint(self.context) or {}


class Record:
    """The events of one sub-call.  `end` may come from another thread, and only the first one counts."""

    def __init__(self, asked: SubCall, node: Caller, agent: Meter, clock: Callable[[], float]) -> None:
        self._asked, self._node, self._agent, self._clock = asked, node, agent, clock
        self._lock = threading.Lock()
        self._began: float | None = None
        self._ended = False

    def start(self, kind: Kind, *, model: str | None = None, policy: str | None = None) -> None:
        """It starts, as this kind; `policy` is what `SubCalls.beyond` said where the depth is exceeded."""
        asked, node, trace = self._asked, self._node, self._agent.trace
        with self._lock:
            if self._ended:
                return
            self._began = self._clock()
            if kind == "completion" and asked.context is None:
                sha256 = sha256_of(asked.prompt)  # its request stores the text as a message
            else:
                sha256 = trace.text(asked.prompt)
            trace.record(
                "subcall_start",
                node=node.path,
                parent=self._agent.node.path,
                turn=self._agent.turn,
                depth=node.depth,
                kind=kind,
                model=model,
                max_tokens=asked.max_tokens,
                policy=policy,
                prompt_sha256=sha256,
                prompt_chars=len(asked.prompt),
                context=_about(asked.known),
                batch=asked.batch,
                index=asked.index,
            )
        about = {"node": node.path, "depth": node.depth, "kind": kind, "model": model}
        self._agent.hooks.notify("on_subcall_start", **about, prompt=asked.prompt)

    def end(
        self,
        answer: str | None = None,
        *,
        error: tuple[str, str] | None = None,
        stop: str | None = None,
        saved: Usage | None = None,
    ) -> None:
        """It ended: with an answer, or an error given as its kind and one line."""
        node, trace = self._node, self._agent.trace
        with self._lock:
            if self._ended or self._began is None:
                self._ended = True
                return
            self._ended = True
            ended: dict[str, Any] = {"node": node.path, "depth": node.depth, "ok": error is None}
            ended |= {"seconds": self._clock() - self._began, "usage": node.usage}
            trace.record(
                "subcall_end",
                **ended,
                error=None if error is None else {"kind": error[0], "message": error[1]},
                answer_chars=None if answer is None else len(answer),
                answer_sha256=None if answer is None else sha256_of(answer),
                stop=stop,
                **({} if saved is None else {"saved": saved}),
            )
        reason = None if error is None else error[1]
        self._agent.hooks.notify("on_subcall_end", **ended, error=reason, answer=answer)


def sha256_of(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _about(known: Mapping[str, Any]) -> dict[str, Any] | None:
    return {"type": known["type"], "size": known["bytes"], "sha256": known.get("sha256")} if known else None

"""Play the scripted replies of a case through our own loops."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, cast

from experiments.robustness.suite.case import Played, ReplyCase, ScriptedReply
from rlm_loop.accounting.budget import Budget
from rlm_loop.agents import LeanAgent, ToolLoopAgent
from rlm_loop.models import ModelError, Reply, ScriptedModel, ToolCall
from rlm_loop.outcome import Outcome
from rlm_loop.repl.base import Session

_TYPES = {"int": int}
_QUESTION = "What is the answer?"


def play(case: ReplyCase, repl: str | Callable[[], Session] = "auto") -> Played:
    """Run the case's loop over its replies; what it came to.  `repl` is as for `ToolLoopAgent`."""
    settings = dict(case.settings)
    if "budget" in settings:
        settings["budget"] = Budget(**settings["budget"])
    if "answer_type" in settings:
        settings["answer_type"] = _TYPES[settings["answer_type"]]
    model = ScriptedModel(_reply(reply) for reply in case.replies)
    agent: Any = ToolLoopAgent if case.loop == "tool-loop" else LeanAgent
    if agent is LeanAgent:
        settings["presentation"] = "native"
    began = time.monotonic()
    exhausted = False
    try:
        outcome: Outcome = agent(model=model, repl=repl, **settings).run(_QUESTION, context=case.context)
    except ModelError as error:
        outcome, exhausted = cast("Outcome", getattr(error, "outcome")), True  # noqa: B009
    given = next((t.answer for t in outcome.turns if t.answer is not None), None)
    if given is None and outcome.stop != "answered":
        given = next((t.pending for t in reversed(outcome.turns) if t.pending is not None), None)
    return Played(
        answer=() if given is None else (given.value,),
        stop="asked again" if exhausted else str(outcome.stop),
        steps=outcome.steps,
        told="\n" + "\n".join(o.text for t in outcome.turns for o in t.observations),
        seconds=time.monotonic() - began,
    )


def _reply(reply: str | ScriptedReply) -> str | Reply:
    if isinstance(reply, str):
        return reply
    calls = tuple(ToolCall(f"call_{n}", name, arguments) for n, (name, arguments) in enumerate(reply.calls))
    return Reply(reply.text, calls, cast("Any", reply.finish_reason))

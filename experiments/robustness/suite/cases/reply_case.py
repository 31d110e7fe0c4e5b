"""How the cases on replies are written down."""

from __future__ import annotations

from typing import Any

from experiments.robustness.suite.case import ReplyCase, ScriptedReply, Value, block

ANSWER = "final_answer = 42"
FENCE = "`" * 3


def reply(
    name: str,
    does: str,
    must: str,
    *replies: str | ScriptedReply,
    answer: Value | None = None,
    stop: str = "",
    steps: int | None = None,
    shows: tuple[str, ...] = (),
    hides: tuple[str, ...] = (),
    context: Any = None,
    loop: str = "tool-loop",
    needs: frozenset[str] = frozenset(),
    **settings: Any,
) -> ReplyCase:
    return ReplyCase(
        name=name,
        theme="replies: tool calls" if loop == "lean" else "replies",
        does=does,
        must=must,
        replies=replies,
        answer=answer,
        stop=frozenset(stop.split()) if stop else None,
        steps=steps,
        shows=shows,
        hides=hides,
        context=context,
        loop=loop,
        settings=settings,
        needs=needs,
    )


def value(name: str, code: str, value: Any) -> ReplyCase:
    return reply(
        f"final-{name}",
        f"answers {code} through a cell",
        "the run ends with that answer",
        block(f"final_answer = {code}"),
        answer=(value,),
        stop="answered",
        steps=1,
    )

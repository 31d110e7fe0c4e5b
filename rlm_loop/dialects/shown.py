"""Messages of a problem and of a turn, in the parts that every dialect shares."""

from __future__ import annotations

from rlm_loop.actions import Observation
from rlm_loop.dialects.base import Problem
from rlm_loop.dialects.wording import NO_OUTPUT
from rlm_loop.messages import Message, Span
from rlm_loop.outcome import Turn


def task_message(problem: Problem) -> Message:
    """Return the question, and one line about the context variable where there is one."""
    text = "\n".join(filter(None, [problem.question, problem.context]))
    return Message("user", (Span(text, "task"),))


def system_message(*texts: str) -> tuple[Message, ...]:
    """Return a system message of these texts, a line each; none if all are empty."""
    text = "\n".join(filter(None, texts))
    return (Message("system", (Span(text, "system"),)),) if text else ()


def result_span(observation: Observation) -> Span:
    """Return a result as the model sees it: the same words in every dialect."""
    text = observation.text.rstrip("\n")
    return Span(text or NO_OUTPUT, observation.cause)


def result_spans(turn: Turn) -> tuple[Span, ...]:
    """Return the results of a turn's actions, one after another on lines of their own."""
    spans: list[Span] = []
    for observation in turn.observations:
        span = result_span(observation)
        spans.append(Span(("\n" if spans else "") + span.text, span.cause))
    return tuple(spans)


def assistant_message(turn: Turn, text: str | None = None) -> Message:
    """Return the model's words in a turn, or the part of them that counts."""
    said = turn.reply.text if text is None else text
    return Message("assistant", (Span(said, "assistant"),) if said else (), turn=turn.index)


def user_results(turn: Turn) -> Message:
    """Return all results of a turn as one user message."""
    return Message("user", result_spans(turn), turn=turn.index)

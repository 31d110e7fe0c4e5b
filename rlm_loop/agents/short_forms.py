"""`max_steps=` and `seconds=` of an agent: short for two limits of its budget, when it is made and when it is read."""

from __future__ import annotations

from inspect import Parameter, Signature, signature
from typing import TYPE_CHECKING, Any

from rlm_loop.hints.spelling import nearest

SHORT = ("max_steps", "seconds")

#: What agents of other frameworks are asked for, and how it is said here.
READ_HINTS = {
    **dict.fromkeys(("max_iterations", "max_turns", "steps"), "it is agent.max_steps"),
    **dict.fromkeys(("invoke", "forward", "generate", "kickoff", "solve"), "write agent.run(question)"),
    **dict.fromkeys(("ask", "chat", "memory", "messages"), "with agent.session() as s: s.ask(question)"),
    "llm": "it is agent.model",
    "timeout": "it is agent.seconds",
    "ainvoke": "write await agent.arun(question)",
    "stream": "write agent.run(question, live=True)",
}


class TakesLimits(type):
    """The kind of class that agents are: each takes `max_steps` and `seconds` besides its fields.

    They are no fields: `dataclasses.replace(agent, budget=...)` hands every field back, and these would undo it.
    """

    if not TYPE_CHECKING:  # which checks the arguments by the fields that it is told of

        def __call__(cls, *args: Any, **given: Any) -> Any:
            short = {name: given.pop(name) for name in SHORT if name in given}
            made = super().__call__(*args, **given)
            return made._limited(short) if short else made

    @property
    def __signature__(cls) -> Signature:
        """That of the fields, and the two."""
        own = [p for p in signature(cls.__init__).parameters.values() if p.name != "self"]
        return Signature([*own, *(Parameter(n, Parameter.KEYWORD_ONLY, default=...) for n in SHORT)])


def missing(agent: object, name: str) -> AttributeError:
    """An attribute that agents do not have, with what is meant."""
    kind = type(agent).__name__
    known = [n for n in dir(type(agent)) if not n.startswith("_")]
    said = f": {READ_HINTS[name]}" if name in READ_HINTS else "" if name.startswith("_") else nearest(name, known)
    return AttributeError(f"{kind} has no {name!r}{said}", name=None, obj=agent)

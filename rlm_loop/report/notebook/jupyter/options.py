"""The options of `%%rlm`, and the agent and context that they ask for."""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from keyword import iskeyword
from typing import Any, NoReturn, cast

from rlm_loop.agents import AGENTS, Agent
from rlm_loop.agents.conversation import Conversation
from rlm_loop.models import get_model
from rlm_loop.report.notebook.jupyter.namespace import context_of, named_in


class Misused(ValueError):
    """The line or the cell of the magic is wrong; the message is one line that says what to do."""


@dataclass(frozen=True)
class MagicCall:
    """What a cell asks for, ready to run.  `note` tells the reader what the context is.

    `session` is the variable of a session, and `going` the session itself once it has begun.
    """

    agent: Agent
    question: str
    context: Any
    note: str
    out: str
    trace: str | None
    quiet: bool
    background: bool
    writes: bool = True
    session: str = ""
    going: Conversation | None = None


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise Misused(f"%%rlm: {message}; %%rlm? lists the options")


def parser() -> argparse.ArgumentParser:
    """The options of the magic."""
    made = _Parser(prog="%%rlm", add_help=False, allow_abbrev=False, description="Run an agent on the cell's text.")
    made.add_argument("--model", metavar="NAME", help="a model's name, or a variable that holds a model")
    made.add_argument("--agent", metavar="NAME", help=f"{', '.join(AGENTS)}, or a variable that holds an agent")
    made.add_argument(
        "--context",
        metavar="NAME",
        action="append",
        help="a variable that becomes `context`, as it is; several become a dict by their names "
        "(without this: those that the text names, as a dict)",
    )
    made.add_argument("--no-context", action="store_true", help="give no variable at all")
    made.add_argument("--tools", metavar="NAMES", default="", help="functions of the notebook, by commas")
    made.add_argument(
        "--max-steps", "--steps", dest="steps", type=_number, metavar="N", help="replies of the model at most"
    )
    made.add_argument("--seconds", type=float, metavar="S", help="wall time at most")
    made.add_argument("--tokens", type=_number, metavar="N", help="tokens of the run at most, input plus output")
    made.add_argument(
        "--max-depth", "--depth", dest="depth", type=_number, metavar="N", help="levels of llm_query; 0 forbids it"
    )
    made.add_argument("--seed", type=int, metavar="N", help="passed to the model, where that is given by name")
    made.add_argument("--require-code", action="store_true", help="ask once for code before a text answer counts")
    made.add_argument("--trace", metavar="FILE", help="append what happens to this file")
    made.add_argument("--out", metavar="NAME", default="outcome", help="variable for the outcome (default: outcome)")
    made.add_argument(
        "--session",
        metavar="NAME",
        help="variable of a session: the first cell with it begins the session, the next ones go on with what was said "
        "and with the REPL",
    )
    made.add_argument("--quiet", action="store_true", help="no live view; the outcome is the cell's value")
    made.add_argument("--no-live", action="store_true", help="show a reply when it is there, not while it is written")
    made.add_argument("--background", action="store_true", help="return at once; the variable holds a LiveRun")
    return made


def read_call(line: str, text: str, namespace: Mapping[str, Any], hidden: Collection[str] = ()) -> MagicCall:
    """Read a cell `%%rlm line` with that text.  Raises `Misused` for contradictory or unknown options."""
    try:
        given = parser().parse_args(shlex.split(line))
    except ValueError as error:  # an open quote, and what the parser refuses
        raise Misused(str(error) if isinstance(error, Misused) else f"%%rlm: {error}") from None
    if not text.strip():
        raise Misused("%%rlm: the cell is empty; write below %%rlm what is to be done")
    if not given.out.isidentifier() or iskeyword(given.out):
        raise Misused(f"%%rlm: --out {given.out} is not a variable's name")
    going = None if given.session is None else _session(given, namespace)
    if given.no_context and given.context:
        raise Misused("%%rlm: --context and --no-context cannot both be meant; leave one out")
    names = [name for names in given.context or () for name in names.split(",") if name]
    try:
        if names:
            context, note = context_of(names, namespace), f"context: {', '.join(names)}"
        else:
            found = [] if given.no_context else named_in(text, namespace, hidden)
            context, note = ({name: namespace[name] for name in found} if found else None), _context_note(found)
        if going is not None:
            context, note = _further(going, context, note)
        tools = [_function(name, namespace) for name in given.tools.split(",") if name]
        agent = _agent(given, namespace, tools)
    except Misused:
        raise
    except ValueError as error:  # no such variable; a negative limit
        raise Misused(f"%%rlm: {error}") from None
    return MagicCall(
        agent,
        text.strip("\n"),
        context,
        note,
        given.out,
        given.trace,
        given.quiet,
        given.background,
        not given.no_live,
        given.session or "",
        going,
    )


def _session(given: argparse.Namespace, namespace: Mapping[str, Any]) -> Conversation | None:
    """The session that goes on; `None` where this cell begins it."""
    name = given.session
    if not name.isidentifier() or iskeyword(name):
        raise Misused(f"%%rlm: --session {name} is not a variable's name")
    if name == given.out:
        raise Misused(f"%%rlm: --session and --out are both {name}; the outcome needs a variable of its own")
    found = namespace.get(name)
    if found is not None and not isinstance(found, Conversation):
        raise Misused(f"%%rlm: the variable {name} holds no session but a {type(found).__name__}; choose another name")
    if found is None or found.closed:
        return None
    of_agent = ("model", "agent", "tools", "steps", "seconds", "tokens", "depth", "seed", "require_code", "trace")
    said = [
        option
        for option in of_agent
        if (value := getattr(given, option)) is not None and value not in ("", ()) and value is not False
    ]
    if said:
        raise Misused(
            f"%%rlm: --{said[0].replace('_', '-')} belongs to the cell that began the session {name}; leave it out, or "
            "choose another name for a new session"
        )
    return found


def _further(going: Conversation, context: Any, note: str) -> tuple[Any, str]:
    """The context of a further question: `None` where it brings nothing new."""
    before = going.context
    if context is None or context is before:
        return None, "the session's context"
    if isinstance(context, dict) and isinstance(before, dict):
        new = cast("dict[str, Any]", context)
        there = cast("dict[str, Any]", before)
        if all(name in there and there[name] is value for name, value in new.items()):
            return None, "the session's context"
        return {**there, **new}, _context_note([*dict.fromkeys((*there, *new))])
    return context, note


def _agent(given: argparse.Namespace, namespace: Mapping[str, Any], tools: list[Any]) -> Agent:
    model = None if given.model is None else namespace.get(given.model, given.model)
    if isinstance(model, str):
        get_model(model)  # a name that is none is refused here, before anything is shown
    elif model is not None and not hasattr(model, "complete"):
        raise Misused(f"%%rlm: the variable {given.model} holds no model but a {type(model).__name__}")
    ready = namespace.get(given.agent) if given.agent is not None else None
    if not isinstance(ready, Agent):
        kind = AGENTS.get(given.agent or "tool-loop")
        if kind is None:
            known = ", ".join(AGENTS)
            raise Misused(f"%%rlm: there is no agent {given.agent}: use {known}, or a variable that holds an agent")
        ready = kind(model=os.environ.get("RLM_LOOP_MODEL", "local") if model is None else model)
    limits = {name: getattr(given, name) for name in ("steps", "seconds", "tokens") if getattr(given, name) is not None}
    own: dict[str, Any] = {
        "model": model,
        "max_depth": given.depth,
        "seed": given.seed,
        "require_code": given.require_code or None,
        "tools": (*ready.tools, *tools) if tools else None,
        "budget": replace(ready.budget, **limits) if limits else None,
    }
    return replace(ready, **{name: value for name, value in own.items() if value is not None})


def _function(name: str, namespace: Mapping[str, Any]) -> Any:
    found = context_of([name], namespace)
    if not callable(found):
        raise Misused(f"%%rlm: {name} is no function but a {type(found).__name__}; --tools takes functions")
    return found


def _context_note(names: list[str]) -> str:
    return f"context: a dict of {', '.join(names)}" if names else "no context"


def _number(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"a whole number, 0 or more, not {text}")
    return int(text)

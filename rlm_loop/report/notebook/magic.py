"""`%%rlm`: run an agent on the text of a cell, with variables of the notebook as its context."""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from traceback import extract_tb
from typing import Any, NoReturn

from IPython.core.error import UsageError

from rlm_loop import errors
from rlm_loop.agents import AGENTS, Agent
from rlm_loop.agents.run import Interrupted
from rlm_loop.agents.session import AgentSession
from rlm_loop.models import get_model
from rlm_loop.models.base import Model, ModelError
from rlm_loop.report.notebook.live import LiveRun, LiveView


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        wrong = message.removeprefix("unrecognized arguments: ").split("=")[0].split(" ")[0]
        raise ValueError(f"{message}{errors.nearest(wrong, self._option_string_actions)}; %%rlm? lists the options")


def parser() -> argparse.ArgumentParser:
    """The options of the magic."""
    made = _Parser(prog="%%rlm", add_help=False, allow_abbrev=False, description="Run an agent on the cell's text.")
    made.add_argument("--model", metavar="NAME", help="a model's name, or a variable that holds a model")
    made.add_argument(
        "--agent", metavar="NAME", help=f"{', '.join(AGENTS)}, or a variable that holds an agent or a session"
    )
    made.add_argument(
        "--context", metavar="NAME", help="a variable that becomes `context`, as it is; several, by commas, as a dict"
    )
    made.add_argument("--max-steps", type=int, metavar="N", help="replies of the model at most")
    made.add_argument("--repl", metavar="KIND", help="where cells run: subprocess, sandbox, container, kernel ...")
    made.add_argument("--out", metavar="NAME", default="outcome", help="variable for the outcome (default: outcome)")
    made.add_argument("--background", action="store_true", help="return at once; the variable holds a LiveRun")
    return made


def register(shell: Any) -> None:
    """Add the magic to a shell, and show wrong arguments to this package as its own errors are shown."""

    def rlm(line: str, cell: str) -> None:
        run_cell(shell, line, cell)

    rlm.__doc__ = f"{__doc__}\n\n{parser().format_help()}"
    shell.register_magic_function(rlm, magic_kind="cell", magic_name="rlm")
    shell.set_custom_exc((TypeError, ValueError), _show_error)


def _show_error(shell: Any, kind: Any, error: Any, trace: Any, tb_offset: int | None = None) -> None:
    if extract_tb(trace)[-1].filename.startswith(str(Path(errors.__file__).parent)):
        error._render_traceback_ = partial(errors.brief_traceback, error)
    shell.showtraceback((kind, error, trace), tb_offset=tb_offset)


def run_cell(shell: Any, line: str, cell: str) -> None:
    """Run the agent that a cell asks for; its outcome is kept in a variable, also where it is interrupted or fails.

    Raises `UsageError`, of which a notebook shows one line, and `Interrupted`, so that "run all" stops there.
    """
    try:
        given = parser().parse_args(shlex.split(line))
        if not cell.strip():
            raise ValueError("the cell is empty; write below %%rlm what is to be done")
        if not given.out.isidentifier():
            raise ValueError(f"--out {given.out} is not a variable's name")
        asked, options = _agent(given, shell.user_ns), _context(given.context, shell.user_ns)
    except (ValueError, ModelError) as error:
        raise UsageError(f"%%rlm: {error}") from None
    question, out = cell.strip("\n"), str(given.out)
    ask = asked.ask if isinstance(asked, AgentSession) else asked.run
    if given.background:
        how = f"to stop: {out}.stop() in a cell; what was done until then is kept"
        view = LiveView(note=f"the run is kept as {out}, its outcome as {out}.outcome", how_to_stop=how)
        shell.user_ns[out] = LiveRun(lambda run: ask(question, hooks=(view, run), **options))
        return
    try:
        shell.user_ns[out] = ask(question, hooks=(LiveView(note=f"the outcome is kept as {out}"),), **options)
    except (Interrupted, ModelError, TypeError, ValueError, RuntimeError) as error:
        left = getattr(error, "outcome", None)
        kept = f"what was done is in the variable {out}" if left is not None else ""
        if left is not None:
            shell.user_ns[out] = left
            error.add_note(kept)
        if isinstance(error, Interrupted):
            raise
        raise UsageError("; ".join(filter(None, [f"{type(error).__name__}: {error}", kept]))) from error


def _agent(given: argparse.Namespace, namespace: Mapping[str, Any]) -> Agent | AgentSession:
    """The agent or session that is asked."""
    model = None if given.model is None else namespace.get(given.model, given.model)
    if isinstance(model, str):
        get_model(model)  # a name that is none is refused here, before anything is shown
    elif model is not None and not isinstance(model, Model):
        raise ValueError(f"the variable {given.model} holds no model but a {type(model).__name__}")
    ready = None if given.agent is None else namespace.get(given.agent)
    if isinstance(ready, AgentSession):
        if any(option is not None for option in (model, given.max_steps, given.repl)):
            raise ValueError("--model, --max-steps and --repl belong to the agent of a session; leave them out")
        return ready
    if not isinstance(ready, Agent):
        kind = AGENTS.get(given.agent or "tool-loop")
        if kind is None:
            known = ", ".join(AGENTS)
            raise ValueError(f"there is no agent {given.agent}: use {known}, or a variable that holds an agent")
        ready = kind(model=os.environ.get("RLM_LOOP_MODEL", "local") if model is None else model)
    if given.max_steps is not None:
        ready = replace(ready, budget=replace(ready.budget, steps=given.max_steps))
    if given.repl is not None:
        ready = replace(ready, repl=given.repl)
    return ready if model is None else replace(ready, model=model)


def _context(named: str | None, namespace: Mapping[str, Any]) -> dict[str, Any]:
    names = [name for name in (named or "").split(",") if name]
    if missing := [name for name in names if name not in namespace]:
        raise ValueError(f"there is no variable {', '.join(missing)} in this notebook; run the cell that makes it")
    found = {name: namespace[name] for name in names}
    return {"context": found[names[0]] if len(names) == 1 else found} if names else {}

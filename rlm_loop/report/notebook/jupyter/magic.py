"""`%%rlm`: run an agent on the text of a cell, with variables of the notebook as its context."""

from __future__ import annotations

from typing import Any

from IPython.core.error import UsageError

from rlm_loop.agents import Agent
from rlm_loop.agents.conversation import Conversation
from rlm_loop.agents.loop import Interrupted
from rlm_loop.models.base import ModelError, ModelNotFound
from rlm_loop.report.notebook.jupyter.background import start
from rlm_loop.report.notebook.jupyter.options import MagicCall, Misused, parser, read_call
from rlm_loop.report.notebook.live import LiveView

_NAME = "rlm"


def register(shell: Any) -> None:
    """Add the magic to a shell."""

    def rlm(line: str, cell: str) -> Any:
        return run_cell(shell, line, cell)

    rlm.__doc__ = f"{__doc__}\n\n{parser().format_help()}"
    shell.register_magic_function(rlm, magic_kind="cell", magic_name=_NAME)


def unregister(shell: Any) -> None:
    """Take it away again."""
    shell.magics_manager.magics["cell"].pop(_NAME, None)


def run_cell(shell: Any, line: str, cell: str) -> Any:
    """Run the agent that a cell asks for; its outcome is kept in a variable, also where it is interrupted or fails.

    Raises `UsageError`, of which a notebook shows one line, and `Interrupted`, so that "run all" stops there.
    """
    try:
        wanted = read_call(line, cell, shell.user_ns, shell.user_ns_hidden)
    except (Misused, ModelNotFound) as error:
        raise UsageError(str(error)) from None
    try:
        asked, options = _asked(shell, wanted)
    except ValueError as error:  # an agent that cannot be asked further questions, a path that cannot be read
        raise UsageError(str(error)) from None
    if wanted.background:
        return _in_background(shell, wanted, asked, options)
    view = LiveView(note=f"{wanted.note}; the outcome is kept as {wanted.out}", writes=wanted.writes)
    ask = asked.ask if isinstance(asked, Conversation) else asked.run
    try:
        outcome = ask(wanted.question, hooks=() if wanted.quiet else (view,), **options)
    except Interrupted as stopped:
        shell.user_ns[wanted.out] = stopped.outcome
        stopped.add_note(f"what was done is in the variable {wanted.out}")
        raise
    except Exception as error:
        left = getattr(error, "outcome", None)
        if left is not None:
            shell.user_ns[wanted.out] = left
        if isinstance(error, (ModelError, TypeError, ValueError)) or (wanted.going and type(error) is RuntimeError):
            kept = f"; what was done is in the variable {wanted.out}" if left is not None else ""
            raise UsageError(f"{type(error).__name__}: {error}{kept}") from error
        raise
    shell.user_ns[wanted.out] = outcome
    return outcome if wanted.quiet else None


def _asked(shell: Any, wanted: MagicCall) -> tuple[Agent | Conversation, dict[str, Any]]:
    """Who is asked, an agent or a session, which is begun where it is new; and with which options."""
    if not wanted.session:
        return wanted.agent, {"context": wanted.context, "trace": wanted.trace}
    if wanted.going is not None:
        return wanted.going, {"context": wanted.context}
    begun = wanted.agent.session(context=wanted.context, trace=wanted.trace)
    shell.user_ns[wanted.session] = begun
    return begun, {}


def _in_background(shell: Any, wanted: MagicCall, asked: Agent | Conversation, options: dict[str, Any]) -> None:
    how = f"to stop: the stop button, or {wanted.out}.stop() in a cell; what was done until then is kept"
    note = f"{wanted.note}; the run is kept as {wanted.out}, its outcome as {wanted.out}.outcome"
    view = LiveView(note=note, how_to_stop=how, writes=wanted.writes)
    shell.user_ns[wanted.out] = start(
        asked,
        wanted.question,
        view=view,
        show=not wanted.quiet,
        **options,
    )

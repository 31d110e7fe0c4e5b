"""`rlm-loop run`: one agent on one question."""

from __future__ import annotations

import contextlib
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from rlm_loop.agents import AGENTS, Rules
from rlm_loop.agents.run import Interrupted
from rlm_loop.cli.terminal import INTERRUPTED, Json, Misuse, ModelName, as_json, echo, explain, note
from rlm_loop.errors import nearest
from rlm_loop.report.notebook.formatting import closing_line, visible
from rlm_loop.report.notebook.live import LiveView
from rlm_loop.tools.function import as_tool
from rlm_loop.traces.kept import LOG_VARIABLE, new_log

if TYPE_CHECKING:
    from rlm_loop.outcome import Outcome
    from rlm_loop.tools import Tool


class Strategy(StrEnum):
    """The agents by their names on the command line."""

    TOOL_LOOP = "tool-loop"
    LEAN = "lean"
    REACT = "react"
    DIRECT = "direct"


def run(
    setup: typer.Context,
    question: Annotated[str, Argument(help="What is to be done; - reads it from standard input.")],
    context: Annotated[
        str | None, Option(metavar="FILE", help="A file of any size, as the variable `context`; - is standard input.")
    ] = None,
    agent: Annotated[Strategy, Option(help="The strategy.")] = Strategy.TOOL_LOOP,
    model: ModelName = "local",
    max_steps: Annotated[int | None, Option(min=0, help="Replies of the model at most (default: 20).")] = None,
    seconds: Annotated[float | None, Option(min=0, help="Wall time at most.")] = None,
    max_tokens: Annotated[int | None, Option(min=0, help="Tokens of the whole run at most, input plus output.")] = None,
    repl: Annotated[
        str | None, Option(metavar="KIND", help="Where cells run: auto, plain, hardened, sandbox, kernel ...")
    ] = None,
    workspace: Annotated[
        str | None, Option(metavar="SOURCE", help="A folder or repository to work on: a copy, yours is only read.")
    ] = None,
    patch: Annotated[str | None, Option(metavar="FILE", help="Write the workspace's changes as a git diff.")] = None,
    tools: Annotated[
        list[str] | None,
        Option(metavar="SERVER", help="An MCP server: its command or address."),
    ] = None,
    allow: Annotated[
        str | None, Option(metavar="NAMES", help="The tools that may run, by commas; others are not offered.")
    ] = None,
    trace: Annotated[
        str | None, Option(metavar="FILE", help="Append what happens to this file, not to one in the log folder.")
    ] = None,
    json_: Json = False,
    quiet: Annotated[bool, Option("--quiet", "-q", help="Show the answer only, not the steps.")] = False,
) -> int:
    """Run one agent on a question: its steps as they happen, the answer last.

    Steps go to standard error and the answer to standard output. Exit code: 0 answered, 1 not answered,
    2 the run could not be made (a wrong name, a missing file or key ...), 130 interrupted.
    """
    from rlm_loop.workspace import Workspace

    live = None if quiet or json_ else LiveSteps()
    if trace is None and (kept := new_log()) is not None:
        trace = str(kept)
    try:
        asked, given = _texts(question, context)
        kind: dict[str, Any] = {} if repl is None else {"repl": repl}
        made = AGENTS[agent.value](
            model=setup.obj(model), hooks=() if live is None else (live,), max_steps=max_steps, seconds=seconds, **kind
        )
        made = replace(made, budget=replace(made.budget, tokens=max_tokens))
        if patch is not None and workspace is None:
            raise Misuse("--patch is for what changes in a workspace; name it: --workspace FOLDER")
        own = tuple(tool for source in tools or () for tool in given_tools(source))
        with contextlib.nullcontext() if workspace is None else Workspace(workspace) as space:
            if allow is not None:
                made = replace(made, rules=Rules(allow=allowed(allow, (*own, *(space.tools() if space else ())))))
            outcome = replace(made, tools=own).run(asked, context=given, workspace=space, trace=trace)
        code = 0 if outcome.answered else 1
    except Interrupted as stopped:
        outcome, code = stopped.outcome, INTERRUPTED
    except Exception as error:
        so_far = getattr(error, "outcome", None)
        if json_:
            partial = {} if so_far is None else {"partial": summary(so_far)}
            echo(as_json({"error": explain(error), "answered": False, **partial}))
        elif trace is not None and so_far is not None:
            note(_where(trace))
        raise
    _show(outcome, json_=json_, quiet=quiet)
    if workspace is not None:
        _hand_over(str(outcome.artifact or ""), patch, tell=not json_)
    if code == INTERRUPTED and not json_:
        note(_where(outcome.trace))
    return code


def _texts(question: str, context: str | None) -> tuple[str, Any]:
    """The question and the context: a text of standard input, or a file that a cell reads."""
    from rlm_loop.repl.contexts.on_disk import ContextFile

    if question == "-" and context == "-":
        raise Misuse("question and context cannot both come from standard input; put one of them in a file")
    asked = _input() if question == "-" else question
    if not asked.strip():
        raise Misuse("the question is empty; say what is to be done")
    if context is None or context == "-":
        return asked, None if context is None else _input()
    given = ContextFile(Path(context))
    if given.kind == "bytes":  # more often the wrong file than one that is meant
        raise Misuse(f"{context} is not UTF-8 text; convert it first, or hand it in from Python as bytes")
    return asked, given


def _input() -> str:
    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError as error:
        raise Misuse("standard input is not UTF-8 text; convert it first, for example with iconv") from error


def _show(outcome: Outcome, *, json_: bool, quiet: bool) -> None:
    if json_:
        echo(as_json(summary(outcome)))
        return
    if quiet and not outcome.answered:  # else the view said it
        note(closing_line(outcome))
    if outcome.answer is not None or outcome.answered:
        if not outcome.answered:
            note("the best answer so far:")
        echo(outcome.answer if isinstance(outcome.answer, str) else repr(outcome.answer), exact=True)


def summary(outcome: Outcome) -> dict[str, Any]:
    """An outcome without its turns, as it is printed for machines.  Unknown figures are null, never zero."""
    names = (
        "answer answered answer_form stop reason over_budget steps usage seconds working_seconds "
        "model agent question trace run artifact evidence"
    )
    return {
        **{name: getattr(outcome, name) for name in names.split()},
        "stop": str(outcome.stop),
        "last_reply": outcome.last_reply,
        "usage": dict(vars(outcome.usage)),
        "input_tokens_by_cause": outcome.ledger.by_cause(),
        "tokens_counted": outcome.ledger.counting,
    }


def _where(trace: str | None) -> str:
    if trace is None:
        return f"no trace was kept ({LOG_VARIABLE} is off); --trace FILE keeps one"
    return f"the trace is in {trace}: rlm-loop trace show {trace}"


def given_tools(source: str) -> Iterable[Tool]:
    """The tools of an MCP server.  Raises `Misuse` for a server that cannot be had."""
    from rlm_loop.tools import McpTools

    try:
        found = McpTools(source)
        len(found)  # a server that cannot be used is told of here
    except Exception as error:
        raise Misuse(f"--tools {source}: {type(error).__name__}: {error}") from error
    return found


def allowed(names: str, tools: Sequence[Tool]) -> tuple[str, ...]:
    """The names in a list with commas.  Raises `Misuse` for one that no tool has."""
    wanted = tuple(filter(None, map(str.strip, names.split(","))))
    known = [*(as_tool(each).name for each in tools), "llm_query", "llm_query_batched"]
    if unknown := [name for name in wanted if name not in known]:
        raise Misuse(f"there is no tool {unknown[0]!r}{nearest(unknown[0], known)}; tools are {', '.join(known)}")
    return wanted


def _hand_over(diff: str, path: str | None, *, tell: bool) -> None:
    """Report the size of the patch, and write it to `path` if one is given."""
    if path is not None:
        Path(path).write_text(diff, encoding="utf-8", errors="surrogateescape")
    if tell:
        kept = f"in {path}" if path is not None else "--patch FILE keeps it"
        lines = diff.count("\n")
        note(f"the patch has {lines} lines ({kept}); your copy is unchanged" if diff else "nothing was changed")


class LiveSteps(LiveView):
    """Prints each turn as it ends, and in a terminal one line of what goes on until then."""

    @property
    def on_text(self) -> Callable[..., None] | None:
        return self._hear if sys.stderr.isatty() else None

    def _show(self) -> None:
        if sys.stderr.isatty():
            now = visible(self._now()) if self.running and self._doing else ""
            print(f"\r\x1b[K{now[: shutil.get_terminal_size().columns - 1]}", end="", file=sys.stderr, flush=True)

    def on_run_error(self, *, error: BaseException) -> None:
        """Only clear the line: the command says what was wrong."""
        self._over.set()
        self._show()

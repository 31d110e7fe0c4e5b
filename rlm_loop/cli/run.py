"""`rlm-loop run`: one agent on one question."""

from __future__ import annotations

import contextlib
import runpy
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
from rlm_loop.report.notebook.formatting import action_text, causes_line, closing_line, visible
from rlm_loop.report.notebook.live import LiveView
from rlm_loop.traces.kept import LOG_VARIABLE, new_log

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live

    from rlm_loop.actions import CallTool, RunCode
    from rlm_loop.outcome import Outcome, Turn
    from rlm_loop.tools import Tool
    from rlm_loop.workspace import Workspace

#: Lines of a reply that is being written.
WRITTEN = 12


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
        Option(metavar="SOURCE", help="An MCP server (command, URL) or a FILE.py with @tool functions."),
    ] = None,
    allow: Annotated[
        list[str] | None, Option(metavar="NAMES", help="The tools that may run, by commas; others are not offered.")
    ] = None,
    approve: Annotated[bool, Option("--approve", help="Ask in the terminal before each cell and tool call.")] = False,
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
    if trace is None and (kept := new_log(tell=not json_)) is not None:
        trace = str(kept)
    try:
        if approve and ("-" in (question, context) or not sys.stdin.isatty()):
            raise Misuse("--approve asks in a terminal, standard input is none here; --allow names tools that may run")
        asked, given = _texts(question, context)
        kind: dict[str, Any] = {} if repl is None else {"repl": repl}
        made = AGENTS[agent.value](
            model=setup.obj(model), hooks=() if live is None else (live,), max_steps=max_steps, seconds=seconds, **kind
        )
        made = replace(made, budget=replace(made.budget, tokens=max_tokens))
        if patch is not None and workspace is None:
            raise Misuse("--patch is for what changes in a workspace; name it: --workspace FOLDER")
        with contextlib.ExitStack() as until:
            own = tuple(tool for source in tools or () for tool in given_tools(source, until))
            space = None if workspace is None else until.enter_context(Workspace(workspace))
            rules = Rules(allow=allowed(allow, own, space), approve=asking(live) if approve else None)
            outcome = replace(made, tools=own, rules=rules).run(asked, context=given, workspace=space, trace=trace)
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
    finally:
        if live is not None:
            live.stop()
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
        echo(outcome.answer if isinstance(outcome.answer, str) else repr(outcome.answer))


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


def given_tools(source: str, until: contextlib.ExitStack) -> Iterable[Tool]:
    """The tools of a server, ended with `until`, or the `@tool` functions of a Python file, which is run."""
    from rlm_loop.tools import Tool, mcp_tools

    try:
        if not source.endswith(".py") or (" " in source and not Path(source).exists()):
            return until.enter_context(mcp_tools(source))
        folder = str(Path(source).resolve().parent)
        sys.path.insert(0, folder)
        until.callback(sys.path.remove, folder)
        names = runpy.run_path(source, run_name=Path(source).stem)
    except Exception as error:
        raise Misuse(f"--tools {source}: {type(error).__name__}: {error}") from error
    made = list({id(v): v for v in names.values() if isinstance(v, Tool)}.values())
    if not made:
        raise Misuse(f"--tools {source}: no function in it is marked with @tool (from rlm_loop import tool)")
    return made


def allowed(names: list[str] | None, tools: Sequence[Tool], space: Workspace | None) -> tuple[str, ...] | None:
    """The names of the allowed tools.  Raises `Misuse` for an unknown tool."""
    if names is None:
        return None
    from rlm_loop.errors import nearest
    from rlm_loop.tools.function import as_tool

    wanted = tuple(name.strip() for each in names for name in each.split(",") if name.strip())
    files = () if space is None else space.tools()
    known = [*(as_tool(each).name for each in (*tools, *files)), "llm_query", "llm_query_batched"]
    for name in wanted:
        if name not in known:
            hint = "" if files else " (those for files come with --workspace)"
            raise Misuse(f"there is no tool {name!r}{nearest(name, known)}; tools are {', '.join(known)}{hint}")
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
    """Prints each turn as it ends; in a terminal with the reply while the model writes it, and its tokens by cause."""

    def __init__(self, console: Console | None = None) -> None:
        from rich.console import Console

        super().__init__()
        self._console = console or Console(stderr=True)
        self._animation: Live | None = None

    @property
    def on_text(self) -> Callable[..., None] | None:
        return self._hear if self._console.is_terminal and not self._console.is_dumb_terminal else None

    def on_step_start(self, *, turn_index: int) -> None:
        super().on_step_start(turn_index=turn_index)
        if self.on_text is None or self._calls.agents:
            return
        from rich.live import Live
        from rich.spinner import Spinner

        self.stop()
        spinner = Spinner("dots", style="status.spinner")
        self._animation = Live(console=self._console, get_renderable=lambda: self._moment(spinner), transient=True)
        self._animation.start()

    def _moment(self, spinner: RenderableType) -> RenderableType:
        from rich.console import Group
        from rich.text import Text

        spinner.update(text=Text(visible(self._now())))  # pyright: ignore
        written = Text(self._writing.shown).wrap(self._console, self._console.width)[-WRITTEN:]
        causes = causes_line(self._ledger.by_cause(), self._ledger.counting)
        return Group(spinner, *written, Text(causes, style="dim", no_wrap=True, overflow="ellipsis"))

    def on_step_end(self, *, turn: Turn) -> None:
        if not self._calls.agents:
            self.stop()
        super().on_step_end(turn=turn)

    def on_run_end(self, *, outcome: Outcome) -> None:
        self.stop()
        super().on_run_end(outcome=outcome)

    def on_run_error(self, *, error: BaseException) -> None:
        """Only stop: the command says what was wrong."""
        self.stop()

    def stop(self) -> None:
        """End the animation; called again it does nothing."""
        if self._animation is not None:
            self._animation.stop()
            self._animation = None


def asking(live: LiveSteps | None, read: Callable[[], str] = input) -> Callable[[RunCode | CallTool], bool | str]:
    """Make a `Rules.approve` that shows the whole action and reads one line.

    "y" runs it, "a" runs it and all that follow, "n" or an empty line refuses it, and any other text refuses it with
    that text as the reason the model is told.  The end of the input refuses, too.
    """
    every = False

    def user(action: RunCode | CallTool) -> bool | str:  # the trace names who decided by the function's name
        nonlocal every
        if every:
            return True
        if live is not None:
            live.stop()  # an animation would write over the question
        label, text = action_text(action)
        note(f"\n{label}:\n{visible(text)}")
        note("Run this? [y]es, [a]ll from now on, [n]o, or a reason for the model:")
        reply = read().strip()
        every = reply.lower() in ("a", "all")
        if every or reply.lower() in ("y", "yes"):
            return True
        return reply if reply.lower() not in ("n", "no", "") else False

    return user

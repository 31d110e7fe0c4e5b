"""`rlm-loop run`: one agent on one question."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from rlm_loop.agents import Rules
from rlm_loop.cli.setup import (
    ANSWERED,
    INTERRUPTED,
    NOT_ANSWERED,
    Misuse,
    ModelName,
    as_json,
    explain,
    read_text,
    setup_of,
)
from rlm_loop.cli.terminal import echo, note, notes

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from rlm_loop.agents import Agent
    from rlm_loop.cli.steps import AskInTerminal, LiveSteps
    from rlm_loop.outcome import Outcome
    from rlm_loop.tools import Tool
    from rlm_loop.workspace import Workspace


class Strategy(StrEnum):
    """The agents by their names on the command line."""

    TOOL_LOOP = "tool-loop"
    LEAN = "lean"
    REACT = "react"
    DIRECT = "direct"


def run(
    context: typer.Context,
    question: Annotated[str, Argument(help="What is to be done; - reads it from standard input.")],
    context_file: Annotated[
        str | None,
        Option(
            "--context",
            metavar="FILE",
            help="A file of any size that becomes the variable `context`; - is text from standard input.",
        ),
    ] = None,
    agent: Annotated[Strategy, Option(help="The strategy.")] = Strategy.TOOL_LOOP,
    model: ModelName = "local",
    max_steps: Annotated[
        int | None, Option(min=0, help="Replies of the model at most (default: 20, of react 50).")
    ] = None,
    seconds: Annotated[float | None, Option(min=0, help="Wall time at most.")] = None,
    temperature: Annotated[
        float | None, Option(min=0, max=2, help="Sent with each request, in place of the model's own.")
    ] = None,
    repl: Annotated[
        str | None, Option(metavar="KIND", help="Where cells run: auto, plain, hardened, sandbox, kernel ...")
    ] = None,
    max_tokens: Annotated[int | None, Option(min=0, help="Tokens of the whole run at most, input plus output.")] = None,
    reply_tokens: Annotated[int | None, Option(min=1, help="Tokens of one reply at most.")] = None,
    require_code: Annotated[
        bool, Option("--require-code", help="Ask once for code before an answer in plain text counts.")
    ] = False,
    max_depth: Annotated[int | None, Option(min=0, help="Levels of llm_query; 0 forbids it (default: 1).")] = None,
    workspace: Annotated[
        str | None, Option(metavar="SOURCE", help="A folder or repository to work on: a copy, yours is only read.")
    ] = None,
    patch: Annotated[
        str | None, Option(metavar="FILE", help="Write what changed in the workspace there, as a git diff.")
    ] = None,
    tools: Annotated[
        list[str] | None,
        Option(
            metavar="SOURCE",
            help="Tools: an MCP server (command or URL), or a FILE.py with functions marked @tool.",
        ),
    ] = None,
    allow: Annotated[
        list[str] | None, Option(metavar="NAMES", help="The tools that may run, by commas; others are not offered.")
    ] = None,
    approve: Annotated[
        bool,
        Option("--approve", help="Ask in the terminal before each cell and tool call; what you refuse is not run."),
    ] = False,
    history: Annotated[
        str | None,
        Option(
            metavar="POLICY", help="Shortens a long history: drop_outputs, window, summary, or a number of messages."
        ),
    ] = None,
    seed: Annotated[int | None, Option(help="Passed to the model.")] = None,
    trace: Annotated[str | None, Option(metavar="FILE", help="Append what happens to this file.")] = None,
    json_: Annotated[bool, Option("--json", help="One JSON object on standard output and nothing else.")] = False,
    quiet: Annotated[bool, Option("--quiet", "-q", help="Show the answer only, not the steps.")] = False,
    no_live: Annotated[
        bool, Option("--no-live", help="Show a reply when it is there, not while the model writes it.")
    ] = False,
) -> int:
    """Run one agent on a question: its steps as they happen, the answer last.

    Steps go to standard error and the answer to standard output. Exit code: 0 answered, 1 not answered,
    2 the run could not be made (a wrong name, a missing file or key ...), 130 interrupted.
    """
    from rlm_loop.agents import AGENTS
    from rlm_loop.agents.run import Interrupted
    from rlm_loop.cli.steps import LiveSteps

    live = None if quiet or json_ else LiveSteps(notes(), writes=not no_live)
    try:
        asking = _asking(live, "-" in (question, context_file)) if approve else None
        asked, given = _texts(question, context_file)
        chosen = setup_of(context).models(model, **({} if seed is None else {"seed": seed}))
        wanted = _wanted(
            max_steps=max_steps,
            seconds=seconds,
            temperature=temperature,
            repl=repl,
            max_depth=max_depth,
            history=int(history) if history and history.isdigit() else history,
        )
        made = _made(
            AGENTS[agent.value],
            model=chosen,
            max_tokens=reply_tokens,
            rules=Rules(require_code=require_code, approve=asking),
            hooks=() if live is None else (live,),
            **wanted,
        )
        made = replace(made, budget=replace(made.budget, tokens=max_tokens))
        with given_tools(tools or ()) as own, opened(workspace, patch) as space:
            rules = replace(made.rules, allow=allowed(allow, own, space))
            made = replace(made, tools=own, rules=rules)
            outcome = made.run(asked, context=given, workspace=space, trace=trace)
    except Interrupted as stopped:
        _stop(live)
        _show(stopped.outcome, json_=json_, quiet=quiet)
        if workspace is not None:
            hand_over(str(stopped.outcome.artifact or ""), patch, tell=not json_)
        if not json_:
            note(_where(stopped.outcome.trace))
        return INTERRUPTED
    except Exception as error:
        _stop(live)
        if json_:
            echo(as_json({"error": explain(error), "answered": False, **_partial(error)}))
        elif trace is not None and getattr(error, "outcome", None) is not None:
            note(_where(trace))
        raise
    _stop(live)
    _show(outcome, json_=json_, quiet=quiet)
    if workspace is not None:
        hand_over(str(outcome.artifact or ""), patch, tell=not json_)
    return ANSWERED if outcome.answered else NOT_ANSWERED


def _asking(live: LiveSteps | None, input_is_taken: bool) -> AskInTerminal:
    """The prompt for `--approve`; it needs a terminal to ask in."""
    from rlm_loop.cli.steps import AskInTerminal

    if input_is_taken or not sys.stdin.isatty():
        raise Misuse("--approve asks in a terminal and standard input is none here; --allow names tools that may run")
    return AskInTerminal(notes(), live)


def _made(agent: type[Agent], **settings: Any) -> Agent:
    """The agent.  Raises `Misuse` for a setting that cannot be."""
    try:
        return agent(**settings)
    except ValueError as error:
        raise Misuse(str(error)) from error


def _wanted(**options: Any) -> dict[str, Any]:
    """The options that were given; for the others an agent has its own defaults."""
    return {k: v for k, v in options.items() if v is not None}


def _texts(question: str, context_file: str | None) -> tuple[str, Any]:
    from rlm_loop.repl.contexts.on_disk import ContextFile, as_context

    if question == "-" and context_file == "-":
        raise Misuse("question and context cannot both come from standard input; put one of them in a file")
    asked = read_text("-", stdin=sys.stdin.buffer.read) if question == "-" else question
    if not asked.strip():
        raise Misuse("the question is empty; say what is to be done")
    if context_file is None or context_file == "-":
        return asked, None if context_file is None else read_text("-", stdin=sys.stdin.buffer.read)
    given = as_context(Path(context_file))
    if isinstance(given, ContextFile) and given.kind == "bytes":  # more often the wrong file than one that is meant
        raise Misuse(
            f"{context_file} is not UTF-8 text; convert it first, for example with iconv, "
            "or hand it in from Python as bytes: run(question, context=Path(...))"
        )
    return asked, given


def _show(outcome: Outcome, *, json_: bool, quiet: bool) -> None:
    from rlm_loop.report.notebook.formatting import closing_line

    if json_:
        echo(as_json(summary(outcome)))
        return
    if not quiet or not outcome.answered:
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


def _partial(error: Exception) -> dict[str, Any]:
    outcome = getattr(error, "outcome", None)
    return {} if outcome is None else {"partial": summary(outcome)}


def _where(trace: str | None) -> str:
    if trace is None:
        return "no trace was kept; --trace FILE keeps one"
    return f"the trace is in {trace}: rlm-loop trace show {trace}"


def _stop(live: Any) -> None:
    if live is not None:
        live.stop()


@contextlib.contextmanager
def given_tools(sources: Sequence[str]) -> Generator[tuple[Tool, ...]]:
    """The tools of all sources, in order; servers are ended with the block.  Raises `Misuse`."""
    from rlm_loop.tools import McpError, mcp_tools

    found: list[Tool] = []
    with contextlib.ExitStack() as until:
        for source in sources:
            if source.endswith(".py") and (Path(source).exists() or len(source.split()) == 1):
                found += tools_in(Path(source))
                continue
            try:
                found += until.enter_context(mcp_tools(source))
            except (McpError, ImportError, ValueError) as error:
                raise Misuse(f"--tools {source}: {error}") from error
        yield tuple(found)


def tools_in(path: Path) -> list[Tool]:
    """The functions marked with `@tool` in a Python file, which is run.  Raises `Misuse`."""
    from rlm_loop.tools import Tool

    spec = importlib.util.spec_from_file_location(path.stem, path)
    if not path.is_file() or spec is None or spec.loader is None:
        raise Misuse(f"--tools {path}: there is no such file; a server is a command or a URL")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem], before = module, sys.modules.get(path.stem)
    sys.path.insert(0, str(path.resolve().parent))
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise Misuse(f"--tools {path} cannot be run: {type(error).__name__}: {error}") from error
    finally:
        sys.path.pop(0)
        if before is not None:  # what the program itself has by that name
            sys.modules[path.stem] = before
    found = list({id(v): v for v in vars(module).values() if isinstance(v, Tool)}.values())
    if not found:
        raise Misuse(f"--tools {path}: no function in it is marked with @tool (from rlm_loop import tool)")
    return found


@contextlib.contextmanager
def opened(source: str | None, patch: str | None) -> Generator[Workspace | None]:
    """A workspace of the source, closed at the end."""
    if source is None:
        if patch is not None:
            raise Misuse("--patch is for what changes in a workspace; name it: --workspace FOLDER")
        yield None
        return
    from rlm_loop.workspace import Workspace, WorkspaceError

    try:
        space = Workspace(source)
    except WorkspaceError as error:
        raise Misuse(str(error)) from error
    with space:
        yield space


def allowed(names: list[str] | None, tools: Sequence[Tool], space: Workspace | None) -> tuple[str, ...] | None:
    """The names of the allowed tools.  Raises `Misuse` for an unknown tool."""
    if names is None:
        return None
    from rlm_loop.errors import nearest
    from rlm_loop.tools.function import as_tool

    wanted = tuple(name.strip() for each in names for name in each.split(",") if name.strip())
    known = [
        *(as_tool(t).name for t in (*tools, *(space.tools() if space is not None else ()))),
        "llm_query",
        "llm_query_batched",
    ]
    for name in wanted:
        if name not in known:
            hint = "" if space is not None else " (those for files come with --workspace)"
            raise Misuse(f"there is no tool {name!r}{nearest(name, known)}; tools are {', '.join(known)}{hint}")
    return wanted


def hand_over(diff: str, path: str | None, *, tell: bool) -> None:
    """Report the size of the patch, and write it to `path` if one is given."""
    if path is not None:
        Path(path).write_text(diff, encoding="utf-8", errors="surrogateescape")
    if tell:
        lines = diff.count("\n")
        kept = f"in {path}" if path is not None else "--patch FILE keeps it"
        said = f"the patch has {lines} lines ({kept}); your copy is unchanged" if diff else "nothing was changed"
        note(said)

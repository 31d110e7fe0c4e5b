"""The command line `rlm-loop`: puts the sub-commands together, and turns errors into one line."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer
import typer.main
from typer import Option

from rlm_loop.cli import machine, meter, run, study, trace
from rlm_loop.cli.terminal import INTERRUPTED, MISUSE, Models, echo, explain, note
from rlm_loop.models import get_model
from rlm_loop.versions import __version__

app = typer.Typer(
    name="rlm-loop",
    help="Small agent loops side by side: what each costs in tokens, and what each resolves.",
    no_args_is_help=True,
)
for command in (run.run, study.compare, study.demo, machine.doctor, meter.meter, meter.view):
    app.command()(command)
for group in (machine.models, study.app, study.swebench, trace.app):
    app.add_typer(group)


def _version(wanted: bool) -> None:
    if wanted:
        echo(f"rlm-loop {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    debug: Annotated[bool, Option("--debug", help="Show the traceback of an error (anywhere in the line).")] = False,
) -> None:
    """Options of every command; `main` has taken `--debug` out of the line before this is reached."""


@functools.cache
def _commands() -> Callable[..., object]:
    """The tree of commands, built once a process: `app(...)` would read every signature anew at each call (60 ms)."""
    return typer.main.get_command(app)


def main(argv: Sequence[str] | None = None, models: Models | None = None) -> int:
    """Run a command line and return its exit code.

    `argv` is the line without the program's name (default: this process's).  `models` turns a name into a model
    (default: `rlm_loop.models.get_model`), so that a test can hand in its own.
    """
    arguments, debug = _without_debug(list(sys.argv[1:] if argv is None else argv))
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, ValueError):  # an answer may hold what the terminal cannot show
            stream.reconfigure(errors="backslashreplace")  # pyright: ignore[reportAttributeAccessIssue]
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _warned
            code = _commands()(args=arguments, prog_name="rlm-loop", standalone_mode=False, obj=models or get_model)
        sys.stdout.flush()
    except (typer.Abort, KeyboardInterrupt):
        note("interrupted")
        return INTERRUPTED
    except BrokenPipeError:  # the reader (`head`, a pager) has gone: nothing is left to say, nor to flush at exit
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        if debug:
            raise
        note(_complaint(error))
        return MISUSE
    return code if isinstance(code, int) else 0


def _warned(message: Warning | str, *_: Any) -> None:
    note(f"note: {message}")


def _without_debug(arguments: list[str]) -> tuple[list[str], bool]:
    end = arguments.index("--") if "--" in arguments else len(arguments)
    options = [a for a in arguments[:end] if a != "--debug"]
    return options + arguments[end:], len(options) < end


def _complaint(error: Exception) -> str:
    """Return one line.  Mistakes in the line itself (an unknown option ...) are worded by the parser."""
    worded = getattr(error, "format_message", None)
    if worded is None:
        return f"error: {explain(error)}"
    if type(error).__name__ == "NoArgsIsHelpError":
        return str(worded())
    context = getattr(error, "ctx", None)
    where = context.command_path if context is not None else "rlm-loop"
    return f"error: {' '.join(str(worded()).split()).rstrip('.')}; see `{where} --help`"


if __name__ == "__main__":
    sys.exit(main())

"""Writes the reference of the command line from the commands themselves: what `--help` says, as one page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click
import typer
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from rlm_loop.cli.main import app

PATH = "reference/command_line.md"


def commands(command: Any, path: tuple[str, ...] = ("rlm-loop",)) -> Iterator[tuple[str, Any, Any]]:
    """Every command with its full name and its context; groups only lead to others."""
    context = command.make_context(" ".join(path), [], resilient_parsing=True)
    inner = getattr(command, "commands", None)
    if inner is None:
        yield " ".join(path), command, context
        return
    for name, child in inner.items():
        if not child.hidden:
            yield from commands(child, (*path, name))


def cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def section(name: str, command: Any, context: Any) -> str:
    """One command: how it is called, what it does, its arguments and options."""
    rows: list[str] = []
    for parameter in command.params:
        if getattr(parameter, "hidden", False) or parameter.name == "help":
            continue
        record = parameter.get_help_record(context)
        if record is not None:
            option = " ".join(record[0].split()).replace("|", "/")  # a span of code: nothing else to escape
            rows.append(f"| `{option}` | {cell(record[1])} |")
    usage = " ".join(command.collect_usage_pieces(context))
    parts = [f"## {name}", click.unstyle(command.help or "").strip(), f"```console\n$ {name} {usage}\n```"]
    if rows:
        parts.append("\n".join(["| option | meaning |", "|---|---|", *rows]))
    return "\n\n".join(filter(None, parts))


def page() -> str:
    found = [section(*one) for one in commands(typer.main.get_command(app))]
    return "\n\n".join(["# The command line", "What `--help` says, made from the commands themselves.", *found]) + "\n"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    files.append(File.generated(config, PATH, content=page()))
    next(entry["Reference"] for entry in config.nav or [] if "Reference" in entry).insert(0, {"Command line": PATH})
    return files

"""The examples of the documentation, as they stand in the Markdown files.

A ```python block is run, in order with the others of its page and in one namespace.  A ```console block has commands
after `$`; those of `rlm-loop` are run, and each line shown below has to be in the output (`...` stands for any).
HTML comments before a block, which readers do not see, say what is otherwise:

    <!-- not run: needs a GPU -->     why an example is not run; its names and options are checked all the same
    <!-- prints -->                   the next block is what the example before it printed
    <!-- setup                        Python that is run and not shown
    ... -->
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import typer.main
from markdown_it import MarkdownIt

import rlm_loop
from rlm_loop.cli.main import app

ROOT = Path(__file__).parents[1]
COMMENT = re.compile(r"\s*<!--\s*(not run: *(?P<why>.+?)|(?P<prints>prints)|setup\n(?P<setup>.*?))\s*-->\s*", re.DOTALL)


@dataclass(frozen=True)
class Block:
    """One block: `kind` is its language, `setup`, or `indented`; `line` the first line of its text, from 1.

    `why` it is not run (empty: it is), and whether it is what was `printed` before.
    """

    page: Path
    kind: str
    text: str
    line: int
    why: str = ""
    printed: bool = False

    @property
    def where(self) -> str:
        return f"{str(self.page).removeprefix(f'{ROOT}/')}:{self.line}"

    def commands(self) -> list[tuple[list[str], list[str]]]:
        """The commands of a console block as words, each with the lines of output that are shown."""
        found: list[tuple[list[str], list[str]]] = []
        for line in self.text.replace("\\\n", " ").splitlines():
            if line.startswith("$ "):
                found.append((shlex.split(line[2:], comments=True), []))
            elif found and line.strip():
                found[-1][1].append(line)
        return found


def pages() -> list[Path]:
    """The pages of the site that are written by hand."""
    return sorted((ROOT / "docs").rglob("*.md"))


def blocks(page: Path) -> list[Block]:
    """All blocks of a page, in order."""
    found: list[Block] = []
    why, printed = "", False
    for token in MarkdownIt().parse(page.read_text(encoding="utf-8")):
        line = token.map[0] if token.map else 0
        if token.type == "html_block" and (comment := COMMENT.fullmatch(token.content)):
            why, printed = comment["why"] or "", bool(comment["prints"])
            if comment["setup"]:
                found.append(Block(page, "setup", comment["setup"], line + 2))
        elif token.type in ("fence", "code_block"):
            fenced = token.type == "fence"
            kind = (token.info.split() or [""])[0] if fenced else "indented"
            found.append(Block(page, kind, token.content, line + 1 + fenced, why, printed))
            why, printed = "", False
    return found


# -- examples that are not run: do the names and options still exist?


def rlm_loop_commands(text: str) -> Iterator[list[str]]:
    """The words of every `rlm-loop` command in a text; what comes after a pipe is another program's."""
    for line in text.replace("\\\n", " ").splitlines():
        command = line.strip().removeprefix("$ ")
        if command.startswith("rlm-loop "):
            try:
                words = shlex.split(command, comments=True)
            except ValueError:  # prose that begins so
                continue
            ends = [words.index(mark) for mark in ("|", "&&", ";", ">") if mark in words]
            yield words[1 : min(ends, default=len(words))]


def unknown_options(text: str) -> list[str]:
    """Commands and options that a text names and that do not exist."""
    return [wrong for words in rlm_loop_commands(text) for wrong in _unknown(words)]


def _unknown(words: list[str]) -> list[str]:
    command, rest = typer.main.get_command(app), list(words)
    while rest and hasattr(command, "commands") and not rest[0].startswith("-"):
        if rest[0] not in command.commands:
            return [rest[0]]
        command = command.commands[rest.pop(0)]
    known = {o for p in command.params for o in (*p.opts, *p.secondary_opts)} | {"--help", "--debug", "--version"}
    return [w for w in rest if re.match(r"--?[a-z]", w) and w.split("=")[0] not in known]


def unknown_names(code: str) -> list[str]:
    """Names imported from this package that are not there, and keywords that its functions do not take."""
    tree, wrong = ast.parse(code), list[str]()
    known: dict[str, Any] = {name: getattr(rlm_loop, name) for name in rlm_loop.__all__}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "rlm_loop":
            module = import_module(str(node.module))
            known |= {a.asname or a.name: getattr(module, a.name, None) for a in node.names}
            wrong += [f"{node.module}.{a.name}" for a in node.names if not hasattr(module, a.name)]
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in known:
            with contextlib.suppress(TypeError, ValueError):  # it has no signature
                takes = inspect.signature(known[node.func.id]).parameters
                if not any(p.kind is p.VAR_KEYWORD for p in takes.values()):
                    wrong += [f"{node.func.id}({k.arg}=)" for k in node.keywords if k.arg and k.arg not in takes]
    return wrong

"""Writes the reference: one page a package with public names, made from their docstrings.

A package is public if its `__init__.py` has an `__all__`.  A name is documented once, on the page of the first package
that has it, so that links to it are unique; the others point there.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "rlm_loop"
#: Modules that people build on, without being exported by a package.
MODULES = ("rlm_loop.messages", "rlm_loop.actions", "rlm_loop.outcome")
#: Read in this order; what is not named comes after, by name.
FIRST = ("rlm_loop", "rlm_loop.agents", "rlm_loop.models", "rlm_loop.study", "rlm_loop.study.statistics")
#: A program of its own: its commands are described in the pages.
LEFT_OUT = ("rlm_loop.cli",)


@dataclass(frozen=True)
class Page:
    """What one page documents: a module, and the public names that are documented here (others are elsewhere)."""

    module: str
    names: tuple[str, ...]
    elsewhere: tuple[tuple[str, str], ...]

    @property
    def path(self) -> str:
        return f"reference/{self.module.replace('.', '_')}.md"

    def text(self) -> str:
        docstring = (import_module(self.module).__doc__ or "").strip()
        body = [f"# {self.module}", described(docstring)]
        body += [f"::: {self.module}.{name}" for name in self.names]
        if self.elsewhere:
            there = ", ".join(f"[`{name}`]({home.replace('.', '_')}.md)" for name, home in self.elsewhere)
            body.append(f"Also here: {there}.")
        return "\n\n".join(filter(None, body)) + "\n"


def described(docstring: str) -> str:
    """A docstring as Markdown: its examples (`>>>`, or indented) become blocks of code."""
    lines: list[str] = []
    fenced = False
    for line in docstring.splitlines():
        code = line.lstrip().startswith((">>>", "...")) or (fenced and bool(line.strip()))
        if code != fenced:
            lines.append("```python" if code else "```")
            fenced = code
        lines.append(line.strip().removesuffix("# doctest: +SKIP").rstrip() if code else line)
    if fenced:
        lines.append("```")
    return "\n".join(lines)


def public_packages() -> list[str]:
    """The packages with an `__all__` of their own."""
    found: list[str] = []
    for init in sorted(PACKAGE.rglob("__init__.py")):
        name = ".".join(init.relative_to(ROOT).parts[:-1])
        if name.startswith(LEFT_OUT):
            continue
        tree = ast.parse(init.read_text(encoding="utf-8"))
        if any(isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == "__all__" for n in tree.body):
            found.append(name)
    return sorted(found, key=lambda n: (FIRST.index(n) if n in FIRST else len(FIRST), n))


def public_names(module: str) -> list[str]:
    """`__all__`, or the documented classes and functions that a module defines itself."""
    there = import_module(module)
    given = getattr(there, "__all__", None)
    if given is not None:
        return [name for name in given if not name.startswith("_")]
    own = [(n, v) for n, v in vars(there).items() if getattr(v, "__module__", "") == module and not n.startswith("_")]
    return [name for name, value in own if callable(value) and getattr(value, "__doc__", None)]


def pages() -> list[Page]:
    """All pages, in order."""
    home: dict[int, str] = {}
    found: list[Page] = []
    for module in [*public_packages(), *MODULES]:
        here: list[str] = []
        elsewhere: list[tuple[str, str]] = []
        for name in public_names(module):
            value: Any = getattr(import_module(module), name)
            known = home.get(id(value)) if callable(value) else None
            if known is None:
                here.append(name)
                home[id(value)] = module
            else:
                elsewhere.append((name, known))
        if here:
            found.append(Page(module, tuple(here), tuple(elsewhere)))
    return found


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages, and list them in the tab `Reference`."""
    made = pages()
    for page in made:
        files.append(File.generated(config, page.path, content=page.text()))
    tab(config, "Reference").append({"From docstrings": [{page.module: page.path} for page in made]})
    return files


def tab(config: MkDocsConfig, title: str) -> list[Any]:
    """The entries of a tab of the navigation; what is appended shows."""
    return next(entry[title] for entry in config.nav or [] if title in entry)

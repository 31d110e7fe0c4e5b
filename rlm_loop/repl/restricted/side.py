"""The REPL in the process of a restricted session: the worker's own, with guards around its cells.

The process imports this folder and `worker.py` by their place, not the package.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
from types import CodeType, ModuleType
from typing import Any

from ..worker import AnswerSlot, Link, Repl
from .guards import restricted_builtins
from .policy import Policy


class RestrictedRepl(Repl):
    """The REPL of restricted cells.  The setup code is the host's own, and has no guards around it."""

    def __init__(self, link: Link, cap: int, imports: list[str]) -> None:
        super().__init__(link, cap)
        self.guarded = restricted_builtins(imports, self.folder, self.names)
        self.names["__builtins__"] = self.guarded
        self.answer = AnswerSlot(self.names, self.guarded)
        self.trusted = False

    def compiled(self, tree: Any, file: str, mode: str) -> CodeType:
        if not self.trusted:
            tree = ast.fix_missing_locations(Policy(file).visit(tree))
        return super().compiled(tree, file, mode)

    def _job_exec(self, job: dict[str, Any], report: dict[str, Any]) -> None:
        if job["file"] != "<setup>":
            super()._job_exec(job, report)
            return
        cells = self.names
        self.names, self.trusted = {**cells, "__builtins__": builtins}, True
        try:
            super()._job_exec(job, report)
        finally:
            made, self.names, self.trusted = self.names, cells, False
        for name, value in made.items():
            if isinstance(value, ModuleType):
                with contextlib.suppress(ImportError):
                    cells[name] = self.guarded["__import__"](value.__name__, fromlist=("",))
            elif not name.startswith("_"):
                cells[name] = value

    def _tidy(self) -> list[str]:
        restored = super()._tidy()
        self.names["__builtins__"] = self.guarded
        return restored

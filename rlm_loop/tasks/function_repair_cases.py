"""The functions of the suite `function_repair`: right sources, and the one change that breaks each.

They are read from `data/function_repair.json`.  Inputs are Python literals; what is expected is what the right source
returns.  Neighbours are alike in kind and level.  No change makes a function run for ever.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

from rlm_loop.tasks.packaged import packaged

Arguments = tuple[Any, ...]


@dataclass(frozen=True)
class Case:
    """One function: `right` is in `source` exactly once, and `wrong` in its place is the bug."""

    name: str
    level: int
    kind: str
    source: str
    right: str
    wrong: str
    visible: tuple[Arguments, ...]
    hidden: tuple[Arguments, ...]

    def __post_init__(self) -> None:
        if self.source.count(self.right) != 1:
            raise ValueError(f"{self.name}: {self.right!r} is in the source {self.source.count(self.right)} times")

    @property
    def buggy(self) -> str:
        return self.source.replace(self.right, self.wrong)

    @classmethod
    def of(cls, row: dict[str, Any]) -> Case:
        """A row of the file: the source line by line, the arguments of each call as a Python literal."""
        values: dict[str, Any] = dict(row)
        values["source"] = "".join(f"{line}\n" for line in row["source"])
        for which in ("visible", "hidden"):
            values[which] = tuple(map(ast.literal_eval, row[which]))
        return cls(**values)


CASES: tuple[Case, ...] = tuple(map(Case.of, packaged("function_repair.json")))

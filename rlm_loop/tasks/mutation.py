"""A slip in Python source: a stretch of one line replaced, so that its repair is a one-line diff."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutation:
    """Replace `before`, which starts in `line` (from 1) at `column` (characters, from 0), with `after`."""

    line: int
    column: int
    before: str
    after: str
    kind: str


def apply(source: str, mutation: Mutation) -> str:
    """The mutated source; `ValueError` where `before` does not stand at its place.

    A line of which nothing is left goes as a whole.
    """
    lines = source.split("\n")
    if 1 <= mutation.line <= len(lines):
        line = lines[mutation.line - 1]
        end = mutation.column + len(mutation.before)
        if line[mutation.column : end] == mutation.before:
            changed = line[: mutation.column] + mutation.after + line[end:]
            lines[mutation.line - 1 : mutation.line] = [changed] if changed.strip() else []
            return "\n".join(lines)
    raise ValueError(f"line {mutation.line} has no {mutation.before!r} at column {mutation.column}")

"""An outcome as Markdown: for front ends that show it, and to be pasted into an issue or a README."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from rlm_loop.actions import RunCode
from rlm_loop.report.notebook.run_html import asked, by_cause_title, clipped, observed, shown_answer
from rlm_loop.report.notebook.text import closing_line, visible

if TYPE_CHECKING:
    from rlm_loop.outcome import Outcome, Turn

_MARKUP = re.compile(r"([\\`*_{}\[\]<>#|~$&]|:(?=//))")  # $ begins a formula in notebooks, :// makes a link
_FIRST = re.compile(r"^(\d*)([-+=.)])")  # what begins a list, a rule or a heading


def outcome_markdown(outcome: Outcome) -> str:
    """Why the run ended, the answer, each turn, tokens by cause.

    What a model or a tool wrote stands in code blocks or is escaped, so that it cannot become markup.
    """
    answer = shown_answer(outcome)
    parts = [
        f"**{inline(closing_line(outcome))}**",
        inline(clipped(outcome.question, 1_000)),
        fenced(clipped(answer)),
        *(_turn(turn) for turn in outcome.turns),
        causes_table(outcome.ledger.by_cause(), outcome.ledger.counting),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def inline(text: str) -> str:
    """Text within a line, with all that could be markup escaped."""
    return _FIRST.sub(r"\1\\\2", _MARKUP.sub(r"\\\1", " ".join(visible(text).split())))


def fenced(text: str, language: str = "") -> str:
    """A code block whose fence is longer than any in the text."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{visible(text).rstrip()}\n{fence}"


def table(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table whose first column is names and whose others are figures; cells are escaped."""
    head = [inline(column) for column in columns]
    rule = ["---", *["---:"] * (len(head) - 1)]
    lines = [head, rule, *([inline(cell) for cell in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def causes_table(by_cause: Mapping[str, int], counting: str) -> str:
    """Input tokens by cause, the most first; empty where there are none."""
    if not sum(by_cause.values()):
        return ""
    most_first = sorted(by_cause.items(), key=lambda item: -item[1])
    return table(
        ("cause", by_cause_title(counting).replace(" by cause", "")),
        ((cause, f"{tokens:,}") for cause, tokens in most_first),
    )


def _turn(turn: Turn) -> str:
    parts = [f"**turn {turn.index}**"]
    for action, observation in zip(turn.actions, turn.observations, strict=True):
        label, text = asked(action)
        parts.append(fenced(clipped(text), "python" if isinstance(action, RunCode) else ""))
        if not isinstance(action, RunCode):
            parts.insert(-1, inline(label))
        after, seen = observed(observation)
        if seen and seen not in (text, repr(text)):
            parts += [inline(after), fenced(clipped(seen))]
    return "\n\n".join(parts)

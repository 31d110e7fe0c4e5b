"""Outcomes, studies and their results as Markdown: for front ends that show it, for issues and READMEs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from rlm_loop.actions import RunCode
from rlm_loop.report.notebook.formatting import (
    action_text,
    answer_text,
    causes_title,
    clipped,
    closing_line,
    most_first,
    observation_text,
    visible,
)

if TYPE_CHECKING:
    from rlm_loop.outcome import Outcome, Turn
    from rlm_loop.study.results import Results
    from rlm_loop.study.study import Study

_MARKUP = re.compile(r"([\\`*_{}\[\]<>#|~$&]|:(?=//))")  # $ begins a formula in notebooks, :// makes a link
_FIRST = re.compile(r"^(\d*)([-+=.)])")  # what begins a list, a rule or a heading


def outcome_markdown(outcome: Outcome) -> str:
    """Why the run ended, the answer, each turn, tokens by cause.

    What a model or a tool wrote stands in code blocks or is escaped, so that it cannot become markup.
    """
    parts = [
        f"**{inline(closing_line(outcome))}**",
        inline(clipped(outcome.question, 1_000)),
        fenced(clipped(answer_text(outcome))),
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
    causes = most_first(by_cause)
    columns = ("cause", causes_title(counting).replace(" by cause", ""))
    return table(columns, ((cause, f"{tokens:,}") for cause, tokens in causes)) if causes else ""


def _turn(turn: Turn) -> str:
    parts = [f"**turn {turn.index}**"]
    for action, observation in zip(turn.actions, turn.observations, strict=True):
        label, text = action_text(action)
        parts.append(fenced(clipped(text), "python" if isinstance(action, RunCode) else ""))
        if not isinstance(action, RunCode):
            parts.insert(-1, inline(label))
        after, seen = observation_text(observation)
        if seen and seen not in (text, repr(text)):
            parts += [inline(after), fenced(clipped(seen))]
    return "\n\n".join(parts)


def study_markdown(study: Study) -> str:
    """The same as Markdown."""
    return (
        "\n".join([f"**{inline(study.name)}**", "", *(f"- {inline(n)}: {inline(v)}" for n, v in study_plan(study))])
        + "\n"
    )


def results_markdown(results: Results) -> str:
    """What results came to, and a row an arm, on the tasks that all arms were tried on."""
    rows = [
        (
            s.arm if len(results.models) < 2 else f"{s.arm}, {s.model}",
            str(s.n),
            str(s.resolved),
            "?" if s.rate is None else f"{100 * s.rate:.0f} % ({100 * s.low:.0f} to {100 * s.high:.0f})",
            *("?" if figure is None else f"{figure:,.0f}" for figure in (s.input_tokens, s.output_tokens)),
            "?" if s.steps is None else f"{s.steps:.1f}",
        )
        for s in results.summary()
    ]
    if not rows:
        return inline(str(results)) + "\n"
    columns = ("arm", "n", "resolved", "rate (95 %)", "input tokens a task", "output tokens a task", "steps")
    return f"{inline(str(results))}\n\n{table(columns, rows)}\n"


def study_plan(study: Study) -> list[tuple[str, str]]:
    """What a study will run, as names and values."""
    agents = study.agents()
    arms = list(next(iter(agents.values())))
    suites = [f"{suite.name} ({len(suite)} tasks)" for suite in study.suites]
    differs = "not declared" if study.differs is None else ", ".join(study.differs) or "nothing"
    return [
        ("arms", ", ".join(arms)),
        ("models", ", ".join(dict.fromkeys(model for model, _ in agents))),
        ("tasks", ", ".join(suites)),
        ("seeds", ", ".join(map(str, study.seeds))),
        ("arms differ in", differs),
        ("episodes", f"{len(study.episodes()):,}"),
    ]

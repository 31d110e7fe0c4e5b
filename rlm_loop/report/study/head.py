"""What stands at the top: the question, and the study in figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rlm_loop.report.study.question import Question, question_of
from rlm_loop.study import Results
from rlm_loop.study.results import pair_key


@dataclass(frozen=True)
class Head:
    """The line above the heading, the question, the facts by name (empty ones are not shown), and what is unfinished.

    `state` is empty where the study is whole.
    """

    over: str
    question: Question
    facts: Mapping[str, Any]
    state: str


def head_of(results: Results, baseline: str) -> Head:
    """The question, what is known about the state of the study, and its size."""
    kind = "recorded study" if results.recorded else "study"
    over = " · ".join(part for part in (kind, results.name) if part)
    return Head(over, question_of(results), _facts(results, baseline), _state(results))


def _facts(results: Results, baseline: str) -> dict[str, Any]:
    source = results.provenance
    units = {pair_key(row) for row in results.rows}
    suites = list(dict.fromkeys(row["suite"] for row in results.rows))
    cost = [row["cost"] for row in results.rows if row["cost"] is not None]
    return {
        "model": source["model"],
        "arms": ", ".join(results.arms),
        "baseline": baseline,
        "tasks": f"{len({(s, t) for _, s, t, _ in units}):,} of {', '.join(suites)}" if suites else "",
        "seeds": ", ".join(map(str, source["seeds"])),
        "episodes": f"{len(results):,}",
        "arms differ in": _differences(results),
        "isolation": ", ".join(sorted({str(row["isolation"]) for row in results.rows if row.get("isolation")})),
        "run": source["date"],
        "command": "; ".join(source["command"]),
        "machine": "; ".join(", ".join(map(str, machine.values())) for machine in source["machine"]),
        "cost": f"{sum(cost):,.2f}" if any(cost) else "",
    }


def _differences(results: Results) -> str:
    """The factors in which the arms' first requests differ (`rlm-loop study check` shows each difference)."""
    found = results.fairness_check
    if found is None:
        return "not recorded"
    factors = list(dict.fromkeys(d.factor for d in found.differences)) or ["nothing"]
    undeclared = "" if found.fair else ", not declared: " + ", ".join(dict.fromkeys(d.factor for d in found.undeclared))
    return ", ".join(factors) + undeclared


def _state(results: Results) -> str:
    """Return the banner of a study that is not finished, or in which episodes crashed."""
    lock = results.lock
    runs = sum(map(len, lock.get("tasks", {}).values())) * len(lock.get("seeds", ()))
    planned = runs * sum(map(len, lock.get("arms", {}).values()))
    if not results.rows:
        return "Nothing has been run yet."
    state: list[str] = []
    if planned > len(results):
        state.append(f"The study is not finished: {len(results):,} of {planned:,} episodes have been run.")
    if results.crashed:
        kinds = Counter(str(row["error"]).partition(":")[0] for row in results.crashed)
        named = ", ".join(f"{kind} ({count:,})" for kind, count in kinds.most_common())
        state.append(f"{len(results.crashed):,} of {len(results):,} episodes crashed: {named}.")
    return " ".join(state)

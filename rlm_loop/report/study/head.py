"""The head of a page: the question, and the study in figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rlm_loop.report.run.marked import brief
from rlm_loop.study import Comparison, Results
from rlm_loop.study.results import pair_key

_MOST = 200  # characters of a heading


@dataclass(frozen=True)
class Head:
    """The line above the heading, the heading and the text below it, facts by name, and notes on what is missing."""

    over: str
    title: str
    text: Sequence[str]
    facts: Mapping[str, Any]
    notes: Sequence[str]


def head_of(results: Results, baseline: str) -> Head:
    """The head of a study's page: the study's own question, else its name."""
    question = [" ".join(part.split()) for part in str(results.lock.get("question") or "").split("\n\n")]
    first, *more = [part for part in question if part] or [results.name or "A study"]
    over = " · ".join(part for part in ("recorded study" if results.recorded else "study", results.name) if part)
    asked = 'The study states no question; give it one: Study(question="...").'
    notes = [*([] if any(question) else [asked]), *_unfinished(results)]
    text = [first, *more] if len(first) > _MOST else more
    return Head(over, brief(first, _MOST), text, _facts(results, baseline), notes)


def head_of_comparison(compared: Comparison, title: str, notes: Sequence[str]) -> Head:
    """The head of the page of a comparison of any tables."""
    arms = list(dict.fromkeys(c.arm for c in compared.contrasts))
    models = sorted({str(row["model"]) for row in compared.rows if row.get("model")})
    facts = {"arms": ", ".join(arms), "baseline": compared.baseline, "model": ", ".join(models)}
    return Head("comparison", title or f"{' and '.join(arms)} against {compared.baseline}", [], facts, notes)


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


def _unfinished(results: Results) -> list[str]:
    """Return notes of episodes that crashed, and of what has not been run."""
    lock = results.lock
    runs = sum(map(len, lock.get("tasks", {}).values())) * len(lock.get("seeds", ()))
    planned = runs * sum(map(len, lock.get("arms", {}).values()))
    if not results.rows:
        return ["Nothing has been run yet."]
    notes = [results.crashes] if results.crashes else []
    if planned > len(results):
        notes.append(f"The study is not finished: {len(results):,} of {planned:,} episodes have been run.")
    return notes

"""What stands at the top: the question, and the study in figures."""

from __future__ import annotations

from rlm_loop.report.study.parts import note
from rlm_loop.report.study.question import Question
from rlm_loop.report.templates import safe
from rlm_loop.study import Results
from rlm_loop.study.results import pair_key


def head(results: Results, question: Question, baseline: str) -> str:
    """The question, what is known about the state of the study, and its size."""
    kind = "recorded study" if results.recorded else "study"
    text = "".join(f'<p class="lead">{safe(part)}</p>' for part in question.text)
    if not question.source:
        text += note('The study states no question; give it one: Study(question="...").')
    return (
        f'<header class="head"><p class="over">{safe(" · ".join(p for p in (kind, results.name) if p))}</p>'
        f"<h1>{safe(question.title)}</h1>{text}{_facts(results, baseline)}{_state(results)}</header>"
    )


def _facts(results: Results, baseline: str) -> str:
    source = results.provenance
    units = {pair_key(row) for row in results.rows}
    suites = list(dict.fromkeys(row["suite"] for row in results.rows))
    cost = [row["cost"] for row in results.rows if row["cost"] is not None]
    facts = {
        "model": source["model"],
        "arms": ", ".join(results.arms),
        "baseline": baseline,
        "tasks": f"{len({(s, t) for _, s, t, _ in units}):,} of {', '.join(suites)}" if suites else "",
        "seeds": ", ".join(map(str, source["seeds"])),
        "episodes": f"{len(results):,}, {len(results.crashed):,} of them crashed",
        "run": source["date"],
        "cost": f"{sum(cost):,.2f}" if any(cost) else "",
    }
    items = "".join(f"<div><dt>{safe(k)}</dt><dd>{safe(v)}</dd></div>" for k, v in facts.items() if v)
    return f'<dl class="facts">{items}</dl>'


def _state(results: Results) -> str:
    """A study that is not whole says so before anything else is read."""
    planned = sum(map(len, results.lock.get("tasks", {}).values())) * len(results.lock.get("seeds", ()))
    cells = planned * sum(map(len, results.lock.get("arms", {}).values()))
    if not results.rows:
        return note("Nothing has been run yet.")
    if cells > len(results):
        return note(f"The study is not finished: {len(results):,} of {cells:,} episodes have been run.")
    return ""

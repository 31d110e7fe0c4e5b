"""Tables of a study: its arms and its suites."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from rlm_loop.accounting.ledger import COUNTING
from rlm_loop.report.tables.table import Table
from rlm_loop.study import ArmSummary, Results


def count(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"


def decimal(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def rate(share: float, low: float, high: float) -> str:
    """A share with its interval."""
    return f"{share:.0%} [{low * 100:.0f}-{high * 100:.0f}]"


def _pair(middle: float | None, p95: float | None) -> str:
    return "-" if middle is None else f"{middle:.1f} ({decimal(p95)})"


#: What a column says of an arm.
_CELLS: Mapping[str, Callable[[ArmSummary], str]] = {
    "model": lambda s: s.model,
    "suite": lambda s: s.suite,
    "arm": lambda s: s.arm,
    "n": lambda s: str(s.n),
    "resolved": lambda s: str(s.resolved) if s.judged == s.n else f"{s.resolved} of {s.judged} judged",
    "rate [95 % CI]": lambda s: "-" if s.rate is None else rate(s.rate, s.low, s.high),
    "tokens in": lambda s: count(s.input_tokens),
    "out": lambda s: count(s.output_tokens),
    "new": lambda s: count(s.new_tokens),
    "scaffold": lambda s: f"{count(s.scaffold_tokens)} ({percent(s.scaffold_share)})",
    "cost": lambda s: "-" if s.cost is None else f"{s.cost:.4g}",
    "steps": lambda s: decimal(s.steps),
    "steps (p95)": lambda s: _pair(s.steps, s.steps_p95),
    "seconds": lambda s: decimal(s.seconds),
    "seconds (p95)": lambda s: _pair(s.seconds, s.seconds_p95),
    "failed actions": lambda s: percent(s.failed_actions),
    "malformed": lambda s: percent(s.malformed),
    "vs baseline": lambda s: "baseline" if s.arm == s.baseline else f"+{s.wins} / -{s.losses}",
}


def _summary_table(
    title: str,
    columns: Sequence[str],
    found: Sequence[ArmSummary],
    notes: Sequence[str],
    names: Sequence[str] = ("model", "arm"),
) -> Table:
    """Return a row for each summary: its names and the `columns`."""
    every = [*names, *columns]
    rows = [[_CELLS[name](s) for name in every] for s in found]
    return Table(title, every, rows, notes, len(names)).without_same("model")


def arm_table(results: Results, baseline: str | None = None) -> Table:
    """Return a row for each arm: what it resolved, its cost, and its difference from the baseline on the same tasks."""
    found = results.summary(baseline)
    columns = ["n", "resolved", "rate [95 % CI]", "tokens in", "out", "new", "scaffold"]
    columns += ["cost"] if any(s.cost for s in found) else []
    columns += ["steps (p95)", "seconds (p95)", "failed actions", "malformed", "vs baseline"]
    legend = [
        "In: all prompt tokens, re-sent ones included; new: those not "
        "taken from the prefix cache; scaffold: those that the strategy added, with their share of in.",
        f"vs baseline: tasks that only this arm resolved / that only {found[0].baseline if found else ''} resolved.",
    ]
    notes = [*_crashed(results), *legend, _counting_note(results), *_counted(found), *_coverage(results)]
    return _summary_table(_heading("Arms", results), columns, found, notes)


def suite_table(results: Results, baseline: str | None = None) -> Table:
    """Return a row for each suite and arm."""
    found = results.suite_summary(baseline)
    columns = ["n", "resolved", "rate [95 % CI]", "tokens in", "out", "steps", "seconds"]
    notes, names = [*_crashed(results), *_counted(found), *_coverage(results)], ("model", "suite", "arm")
    return _summary_table(_heading("Suites", results), columns, found, notes, names=names)


def _heading(title: str, results: Results) -> str:
    heading = f"{title} of {results.name}" if results.name else title
    return f"{heading} (recorded run)" if results.recorded else heading


def _counting_note(results: Results) -> str:
    """Say how the tokens by cause of a study were counted; a row of before this was written says nothing."""
    rows = [r for r in results.rows if r.get("input_tokens") is not None]
    known = {False: "not on record", True: COUNTING[0]}  # a local model always counts with its own tokenizer
    said = ", ".join(dict.fromkeys(str(r.get("counting") or known[str(r["model"]).startswith("local")]) for r in rows))
    return f"Tokens in and out are as the model reported them; what is of a cause (scaffold) is: {said}."


def _counted(found: Sequence[ArmSummary]) -> list[str]:
    """Say what the figures of a table are of (`denominator`): of rates, and of means."""
    short = [f"{' in '.join(filter(None, (s.arm, s.suite)))} {s.measured} of {s.n}" for s in found if s.measured < s.n]
    return [
        "n: the pairs of task and seed that every arm was tried on. A crash of the arm is not resolved; what the "
        "machine or the scorer broke off is not judged, and is in no rate. Intervals are Wilson's; "
        "seeds of a task, or tasks of a repository, are kept together.",
        "Tokens, steps and seconds are means over the episodes that ran to their end"
        + (f" ({'; '.join(short)})." if short else ", which are all."),
    ]


def _crashed(results: Results) -> list[str]:
    """The crashes by arm and kind, which are said first."""
    return [f"{results.crashes} `--retry-failed` tries them again."] if results.crashes else []


def _coverage(results: Results) -> list[str]:
    """Say what is not in the table, and where the numbers come from."""
    notes: list[str] = []
    if results.left_out:
        pairs = "pair of task and seed is" if results.left_out == 1 else "pairs of task and seed are"
        notes.append(f"{results.left_out} {pairs} left out: not every arm was tried on them.")
    source = results.provenance
    machines = [f"{m.get('cpus')} CPUs, {m.get('platform')}" for m in source["machine"]]
    parts = [
        f"{'Recorded' if results.recorded else 'Run'} {source['date']}".strip(),
        f"model {source['model']}" if source["model"] else "",
        f"seeds {', '.join(map(str, source['seeds']))}" if source["seeds"] else "",
        "; ".join(machines),
        f"`{source['command'][-1]}`" if source["command"] else "",
    ]
    known = [p for p in parts if p]
    return [*notes, "; ".join(known) + "." if known != ["Run"] else "Where these rows come from is not recorded."]

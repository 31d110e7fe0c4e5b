"""Tables of a study: its arms, its suites, and the targets that they meet or miss."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from rlm_loop.accounting.ledger import COUNTING
from rlm_loop.report.tables.table import Table
from rlm_loop.study import ArmSummary, Results
from rlm_loop.study.plan.analysis import TARGETS, read

#: A declared target: its name, its limit, and whether more is better.
Target = tuple[str, float, bool]


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


def _times(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _versus(s: ArmSummary) -> str:
    return "baseline" if s.arm == s.baseline else f"+{s.wins} / -{s.losses}"


#: What a column says of an arm.
_CELLS: Mapping[str, Callable[[ArmSummary], str]] = {
    "model": lambda s: s.model,
    "suite": lambda s: s.suite,
    "arm": lambda s: s.arm,
    "n": lambda s: str(s.n),
    "resolved": lambda s: str(s.resolved) if s.judged == s.n else f"{s.resolved} of {s.judged} judged",
    "rate [95 % CI]": lambda s: "-" if s.rate is None else rate(s.rate, s.low, s.high),
    "answered": lambda s: percent(s.answered),
    "tokens in": lambda s: count(s.input_tokens),
    "out": lambda s: count(s.output_tokens),
    "new": lambda s: count(s.new_tokens),
    "scaffold": lambda s: f"{count(s.scaffold_tokens)} ({percent(s.scaffold_share)})",
    "tokens p95 / baseline": lambda s: _times(s.tokens_p95_ratio),
    "cost": lambda s: "-" if s.cost is None else f"{s.cost:.4g}",
    "cost p95 / baseline": lambda s: _times(s.cost_p95_ratio),
    "steps": lambda s: decimal(s.steps),
    "steps (p95)": lambda s: _pair(s.steps, s.steps_p95),
    "seconds": lambda s: decimal(s.seconds),
    "seconds (p95)": lambda s: _pair(s.seconds, s.seconds_p95),
    "tool seconds, p95": lambda s: decimal(s.tool_seconds_p95),
    "failed actions": lambda s: percent(s.failed_actions),
    "malformed": lambda s: percent(s.malformed),
    "unreadable replies": lambda s: percent(s.malformed),
    "vs baseline": _versus,
    "only this / only baseline": _versus,
}
#: The field that a column shows, where it can have a target.
_FIELDS = {
    "rate [95 % CI]": "rate",
    "steps (p95)": "steps",
    "tokens p95 / baseline": "tokens_p95_ratio",
    "seconds (p95)": "seconds_p95",
    "tool seconds, p95": "tool_seconds_p95",
}


def summary_table(
    title: str,
    columns: Sequence[str],
    found: Sequence[ArmSummary],
    notes: Sequence[str],
    targets: Mapping[str, Target] | None = None,
    names: Sequence[str] = ("model", "arm"),
) -> Table:
    """One row a summary: its names, the `columns`, and `missed` where a figure does not meet its target."""
    every = [*names, *columns]
    rows = [[_CELLS[name](s) + _missed(s, _FIELDS.get(name, ""), targets or {}) for name in every] for s in found]
    return Table(title, every, rows, notes, len(names)).without_same("model")


def arm_table(results: Results, baseline: str | None = None) -> Table:
    """One row an arm: what it resolved, what that cost, and how it differs from the baseline on the same tasks."""
    found = results.summary(baseline)
    columns = ["n", "resolved", "rate [95 % CI]", "tokens in", "out", "new", "scaffold", "steps (p95)"]
    columns += ["seconds (p95)", "failed actions", "malformed", "vs baseline"]
    legend = [
        "In: all prompt tokens, re-sent ones included; new: those not "
        "taken from the prefix cache; scaffold: those that the strategy added, with their share of in.",
        f"vs baseline: tasks that only this arm resolved / that only {found[0].baseline if found else ''} resolved.",
    ]
    notes = [*legend, counting_note(results), *counted(found), *_coverage(results)]
    return summary_table(_heading("Arms", results), columns, found, notes)


def suite_table(results: Results, baseline: str | None = None) -> Table:
    """One row a suite and arm."""
    found = results.suite_summary(baseline)
    columns = ["n", "resolved", "rate [95 % CI]", "tokens in", "out", "steps", "seconds"]
    notes, names = [*counted(found), *_coverage(results)], ("model", "suite", "arm")
    return summary_table(_heading("Suites", results), columns, found, notes, names=names)


def target_table(results: Results, baseline: str | None = None) -> Table:
    """Each arm against the targets that the study declared: the figure, and `missed` where it does not meet one."""
    found, held = results.summary(baseline), declared_targets(results)
    columns = [f"{name} {'>=' if more else '<='} {limit:g}" for name, limit, more in held.values()]
    rows = [[s.model, s.arm, *(_judged(s, field, held) for field in held)] for s in found]
    notes = [] if held else ["The study declared no targets (`Analysis(targets=...)`), so none is judged."]
    notes += _coverage(results)
    return Table(_heading("Targets", results), ["model", "arm", *columns], rows, notes, 2).without_same("model")


def declared_targets(results: Results) -> dict[str, Target]:
    """What the study declared as targets, by field of `ArmSummary`."""
    plan = read(results.lock)
    limits = {} if plan is None else plan.targets
    return {f: (name, float(limits[f]), more) for f, (name, more) in TARGETS.items() if f in limits}


def _heading(title: str, results: Results) -> str:
    heading = f"{title} of {results.name}" if results.name else title
    return f"{heading} (recorded run)" if results.recorded else heading


def _judged(s: ArmSummary, field: str, targets: Mapping[str, Target]) -> str:
    value: float | None = getattr(s, field)
    return "not known" if value is None else f"{value:.2f}{_missed(s, field, targets)}"


def _missed(s: ArmSummary, field: str, targets: Mapping[str, Target]) -> str:
    """A word where a figure does not meet the target that the study declared for it."""
    value: float | None = getattr(s, field, None)
    if value is None or field not in targets:
        return ""
    _, limit, more = targets[field]
    return "" if (value >= limit if more else value <= limit) else " missed"


def counting_note(results: Results) -> str:
    """How the tokens by cause of a study were counted; a row of before this was written says nothing."""
    rows = [r for r in results.rows if r.get("input_tokens") is not None]
    known = {False: "not on record", True: COUNTING[0]}  # a local model always counts with its own tokenizer
    said = ", ".join(dict.fromkeys(str(r.get("counting") or known[str(r["model"]).startswith("local")]) for r in rows))
    return f"Tokens in and out are as the model reported them; what is of a cause (scaffold) is: {said}."


def counted(found: Sequence[ArmSummary]) -> list[str]:
    """What the figures of a table are of (`denominator`): of rates, and of means."""
    short = [
        f"{' in '.join(p for p in (s.arm, s.suite) if p)} {s.measured} of {s.n}" for s in found if s.measured < s.n
    ]
    return [
        "n: the pairs of task and seed that every arm was tried on. A crash of the arm is not resolved; what the "
        "machine or the scorer broke off is not judged, and is in no rate. Intervals are Wilson's; "
        "seeds of a task, or tasks of a repository, are kept together.",
        "Tokens, steps and seconds are means over the episodes that ran to their end"
        + (f" ({'; '.join(short)})." if short else ", which are all."),
    ]


def _coverage(results: Results) -> list[str]:
    """What is not in the table, and where the numbers come from."""
    notes: list[str] = []
    if results.left_out:
        pairs = "pair of task and seed is" if results.left_out == 1 else "pairs of task and seed are"
        notes.append(f"{results.left_out} {pairs} left out: not every arm was tried on them.")
    if results.crashed:
        notes.append(f"{len(results.crashed)} of {len(results)} episodes crashed; `--retry-failed` tries them again.")
    notes.append(provenance_line(results))
    return notes


def provenance_line(results: Results) -> str:
    """One line of where the numbers come from."""
    source = results.provenance
    machines = [f"{m.get('cpus')} CPUs, {m.get('platform')}" for m in source["machine"]]
    parts = [
        f"{'Recorded' if results.recorded else 'Run'} {source['date']}".strip(),
        f"model {source['model']}" if source["model"] else "",
        f"seeds {', '.join(map(str, source['seeds']))}" if source["seeds"] else "",
        "; ".join(machines),
        f"`{source['command'][-1]}`" if source["command"] else "",
    ]
    return "; ".join(p for p in parts if p) + "."

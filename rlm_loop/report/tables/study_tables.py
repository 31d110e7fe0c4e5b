"""The tables of a study: its arms, its suites, and the targets that they meet or miss."""

from __future__ import annotations

from collections.abc import Sequence

from rlm_loop.accounting.ledger import COUNTING
from rlm_loop.report.tables.table import Table
from rlm_loop.study import ArmSummary, Results
from rlm_loop.study.plan.analysis import TARGETS, read


def arm_table(results: Results, baseline: str | None = None) -> Table:
    """One row an arm: what it resolved, what that cost, and how it differs from the baseline on the same tasks."""
    found = results.summary(baseline)
    columns = [
        "arm",
        "n",
        "resolved",
        "rate [95 % CI]",
        "tokens in",
        "out",
        "new",
        "scaffold",
        "steps (p95)",
        "seconds (p95)",
        "failed actions",
        "malformed",
        "vs baseline",
    ]
    rows = [
        [
            s.arm,
            str(s.n),
            resolved(s),
            interval(s),
            count(s.input_tokens),
            count(s.output_tokens),
            count(s.new_tokens),
            f"{count(s.scaffold_tokens)} ({percent(s.scaffold_share)})",
            pair(s.steps, s.steps_p95),
            pair(s.seconds, s.seconds_p95),
            percent(s.failed_actions),
            percent(s.malformed),
            versus(s),
        ]
        for s in found
    ]
    notes = [*_legend(found), counting_note(results), *counted(found), *_coverage(results)]
    return _table(results, "Arms", columns, rows, found, notes)


def suite_table(results: Results, baseline: str | None = None) -> Table:
    """One row a suite and arm."""
    found = results.suite_summary(baseline)
    columns = ["suite", "arm", "n", "resolved", "rate [95 % CI]", "tokens in", "out", "steps", "seconds"]
    rows = [
        [
            s.suite,
            s.arm,
            str(s.n),
            resolved(s),
            interval(s),
            count(s.input_tokens),
            count(s.output_tokens),
            decimal(s.steps),
            decimal(s.seconds),
        ]
        for s in found
    ]
    return _table(results, "Suites", columns, rows, found, [*counted(found), *_coverage(results)], labels=2)


def target_table(results: Results, baseline: str | None = None) -> Table:
    """Each arm against the targets that the study declared: the figure, and `missed` where it does not meet one."""
    found, held = results.summary(baseline), declared_targets(results)
    columns = ["arm", *(f"{name} {'>=' if more else '<='} {limit:g}" for name, limit, more in held.values())]
    rows = [[s.arm, *(_judged(getattr(s, f), limit, more) for f, (_, limit, more) in held.items())] for s in found]
    notes = [] if held else ["The study declared no targets (`Analysis(targets=...)`), so none is judged."]
    return _table(results, "Targets", columns, rows, found, [*notes, *_coverage(results)])


def declared_targets(results: Results) -> dict[str, tuple[str, float, bool]]:
    """What the study declared as targets, by field of `ArmSummary`: name, limit, whether more is better."""
    plan = read(results.lock)
    limits = {} if plan is None else plan.targets
    return {f: (name, float(limits[f]), more) for f, (name, more) in TARGETS.items() if f in limits}


def _table(
    results: Results,
    title: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    found: Sequence[ArmSummary],
    notes: Sequence[str],
    labels: int = 1,
) -> Table:
    """With a column for the model where there are several."""
    several = len(results.models) > 1
    if several:
        columns, labels = ["model", *columns], labels + 1
        rows = [[s.model, *row] for s, row in zip(found, rows, strict=True)]
    heading = f"{title} of {results.name}" if results.name else title
    return Table(f"{heading} (recorded run)" if results.recorded else heading, columns, rows, notes, labels)


def _judged(value: float | None, limit: float, more: bool) -> str:
    if value is None:
        return "not known"
    met = value >= limit if more else value <= limit
    return f"{value:.2f}" if met else f"{value:.2f} missed"


def _legend(found: Sequence[ArmSummary]) -> list[str]:
    baseline = found[0].baseline if found else ""
    return [
        "In: all prompt tokens, re-sent ones included; new: those not "
        "taken from the prefix cache; scaffold: those that the strategy added, with their share of in.",
        f"vs baseline: tasks that only this arm resolved / that only {baseline} resolved.",
    ]


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


def interval(s: ArmSummary) -> str:
    return "-" if s.rate is None else f"{s.rate:.0%} [{s.low * 100:.0f}-{s.high * 100:.0f}]"


def resolved(s: ArmSummary) -> str:
    return str(s.resolved) if s.judged == s.n else f"{s.resolved} of {s.judged} judged"


def versus(s: ArmSummary) -> str:
    return "baseline" if s.arm == s.baseline else f"+{s.wins} / -{s.losses}"


def count(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"


def decimal(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def pair(middle: float | None, p95: float | None) -> str:
    return "-" if middle is None else f"{middle:.1f} ({decimal(p95)})"

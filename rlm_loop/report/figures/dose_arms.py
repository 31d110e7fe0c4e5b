"""Arms that are doses of one injector: what each resolves and spends, and how that differs from the same loop without.

An arm's name says its dose.  `thought-208` is 208 characters of `thought`, `nudge-every-2` is the whole `nudge` after
every second turn.  An arm that `study.json` says to inject nothing has no dose, whatever its name.  The one arm without
a dose is the loop without any: dose zero of every injector.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlm_loop.report.figures.cells import rows_of
from rlm_loop.report.tables.study_tables import count, decimal, provenance_line
from rlm_loop.report.tables.table import Table
from rlm_loop.study import ArmSummary, Results, StudyError, statistics
from rlm_loop.study.compare.summary import total_tokens
from rlm_loop.study.results import PairKey, pair_key

if TYPE_CHECKING:
    import pandas as pd

_EVERY = re.compile(r"(?P<what>.+)-every-(?P<k>[1-9]\d*)")
_SIZE = re.compile(r"(?P<what>.+)-(?P<size>\d+)")


@dataclass(frozen=True)
class Dose:
    """One arm as a dose of `injector`; `strength` orders the doses, `label` names them on an axis.

    `gained` and `lost` are the tasks that only this arm, and only the arm without injectors, resolved; `p` is the exact
    two-sided p of McNemar's test.  `more` is the mean difference in tokens a task (in and out) on the same tasks, `low`
    and `high` its bootstrap interval of 95 %, in which the seeds of a task count as one; `None` where one of the token
    counts is not known.
    """

    injector: str
    strength: float
    label: str
    arm: ArmSummary
    gained: int
    lost: int
    p: float
    more: float | None
    low: float | None
    high: float | None


def by_dose(results: Results | pd.DataFrame) -> list[Dose]:
    """The doses of a study, or of its frame (`Results.frame()`), injector by injector from none to most.

    Compared are the tasks that every arm was tried on.  Raises `StudyError` where no single arm is without a dose,
    no arm has one, or there are several models.
    """
    found = results if isinstance(results, Results) else Results([dict(row) for row in rows_of(results)])
    read = {arm: _read(arm) if _injects(found, arm) else None for arm in found.arms}
    plain = [arm for arm, dose in read.items() if dose is None]
    if len(plain) != 1 or len(read) < 2 or len(found.models) != 1:
        raise StudyError(
            "doses need one model, one arm without a number, and arms such as thought-208 or nudge-every-2; "
            f"there are {', '.join(read) or 'none'} and {len(found.models)} models"
        )
    summaries = {s.arm: s for s in found.summary(plain[0])}
    made: list[Dose] = []
    for injector in dict.fromkeys(dose[0] for dose in read.values() if dose):
        taken = [(arm, *dose[1:]) for arm, dose in read.items() if dose and dose[0] == injector]
        for arm, strength, label in sorted([(plain[0], 0.0, "none"), *taken], key=lambda t: t[1]):
            made.append(_dose(found, summaries[arm], injector, strength, label, plain[0]))
    return made


def _injects(results: Results, arm: str) -> bool:
    """Whether the arm adds any text, by its settings in `study.json`; by its name alone where they are not recorded."""
    by_model: Mapping[str, Any] = results.lock.get("arms", {}).get(arm, {})
    known = [entry["settings"]["injectors"] for entry in by_model.values() if "injectors" in entry.get("settings", {})]
    return any(known) if known else True


def _read(arm: str) -> tuple[str, float, str] | None:
    if found := _EVERY.fullmatch(arm):
        k = int(found["k"])
        return found["what"], 1 / k, "every turn" if k == 1 else f"every {k} turns"
    if found := _SIZE.fullmatch(arm):
        return found["what"], float(found["size"]), found["size"]
    return None


def _dose(results: Results, summary: ArmSummary, injector: str, strength: float, label: str, plain: str) -> Dose:
    tokens = {
        arm: {pair_key(r): total_tokens(r) for r in results.complete_pairs if r["arm"] == arm}
        for arm in (summary.arm, plain)
    }
    pairs = [(here, tokens[plain][u]) for u, here in tokens[summary.arm].items()]
    known = [here - there for here, there in pairs if here is not None and there is not None]
    whole = len(known) == len(pairs)
    low, high = (statistics.bootstrap(_by_task(tokens[summary.arm], known)) if whole else None) or (None, None)
    return Dose(
        injector,
        strength,
        label,
        summary,
        summary.wins,
        summary.losses,
        statistics.sign_test(summary.wins, summary.losses),
        statistics.mean(known) if whole else None,
        low,
        high,
    )


def _by_task(units: Iterable[PairKey], values: Sequence[float]) -> list[float]:
    """The mean of each task: its seeds and variants are no new tasks, as in `compare`."""
    tasks: dict[str, list[float]] = {}
    for (_, _, task, _), value in zip(units, values, strict=True):
        tasks.setdefault(task, []).append(value)
    return [sum(of) / len(of) for of in tasks.values()]


def dose_table(results: Results | pd.DataFrame) -> Table:
    """One row a dose; the arm without injectors is the first of each injector."""
    rows = [
        [
            d.injector,
            d.label,
            f"{d.arm.resolved} of {d.arm.judged}",
            f"{d.arm.low * 100:.0f} to {d.arm.high * 100:.0f} %",
            f"+{d.gained} −{d.lost}" if d.strength else "",
            f"{d.p:.2g}" if d.strength else "",
            count(d.arm.input_tokens),
            count(d.arm.scaffold_tokens),
            count(d.arm.output_tokens),
            decimal(d.arm.steps),
            _difference(d),
        ]
        for d in by_dose(results)
    ]
    columns = ["injector", "dose", "resolved", "95 % interval", "against none", "p", "prompt tokens"]
    columns += ["of them scaffold", "output tokens", "turns", "tokens more than none"]
    notes = [
        "Dose: characters, or how often. Against none: tasks that only this arm and only the arm without it resolved; "
        "p: exact McNemar, two-sided.",
        "Tokens and turns are means a task; the last column is the paired difference (in and out) and its 95 % "
        "bootstrap interval.",
        *([provenance_line(results)] if isinstance(results, Results) else []),
    ]
    return Table("Doses", columns, rows, notes, labels=2)


def _difference(dose: Dose) -> str:
    if not dose.strength:
        return ""
    if dose.more is None:
        return "not known"
    interval = "" if dose.low is None or dose.high is None else f" ({dose.low:+,.0f} to {dose.high:+,.0f})"
    return f"{dose.more:+,.0f}{interval}"

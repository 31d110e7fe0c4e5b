"""The fairness check on the page: which factors are alike in all arms, which were declared to differ, and how."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from rlm_loop.report.run.marked import patch
from rlm_loop.report.tables.table import Table
from rlm_loop.study import FACTORS, FairnessCheck, StudyError
from rlm_loop.study.plan.fairness import shown_differences

_LIMIT = 20_000  # characters of one difference
_NOT_RECORDED = "No contract was recorded: in what the arms differ was not compared when this study was run."
_MOST = 10  # arms without a first request that are named


@dataclass(frozen=True)
class Fairness:
    """The declared factors (`None`: nothing was declared), those that differ undeclared, and the differences as diffs.

    `differences` has pairs of a label and coloured lines.
    """

    differs: Sequence[str] | None
    undeclared: Sequence[str]
    table: Table
    differences: Sequence[tuple[str, Markup]]
    remarks: Sequence[str]


def fairness_of(found: FairnessCheck | None) -> Fairness:
    """In what the arms differ, by their first requests, as the check found it before the study ran.

    Raises `StudyError` where no check was recorded.
    """
    if found is None:
        raise StudyError(_NOT_RECORDED)
    differing = {d.factor for d in found.differences}
    rows = [[factor, standing, FACTORS[factor].replace("`", "")] for factor, standing in found.factors.items()]
    rows.sort(key=lambda row: row[0] not in differing)
    arms = len({arm for p in found.probes for arm in p.arms})
    title = f"{arms} arms, compared on {len(found.probes)} first requests each"
    shown = [
        (one.label, patch("\n".join([one.where, *one.diff]), _LIMIT)) for one in shown_differences(found.differences)
    ]
    begun = [f"Begun with another request: {changed}." for changed in found.changed]
    unknown = [f"No request of {arm} on {p.suite}/{p.task}: {why}." for arm, p, why in found.without_request]
    return Fairness(
        found.differs,
        [] if found.fair else list(dict.fromkeys(d.factor for d in found.undeclared)),
        Table(title, ["factor", "found", "covers"], rows, labels=3),
        shown,
        [*begun, *unknown[:_MOST]],
    )

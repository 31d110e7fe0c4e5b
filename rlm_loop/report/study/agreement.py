"""The contract on the page: which factors are alike in all arms, which were declared to differ, and the differences."""

from __future__ import annotations

from rlm_loop.report.run.marked import patch
from rlm_loop.report.study.parts import folded, note, small, table_html
from rlm_loop.report.tables.table import Table
from rlm_loop.report.templates import safe
from rlm_loop.study import FACTORS, FairnessCheck, Results

_LIMIT = 20_000  # characters of one difference


def agreement(results: Results) -> str:
    """In what the arms differ, by their first requests, as it was found before the study ran."""
    found = results.fairness_check
    if found is None:
        return note("No contract was recorded: in what the arms differ was not compared when this study was run.")
    differing = {d.factor for d in found.differences}
    rows = [
        [factor, _word(found, factor, factor in differing), covers.replace("`", "")]
        for factor, covers in FACTORS.items()
    ]
    rows.sort(key=lambda row: row[0] not in differing)
    arms = len({arm for p in found.probes for arm in p.arms})
    table = Table(
        f"{arms} arms, compared on {len(found.probes)} first requests each", ["factor", "", "covers"], rows, labels=3
    )
    return _verdict(found) + table_html(table) + _differences(found) + _remarks(found)


def _verdict(found: FairnessCheck) -> str:
    if found.differs is None:
        return small("The study declares nothing, so the differences are only recorded.")
    if not found.fair:
        names = ", ".join(dict.fromkeys(d.factor for d in found.undeclared))
        return note(f"The arms differ in what was not declared: {names}.")
    declared = ", ".join(found.differs) or "nothing"
    return f"<p>The arms differ in nothing but what was declared before the study ran: <b>{safe(declared)}</b>.</p>"


def _word(found: FairnessCheck, factor: str, differs: bool) -> str:
    if not differs:
        return "alike, though declared" if factor in found.unused else "alike"
    if found.differs is None:
        return "differs"
    return "declared" if factor in found.differs else "UNDECLARED"


def _differences(found: FairnessCheck) -> str:
    """Each difference as a diff, folded; `str(contract)` has a summary first, then one paragraph for each."""
    _, *details = str(found).split("\n\n")
    shown: list[str] = []
    for detail in details:
        label, _, rest = detail.partition("\n")
        lines = "\n".join(line.removeprefix("  ") for line in rest.split("\n"))
        shown.append(folded(label, f"<pre>{patch(lines, _LIMIT)}</pre>"))
    return "".join(shown)


def _remarks(found: FairnessCheck) -> str:
    begun = [f"Begun with another request: {changed}." for changed in found.changed]
    unknown = [
        f"No request of {arm} on {p.suite}/{p.task}: {p.failed.get(arm, 'it is not an agent of this package')}."
        for p in found.probes
        for arm, request in p.requests.items()
        if request is None
    ]
    return small(*begun, *unknown[:10])

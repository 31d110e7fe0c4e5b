"""Predictions judged on this machine, without containers: clean checkouts, tests in an environment of the user's."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from rlm_loop.tasks.base import Attempt, Suite
from rlm_loop.tasks.jsonl import SuiteFileError
from rlm_loop.tasks.swebench.predictions import Prediction
from rlm_loop.tasks.swebench.report import Report, Status


def evaluate_here(
    predictions: Sequence[Prediction], suite: Suite, *, tell: Callable[[str], None] | None = None
) -> Report:
    """Judge predictions by the suite's own scoring (made with `repos=` and `python=`).

    An instance that cannot be judged here is an error, with the reason, never unresolved.  `tell` is told a line an
    instance.  Raises `SuiteFileError` for a prediction of an instance that the suite does not have.
    """
    tasks = {t.id: t for t in suite}
    unknown = [p.instance_id for p in predictions if p.instance_id not in tasks]
    if unknown:
        raise SuiteFileError(f"{suite.name} has no instance {unknown[0]!r}, for which there is a prediction")
    statuses: dict[str, Status] = dict.fromkeys(tasks, "not submitted")
    reasons: dict[str, str] = {}
    for number, prediction in enumerate(predictions, 1):
        name = prediction.instance_id
        score = tasks[name].judge(Attempt(artifact=prediction.model_patch))
        empty = not prediction.model_patch.strip()
        known: Status = "resolved" if score.resolved else "empty" if empty else "unresolved"
        statuses[name] = known if score.resolved is not None else "error"
        if score.reason:
            reasons[name] = score.reason
        if tell is not None:
            tell(f"[{number}/{len(predictions)}] {name}: {statuses[name]} {score.reason}".rstrip())
    return Report(statuses, reasons)


def write_report(report: Report, path: str | os.PathLike[str]) -> Path:
    """Write a report in the harness's own form, so that whatever reads the one reads the other."""
    names = {
        "resolved": "resolved",
        "unresolved": "unresolved",
        "empty_patch": "empty",
        "error": "error",
        "incomplete": "not submitted",
    }
    ids = {key: report.ids(status) for key, status in names.items()}  # pyright: ignore[reportArgumentType]
    ids["submitted"] = sorted(v.instance_id for v in report.verdicts)
    ids["completed"] = sorted([*ids["resolved"], *ids["unresolved"]])
    data = {
        "total_instances": len(report.statuses),
        **{f"{key}_instances": len(found) for key, found in ids.items() if key != "incomplete"},
        **{f"{key}_ids": found for key, found in ids.items()},
        "failure_reasons": dict(sorted(report.reasons.items())),
        "schema_version": 2,
    }
    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise SuiteFileError(f"cannot write {path}: {error.strerror}; choose another path") from None
    return target

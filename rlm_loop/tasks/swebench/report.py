"""Verdicts of the official harness, read back."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlm_loop.tasks.jsonl import SuiteFileError

#: By status: the harness's list of its instances, whether they are resolved, what is said where nothing more is known.
_STATUSES: Mapping[str, tuple[str, bool | None, str]] = {
    "resolved": ("resolved_ids", True, ""),
    "unresolved": ("unresolved_ids", False, "not resolved, says the harness"),
    "empty": ("empty_patch_ids", False, "empty patch: nothing was changed"),
    "error": ("error_ids", None, "the harness met an error"),
}
#: What the harness's log of an instance says when the fault is the patch's: then it is no error of the harness.
_PATCH_FAULTS = {
    ">>>>> Patch Apply Failed": "the patch does not apply",
    ">>>>> Tests Timed Out": "the tests ran out of time",
    "Test timed out after": "the tests ran out of time",
}


@dataclass(frozen=True)
class InstanceResult:
    """The result of one instance; `resolved` is `None` where the harness could not tell.

    `status` is `resolved`, `unresolved`, `empty`, `error` or `not submitted`.
    """

    instance_id: str
    status: str
    resolved: bool | None
    reason: str = ""


@dataclass(frozen=True)
class Report:
    """A report of the harness: the results of what was submitted, by id.

    An error is what the harness did not get a result for: a patch that does not apply or tests out of time count as not
    resolved where its logs say so, an image that was not there says nothing about a patch.
    """

    verdicts: tuple[InstanceResult, ...]
    path: str = ""

    def verdict(self, instance_id: str) -> InstanceResult:
        """The verdict on one instance; one that the report does not name was not submitted."""
        missing = InstanceResult(instance_id, "not submitted", None, "not evaluated: no prediction was submitted")
        return next((each for each in self.verdicts if each.instance_id == instance_id), missing)

    @property
    def rate(self) -> float | None:
        """Resolved of submitted; errors and empty patches count as not resolved, which is how results are published."""
        return sum(v.resolved is True for v in self.verdicts) / len(self.verdicts) if self.verdicts else None

    def __str__(self) -> str:
        counts = (f"{sum(v.status == status for v in self.verdicts)} {status}" for status in _STATUSES)
        return f"{len(self.verdicts)} submitted: {', '.join(counts)}"


def read_report(path: str | os.PathLike[str]) -> Report:
    """Return the report that the harness wrote (`MODEL.RUN_ID.json`).

    Errors are told apart by the logs beside it (`logs/run_evaluation/RUN_ID/MODEL`).  Raises `SuiteFileError` for what
    is no such report.
    """
    file = Path(path).expanduser()
    try:
        data: Any = json.loads(file.read_bytes())
        listed = [(str(i), status) for status, (name, *_) in _STATUSES.items() for i in data[name]]
        reasons = {str(i): str(reason) for i, reason in (data.get("failure_reasons") or {}).items()}
    except OSError as error:
        raise SuiteFileError(f"cannot read the report {file}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SuiteFileError(f"{file} is no report of the harness ({type(error).__name__}: {error})") from None
    runs = (file.parent / "logs" / "run_evaluation").glob("*/*")
    logs = next((run for run in runs if f"{run.name}.{run.parent.name}" == file.stem), None)
    found: list[InstanceResult] = []
    for name, status in sorted(listed):
        _, resolved, said = _STATUSES[status]
        fault = _fault(logs / name / "run_instance.log") if status == "error" and logs is not None else ""
        found.append(InstanceResult(name, status, False if fault else resolved, fault or reasons.get(name, said)))
    return Report(tuple(found), str(file))


def _fault(log: Path) -> str:
    """What the log of an instance holds against the patch; empty where the fault is the harness's."""
    text = log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""
    return next((why for mark, why in _PATCH_FAULTS.items() if mark in text), "")

"""Verdicts of the official harness, read back."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

from rlm_loop.tasks.jsonl import SuiteFileError

Status = Literal["resolved", "unresolved", "empty", "error", "not submitted"]
#: The harness's list of the instances with each status.
_LISTS: Mapping[Status, str] = {
    "resolved": "resolved_ids",
    "unresolved": "unresolved_ids",
    "empty": "empty_patch_ids",
    "error": "error_ids",
}
#: Whether an instance with this status is resolved, and what is said of it where nothing more is known.
_SAID: Mapping[Status, tuple[bool | None, str]] = {
    "resolved": (True, ""),
    "unresolved": (False, "not resolved, says the harness"),
    "empty": (False, "empty patch: nothing was changed"),
    "error": (None, "the harness met an error"),
    "not submitted": (None, "not evaluated: no prediction was submitted"),
}
#: What the harness's log of an instance says when the fault is the patch's: then it is no error of the harness.
_PATCH_FAULTS = (
    (">>>>> Patch Apply Failed", "the patch does not apply"),
    (">>>>> Tests Timed Out", "the tests ran out of time"),
    ("Test timed out after", "the tests ran out of time"),
)


@dataclass(frozen=True)
class InstanceResult:
    """The result of one instance; `resolved` is `None` where the harness could not tell."""

    instance_id: str
    status: Status
    resolved: bool | None
    reason: str = ""


@dataclass(frozen=True)
class Report:
    """A report of the harness.

    `statuses` are by instance id, `reasons` what more is known of some.  Errors are what the harness did not
    get a result for: a patch that does not apply or tests out of time count as not resolved where its logs say so, an
    image that was not there says nothing about a patch.
    """

    statuses: Mapping[str, Status]
    reasons: Mapping[str, str] = field(default_factory=dict[str, str])
    path: str = ""

    def verdict(self, instance_id: str) -> InstanceResult:
        """The verdict on one instance; one that the report does not name was not submitted."""
        status = self.statuses.get(instance_id, "not submitted")
        resolved, said = _SAID[status]
        reason = "" if status in ("empty", "not submitted") else self.reasons.get(instance_id, "")
        if status == "error" and reason in {text for _, text in _PATCH_FAULTS}:
            resolved = False
        return InstanceResult(instance_id, status, resolved, reason or said)

    @property
    def verdicts(self) -> list[InstanceResult]:
        """All that were submitted, by id."""
        return [self.verdict(i) for i in sorted(self.statuses) if self.statuses[i] != "not submitted"]

    def ids(self, status: Status) -> list[str]:
        """The instances with this status."""
        return sorted(i for i, s in self.statuses.items() if s == status)

    @property
    def submitted(self) -> int:
        return len(self.verdicts)

    @property
    def rate(self) -> float | None:
        """Resolved of submitted; errors and empty patches count as not resolved, which is how results are published."""
        return len(self.ids("resolved")) / self.submitted if self.submitted else None

    def __str__(self) -> str:
        counts = [(len(self.ids(s)), s) for s in _LISTS]
        return f"{self.submitted} submitted: " + ", ".join(f"{n} {s}" for n, s in counts)


def read_report(path: str | os.PathLike[str], logs: str | os.PathLike[str] | None = None) -> Report:
    """The report that the harness wrote (`MODEL.RUN_ID.json`).

    `logs` is the run's folder of logs (`logs/run_evaluation/RUN_ID/MODEL`), by which errors are told apart; it is
    looked for beside the report where it is not named.  Raises `SuiteFileError` for what is no such report.
    """
    file = Path(path).expanduser()
    try:
        read: Any = json.loads(file.read_bytes())
    except OSError as error:
        raise SuiteFileError(f"cannot read the report {file}: {error.strerror}") from None
    except ValueError as error:
        raise SuiteFileError(f"{file} is no report of the harness: not JSON ({error})") from None
    data = cast("dict[str, Any]", read) if isinstance(read, dict) else {}
    missing = [name for name in _LISTS.values() if not _names(data.get(name))]
    if missing:
        raise SuiteFileError(f"{file} is no report of the harness: field {missing[0]!r} is no list of instance ids")
    statuses: dict[str, Status] = dict.fromkeys(data.get("incomplete_ids") or (), "not submitted")
    for status, name in _LISTS.items():
        statuses.update(dict.fromkeys(data[name], status))
    infrastructure = set(cast("list[str]", data.get("infra_failure_ids") or []))
    reasons = {
        i: f"{r} (likely a fault of the environment)" if i in infrastructure else str(r)
        for i, r in cast("dict[str, Any]", data.get("failure_reasons") or {}).items()
    }
    folder = Path(logs) if logs is not None else _logs(file)
    reasons.update({i: why for i in data["error_ids"] if (why := _fault(folder / i / "run_instance.log"))})
    return Report(statuses, reasons, str(file))


def _names(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str) and all(isinstance(x, str) for x in value)


def _logs(report: Path) -> Path:
    """MODEL.RUN_ID.json stands beside logs/run_evaluation/RUN_ID/MODEL; both names may have dots."""
    top = report.parent / "logs" / "run_evaluation"
    parts = report.stem.split(".")
    for cut in range(1, len(parts)):
        folder = top / ".".join(parts[cut:]) / ".".join(parts[:cut])
        if folder.is_dir():
            return folder
    return top


def _fault(log: Path) -> str:
    """Return the cause of the harness's error: the patch's fault in our words, else the last exception in its log."""
    try:
        text = log.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    known = next((why for mark, why in _PATCH_FAULTS if mark in text), "")
    raised = re.findall(r"^[\w.]*(?:Error|Exception|NotFound): (.+)$", text, re.MULTILINE)
    return known or (re.sub(r"^(Error in evaluation for \S+: )+", "", raised[-1])[-300:] if raised else "")

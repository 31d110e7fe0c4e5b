"""What the table shows of one episode, whether it is a row of a study or a run that belongs to none."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rlm_loop.report.run.judged import state
from rlm_loop.report.run.marked import brief
from rlm_loop.study.store.rows import Row

#: The columns that are sent to the page, in this order.
FIELDS = (
    *("id", "study", "arm", "model", "suite", "task", "seed", "state", "value", "stop", "steps"),
    *("input", "output", "seconds", "cost", "answer", "expected"),
)
#: Characters of an answer that the table holds.
_ANSWER = 160


@dataclass(frozen=True)
class ListedEpisode:
    """One episode of the table.

    `path` is the file of its trace, relative to the folder that is shown, as the study's row says it; `run` is the id
    of its run in that file (empty: the one that counts).  `cells` are the values of `FIELDS`; `row` is that of the
    study, and `None` for a run that no row tells of, because it belongs to no study or has not ended.
    """

    id: str
    study: str
    path: str
    run: str
    cells: tuple[Any, ...]
    row: Row | None = None

    def __getitem__(self, field: str) -> Any:
        return self.cells[FIELDS.index(field)]

    @property
    def name(self) -> str:
        """Arm and task in a few words."""
        return " · ".join(str(part) for part in (self["arm"], self["suite"], self["task"]) if part) or self.path


def from_row(study: str, row: Row) -> ListedEpisode:
    """An episode of the study in the folder `study` (relative to the folder that is shown; empty: that folder)."""
    path = "/".join(part for part in (study, row["trace"] or "") if part) if row["trace"] else ""
    key = path or "\n".join(str(row[name]) for name in ("arm", "model", "suite", "task", "seed"))
    cells = {
        **{name: row[name] for name in ("arm", "model", "suite", "task", "seed")},
        "state": state(row),
        "value": row.get("value"),
        "stop": row.get("stop") if row["error"] is None else str(row["error"]).partition(":")[0],
        "steps": row.get("steps"),
        "input": row.get("input_tokens"),
        "output": row.get("output_tokens"),
        "seconds": row.get("seconds"),
        "cost": row.get("cost"),
        "answer": brief(str(row.get("answer") or ""), _ANSWER),
        "expected": brief(str(row.get("expected") or ""), _ANSWER),
    }
    return _episode(key, study, path, str(row.get("trace_run") or ""), cells, row)


def from_run(study: str, path: str, run: Mapping[str, Any], *, first: bool) -> ListedEpisode:
    """A run of the trace file `path`, as `loose.runs_of` tells it; `first` of its file, which has the file's id."""
    return _episode(path if first else f"{path}\n{run['run']}", study, path, str(run["run"]), run, None)


def _episode(key: str, study: str, path: str, run: str, cells: Mapping[str, Any], row: Row | None) -> ListedEpisode:
    ident = hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()[:12]
    found = {**cells, "id": ident, "study": study}
    return ListedEpisode(ident, study, path, run, tuple(found.get(name) for name in FIELDS), row)

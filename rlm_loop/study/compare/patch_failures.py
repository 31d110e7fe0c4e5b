"""Why the runs of a study made no patch that resolves their tasks: one row a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rlm_loop.agents.attempts.diagnose import diagnose
from rlm_loop.outcome import Score
from rlm_loop.study.errors import StudyError
from rlm_loop.study.results import Results
from rlm_loop.tasks.base import Suite, Task
from rlm_loop.traces.trace import TraceError

#: The classes of `diagnose`, in the order of tables, with what each means.
LABELS: Mapping[str, str] = {
    "resolved": "the tests that have to pass do",
    "never_found": "no line of the file with the bug was shown, and nothing was edited",
    "not_edited": "it was shown, and no edit was tried",
    "edit_rejected": "edits were tried, and none of them changed a file",
    "undone": "edits changed files, and at the end nothing differed from the start",
    "other_files": "the patch touches other files only",
    "broke_others": "the failing tests pass, and others no longer do",
    "wrong_fix": "the patch touches the right file, and does not resolve the task",
    "ran_out": "it had found the file when a limit was reached",
    "repeated": "the same reply again and again, before any edit",
    "malformed": "replies that could not be read, before any edit",
    "tool_failures": "calls that failed, one after the other, before any edit",
    "gave_up": "the model declined to go on, before any edit",
    "crashed": "the run broke off",
}


def diagnose_patches(results: Results, suites: Iterable[Suite]) -> list[dict[str, Any]]:
    """One row for each run of a task with a workspace: `model`, `arm`, `suite`, `task`, `seed`, `resolved`, and the
    facts of `PatchDiagnosis` (`label`, `found`, `tried` and `rejected` edits ...).

    `suites` are those of the study; only what a task says of its files is used, no checkout is opened.
    Raises `StudyError` where no task has a workspace, or a trace cannot be read.
    """
    tasks: dict[tuple[str, str], Task] = {(s.name, t.id): t for s in suites for t in s if t.workspace is not None}
    found: list[dict[str, Any]] = []
    for row in results.rows:
        task = tasks.get((row["suite"], row["task"]))
        if task is None:
            continue
        evidence = {"broke_others": row.get("broke_others", False)}
        score = Score(bool(row["resolved"]), float(row["value"] or 0), str(row.get("score_reason") or ""), evidence)
        try:
            why = diagnose(task, results.trace(row), score)
        except TraceError as error:
            raise StudyError(f"{row['task']} of {row['arm']}: {error}") from error
        named = {name: row[name] for name in ("model", "arm", "suite", "task", "seed")}
        found.append({**named, "resolved": bool(row["resolved"]), **vars(why)})
    if not found:
        raise StudyError("no task of this study has a workspace")
    return found

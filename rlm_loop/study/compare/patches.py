"""The patches of a study's arm as predictions for SWE-bench's harness, and the harness's verdicts as rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from rlm_loop.agents.past_run import outcome_of
from rlm_loop.study.errors import StudyError
from rlm_loop.study.results import Results, load_study
from rlm_loop.study.store.rows import Row, finished
from rlm_loop.tasks.swebench.predictions import Prediction, Predictions, model_name, patch_of
from rlm_loop.tasks.swebench.report import Report
from rlm_loop.traces.trace import TraceError

#: What a trace holds in place of something that looked like a key: a patch with it is not the agent's.
_REDACTED = "[redacted]"


def study_predictions(
    study: Results | str | Path,
    arm: str = "",
    *,
    model: str = "",
    seed: int | None = None,
    suite: str = "",
    name: str = "",
) -> Predictions:
    """The patches of one arm of a study, from the traces of its rows.

    `arm`, `model`, `seed` and `suite` need be given only where the study has several.  `name` is what stands as
    `model_name_or_path`.  An episode that crashed, or is missing, says nothing about what the arm can do, so it is left
    out (`left_out` says why).  Raises `StudyError` that lists what there is to choose from.
    """
    results = study if isinstance(study, Results) else load_study(study)
    rows = _chosen(results, arm, model, seed, suite)
    whose = name or model_name(rows[0]["arm"], rows[0]["model"])
    planned = results.lock.get("tasks", {}).get(rows[0]["suite"], ())
    kept: list[Prediction] = []
    left = dict.fromkeys(planned, "the study has not run it yet")
    for row in rows:
        left.pop(row["task"], None)
        patch, why = _patch(results, row)
        if patch is None:
            left[row["task"]] = why
        else:
            kept.append(Prediction(row["task"], whose, patch))
    return Predictions(tuple(kept), left)


def _patch(results: Results, row: Row) -> tuple[str | None, str]:
    if not finished(row):
        return None, f"the run crashed: {row['error']}"
    try:
        patch, why = patch_of(outcome_of(results.trace(row)))
    except TraceError as fault:
        return None, f"its trace cannot be read: {fault}"
    if patch is not None and _REDACTED in patch:
        return None, "the trace blanked out something in the patch that looks like a key"
    return patch, why


def _chosen(results: Results, arm: str, model: str, seed: int | None, suite: str) -> list[Row]:
    """The rows of one arm, model, seed and suite, one a task.  Raises `StudyError` where that is not clear."""
    for column, wanted in (("arm", arm), ("model", model), ("suite", suite), ("seed", seed)):
        there = list(dict.fromkeys(r[column] for r in results.rows))
        if wanted not in ("", None):
            results = results.filter(**{column: wanted})
        elif len(there) > 1:
            raise StudyError(f"the study has several {column}s: {', '.join(map(str, there))}; name one ({column})")
    if not results.rows:
        raise StudyError("the study has no rows")
    return list(results.rows)


def with_report(
    results: Results, report: Report, arm: str = "", *, model: str = "", seed: int | None = None, suite: str = ""
) -> Results:
    """The results with the harness's verdicts in the rows of one arm: `resolved`, `value` and `score_reason`.

    Resolved and unresolved are as the report says, an empty patch is not resolved; what the harness could not run
    (an error of its own, or no prediction) stays unjudged, with the reason.  Rows that crashed stay as they are.
    """
    mine = {id(r) for r in _chosen(results, arm, model, seed, suite)}
    rows = [_judged(row, report) if id(row) in mine and finished(row) else row for row in results.rows]
    return replace(results, rows=rows)


def _judged(row: Row, report: Report) -> Row:
    verdict = report.verdict(row["task"])
    value = None if verdict.resolved is None else float(verdict.resolved)
    return {**row, "resolved": verdict.resolved, "value": value, "score_reason": verdict.reason}

"""Job folders of Harbor: `JOB/TRIAL/result.json`, one trial of one task with one agent and model each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from rlm_loop.formats.results.source import ReadOptions, Source, parsed, read_bytes
from rlm_loop.study.compare.columns import as_number, as_resolved, make_row
from rlm_loop.study.errors import StudyError
from rlm_loop.study.store.rows import Row

_RESULT = "result.json"
#: What ends a trial and is the agent's own doing, so that a trial without a reward is not resolved.
_OF_THE_AGENT = {
    *("AgentTimeoutError", "ContextWindowExceededError", "OutputTokenExceededError", "ContextLengthExceededError"),
    *("OutputLengthExceededError", "AgentSafetyRefusalError", "ContentPolicyViolationError"),
}

Trial = Mapping[str, Any]


def is_job(folder: Path) -> bool:
    """Whether a folder holds trials, or jobs of trials."""
    return next(_results(folder), None) is not None


def _results(folder: Path) -> Iterator[Path]:
    """The results of the trials; a job has a `result.json` of its own, but no `trial.log` and no `agent` beside it."""
    for level in ("*", "*/*"):
        for path in folder.glob(f"{level}/{_RESULT}"):
            if any((path.parent / name).exists() for name in ("trial.log", "agent", "verifier", "steps")):
                yield path


def read_job(folder: Path, reading: ReadOptions) -> Source:
    """The trials of a job, one row each; the arm is agent and model, the suite the data set.

    Trials of one task with one arm are numbered in the order of their start.  A trial that ended with an exception that
    is not the agent's doing, and has no reward, is not judged.  Raises `StudyError` for a result that cannot be read.
    """
    read = [(path.parent, _trial(path)) for path in _results(folder)]
    read.sort(key=lambda t: (str(t[1].get("started_at")), str(t[0])))
    rows: list[Row] = []
    rewards: dict[str, None] = {}
    for _, trial in read:
        found: dict[str, Any] = (trial.get("verifier_result") or {}).get("rewards") or {}
        rewards.update(dict.fromkeys(found))
    if reading.score is not None and reading.score not in rewards:
        raise StudyError(f"{folder} has no reward {reading.score!r}; it has {', '.join(rewards) or 'none'}")
    score = reading.score or ("reward" if "reward" in rewards else next(iter(rewards), "reward"))
    for path, trial in read:
        arm, suite, task = _arm(trial), str(trial.get("source") or ""), str(trial["task_name"])
        seed = sum((r["arm"], r["suite"], r["task"]) == (arm, suite, task) for r in rows)
        rows.append(_row(trial, arm, suite, task, seed, score, reading, path))
    notes: list[str] = []
    if len(rewards) > 1:
        notes.append(f"{folder.name}: resolved is the reward {score!r} of {', '.join(rewards)}")
    if missing := sum(r["resolved"] is None for r in rows):
        notes.append(f"{folder.name}: {missing} of {len(rows)} trials have no reward, and count as missing")
    return Source(folder, "Harbor job", rows, notes)


def _trial(path: Path) -> Trial:
    value = parsed(read_bytes(path), path)
    if not isinstance(value, dict) or not {"task_name", "trial_name", "agent_info"} <= set(value):
        raise StudyError(
            f"{path} is no result of a trial that this version knows (no task_name, trial_name, agent_info)"
        )
    return value


def _arm(trial: Trial) -> str:
    about: Mapping[str, Any] = trial.get("agent_info") or {}
    model: Mapping[str, Any] = about.get("model_info") or {}
    return " ".join(str(part) for part in (about.get("name"), model.get("name")) if part)


def _row(trial: Trial, arm: str, suite: str, task: str, seed: int, score: str, reading: ReadOptions, path: Path) -> Row:
    steps: Sequence[Mapping[str, Any]] = trial.get("step_results") or ()
    contexts = [c for c in (trial.get("agent_result"), *(s.get("agent_result") for s in steps)) if c]
    reward = ((trial.get("verifier_result") or {}).get("rewards") or {}).get(score)
    ended = str((trial.get("exception_info") or {}).get("exception_type") or "")
    resolved = as_resolved(reward, f"{path}, {score}", reading.threshold)
    if resolved is None and ended in _OF_THE_AGENT:
        resolved = False

    def total(name: str) -> float | int | None:  # of steps that did not say it is not known
        every = [as_number(c.get(name), f"{path}, {name}") for c in contexts]
        return sum(v for v in every if v is not None) if every and None not in every else None

    return make_row(
        arm,
        task,
        seed,
        resolved,
        suite=suite,
        input_tokens=total("n_input_tokens"),  # cached ones included, as in ours
        output_tokens=total("n_output_tokens"),
        cost=total("cost_usd"),
        seconds=_seconds(trial.get("agent_execution") or {}),
        stop=ended,
    )


def _seconds(timing: Mapping[str, Any]) -> float | None:
    try:
        first, last = (datetime.fromisoformat(str(timing.get(k))) for k in ("started_at", "finished_at"))
        return max((last - first).total_seconds(), 0.0)
    except (ValueError, TypeError):
        return None

"""Inspect's log format, written: one log with a sample a run, with messages, scores, usage and a transcript of events.

A log is made of plain values and checked by Inspect's own models before it is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rlm_loop.errors import DISTRIBUTION, install_line
from rlm_loop.formats.traces.calls import OURS
from rlm_loop.formats.traces.conversation import RunConversation, Step
from rlm_loop.formats.traces.inspect_events import Transcript, iso, output_of
from rlm_loop.formats.traces.usage import known, to_inspect
from rlm_loop.messages import Usage
from rlm_loop.traces.values import plain
from rlm_loop.traces.versions import __version__

SCORER = "resolved"
_LIMITS = {"steps": "message", "seconds": "time", "tokens": "token", "cost": "cost", "calls": "turn"}


def write_log(conversations: Sequence[RunConversation], path: str | Path) -> None:
    """Write runs of one agent, model and suite as one `.eval` log; several runs of a task are its epochs.

    Raises `ImportError` where the extra `inspect` is not installed, `OSError` as writing does.
    """
    try:
        from inspect_ai.log import EvalLog, condense_sample, write_eval_log
    except ImportError as error:
        raise ImportError(f"Inspect's logs need the package inspect_ai: {install_line('inspect')}") from error
    log = EvalLog.model_validate(log_of(conversations))
    log.samples = [condense_sample(sample) for sample in log.samples or ()]
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    write_eval_log(log, str(path), format="eval")


def log_of(conversations: Sequence[RunConversation]) -> dict[str, Any]:
    """The log as plain values.  Its task is the suite of a study, else the run's task."""
    first, ids = conversations[0], list(dict.fromkeys(c.task for c in conversations))
    epochs = dict.fromkeys(ids, 0)
    samples: list[dict[str, Any]] = []
    for conversation in conversations:
        epochs[conversation.task] += 1
        samples.append(_sample(conversation, epochs[conversation.task]))
    episode, began = first.episode, min(c.root.began for c in conversations)
    name = str(episode.get("suite") or first.task)
    return {
        "version": 2,
        "status": "success",
        "eval": {
            "eval_id": f"rlm-{first.id}",
            "run_id": f"rlm-{episode.get('study') or first.id}",
            "task_id": "--".join(str(episode.get(part, first.id)) for part in ("study", "arm", "model", "suite")),
            "task_args": {"arm": str(episode["arm"])} if "arm" in episode else {},
            "created": iso(began),
            "task": name,
            "dataset": {"name": name, "samples": len(ids), "sample_ids": ids},
            "solver": str(episode.get("arm") or first.agent),
            "model": first.model,
            "config": {"epochs": max(epochs.values())},
            "packages": {DISTRIBUTION: __version__},
            "metadata": {OURS: {"episode": dict(episode)}},
            "scorers": [{"name": SCORER}],
        },
        "results": _results(conversations),
        "stats": {
            "started_at": iso(began),
            "completed_at": iso(max(c.root.ended for c in conversations)),
            "model_usage": _usage_by_model(step for c in conversations for step in c.steps),
        },
        "samples": samples,
    }


def _results(conversations: Sequence[RunConversation]) -> dict[str, Any]:
    judged = [c.score.resolved for c in conversations if c.score is not None and c.score.resolved is not None]
    rate = [{"name": "accuracy", "value": sum(judged) / len(judged)}] if judged else []
    scores = {"name": SCORER, "scorer": SCORER, "metrics": {metric["name"]: metric for metric in rate}}
    counts = {"scored_samples": len(judged), "unscored_samples": len(conversations) - len(judged)}
    return {
        "total_samples": len(conversations),
        "completed_samples": sum(c.stop is not None for c in conversations),
        "scores": [scores | counts],
    }


def _usage_by_model(steps: Iterator[Step]) -> dict[str, Any]:
    """Sums by model, of the calls whose input and output are known."""
    found: dict[str, Usage] = {}
    for step in steps:
        if step.usage is not None and to_inspect(step.usage) is not None:
            found[step.model] = found.get(step.model, Usage.NOTHING) + step.usage
    return {model or "unknown": to_inspect(usage) for model, usage in found.items()}


def _sample(conversation: RunConversation, epoch: int) -> dict[str, Any]:
    root, end, score = conversation.root, conversation.root.end or {}, conversation.score
    transcript = Transcript(conversation)
    last = next((step for step in reversed(root.steps) if step.purpose == "agent"), None)
    ours = {"run": conversation.id, "about": dict(conversation.about), "score": None if score is None else plain(score)}
    return known(
        {
            "id": conversation.task,
            "epoch": epoch,
            "input": conversation.question,
            "target": "",
            "messages": transcript.said(root),
            "output": None if last is None else output_of(last),
            "scores": _scores(conversation),
            "metadata": {OURS: ours},
            "events": transcript.events(),
            "model_usage": _usage_by_model(iter(conversation.steps)),
            "started_at": iso(root.began),
            "completed_at": iso(root.ended),
            "total_time": end.get("seconds"),
            "working_time": end.get("working_seconds"),
            "uuid": f"{conversation.id}-{epoch}",
            "limit": _limit(conversation),
            "error": _error(str(end.get("reason", ""))) if conversation.stop in ("failed", "interrupted") else None,
        }
    )


def _scores(conversation: RunConversation) -> dict[str, Any] | None:
    score = conversation.score
    if score is None or score.resolved is None:
        return None
    answer = None if conversation.answer is None else str(conversation.answer)
    value = "C" if score.resolved else "I"
    return {SCORER: {"value": value, "answer": answer, "explanation": score.reason, "metadata": {"value": score.value}}}


def _limit(conversation: RunConversation) -> dict[str, Any] | None:
    """The limit that ended the run, where it is one that Inspect has a name for."""
    stop, limits = str(conversation.stop), conversation.about.get("budget") or {}
    if stop not in _LIMITS or limits.get(stop) is None:
        return None
    return {"type": _LIMITS[stop], "limit": limits[stop], "reason": (conversation.root.end or {}).get("reason")}


def _error(message: str) -> dict[str, str]:
    return {"message": message, "traceback": "", "traceback_ansi": ""}

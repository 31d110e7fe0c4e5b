"""Runs as one log of Inspect: a sample a run, with the messages of its root agent, its score and its usage.

A log is made of plain values and checked by Inspect's own models before it is written.  What Inspect has no field for
is in `metadata` under `rlm_loop`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rlm_loop.errors import DISTRIBUTION, install_line
from rlm_loop.formats.conversation import Conversation, arguments_of
from rlm_loop.messages import Message, Reply, Usage
from rlm_loop.replay.recorded import RecordedCall
from rlm_loop.versions import __version__

#: Our words and Inspect's: why a reply ended.
_STOPS = {"stop": "stop", "length": "max_tokens", "tool_calls": "tool_calls", "content_filter": "content_filter"}


def write_log(conversations: Sequence[Conversation], path: Path) -> None:
    """Write runs of one agent, model and suite as one `.eval` log; several runs of a task are its epochs.

    Raises `ImportError` where the extra `inspect` is not installed, `OSError` as writing does.
    """
    try:
        from inspect_ai.log import EvalLog, write_eval_log
    except ImportError as error:
        raise ImportError(f"Inspect's logs need the package inspect_ai: {install_line('inspect')}") from error
    path.parent.mkdir(parents=True, exist_ok=True)
    write_eval_log(EvalLog.model_validate(_log(conversations)), str(path), format="eval")


def _log(conversations: Sequence[Conversation]) -> dict[str, Any]:
    """The log; its task is the suite of a study, else the run's task."""
    first, epochs, samples = conversations[0], dict[str, int](), list[dict[str, Any]]()
    for conversation in conversations:
        task = conversation.told("task", "question")
        epochs[task] = epochs.get(task, 0) + 1
        samples.append(_sample(conversation, task, epochs[task]))
    episode, began = first.episode, _iso(min(c.spans[0].began for c in conversations))
    name = str(episode.get("suite") or first.told("task", "question"))
    judged = [c.score.resolved for c in conversations if c.score is not None and c.score.resolved is not None]
    metrics = {"accuracy": {"name": "accuracy", "value": sum(judged) / len(judged)}} if judged else {}
    return {
        "version": 2,
        "status": "success",
        "eval": {
            "eval_id": f"rlm-{first.id}",
            "run_id": f"rlm-{episode.get('study') or first.id}",
            "task_id": "--".join(str(episode.get(part, first.id)) for part in ("study", "arm", "model", "suite")),
            "task_args": {"arm": str(episode["arm"])} if "arm" in episode else {},
            "created": began,
            "task": name,
            "dataset": {"name": name, "samples": len(epochs), "sample_ids": list(epochs)},
            "solver": str(episode.get("arm") or first.told("agent", "agent")),
            "model": first.told("model", "unknown"),
            "config": {"epochs": max(epochs.values())},
            "packages": {DISTRIBUTION: __version__},
            "scorers": [{"name": "resolved"}],
        },
        "results": {
            "total_samples": len(samples),
            "completed_samples": sum("stop" in (c.root.end or {}) for c in conversations),
            "scores": [{"name": "resolved", "scorer": "resolved", "metrics": metrics, "scored_samples": len(judged)}],
        },
        "stats": {
            "started_at": began,
            "completed_at": _iso(max(c.spans[0].ended for c in conversations)),
            "model_usage": _usage_by_model(call for c in conversations for call in c.calls),
        },
        "samples": samples,
    }


def _usage_by_model(calls: Iterable[RecordedCall]) -> dict[str, Any]:
    """Sums by model, of the calls whose input and output are known."""
    found: dict[str, Usage] = {}
    for call in calls:
        used = call.reply and call.reply.usage
        if used is not None and _usage(used):
            found[call.model] = found.get(call.model, Usage.NOTHING) + used
    return {model or "unknown": _usage(usage) for model, usage in found.items()}


def _usage(usage: Usage | None) -> dict[str, Any] | None:
    """Inspect's `ModelUsage`, which has tokens of a cache apart; `None` where input or output is not known."""
    if usage is None or usage.input_tokens is None or usage.output_tokens is None:
        return None
    return {
        "input_tokens": usage.input_tokens - (usage.cache_read_tokens or 0) - (usage.cache_write_tokens or 0),
        "output_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "input_tokens_cache_write": usage.cache_write_tokens,
        "input_tokens_cache_read": usage.cache_read_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
        "total_cost": usage.cost,
    }


def _sample(run: Conversation, task: str, epoch: int) -> dict[str, Any]:
    root, score, end = run.spans[0], run.score, run.root.end or {}
    own = [call for call in run.root.calls if call.purpose == "agent"]
    messages = [_message(one) for one in own[-1].prompt.messages] if own else []
    if own and own[-1].reply is not None:
        messages.append(_assistant(own[-1].reply, own[-1].model))
    ours = {"run": run.id, "stop": end.get("stop"), "episode": dict(run.episode)}
    causes = sum((Counter(span.causes) for span in run.spans), Counter[str]())
    found = {
        "id": task,
        "epoch": epoch,
        "input": run.told("question", ""),
        "target": "",
        "messages": messages,
        "metadata": {"rlm_loop": {**ours, "input_tokens_by_cause": dict(causes)}},
        "model_usage": _usage_by_model(run.calls),
        "started_at": _iso(root.began),
        "completed_at": _iso(root.ended),
        "total_time": end.get("seconds"),
        "working_time": end.get("working_seconds"),
        "uuid": f"{run.id}-{epoch}",
    }
    if own:
        found["output"] = _output(own[-1])
    if score is not None and score.resolved is not None:
        answer = None if end.get("answer") is None else str(end["answer"])
        judged = {"value": "C" if score.resolved else "I", "answer": answer, "explanation": score.reason}
        found["scores"] = {"resolved": {**judged, "metadata": {"value": score.value}}}
    if root.fault:
        found["error"] = {"message": root.fault[1], "traceback": "", "traceback_ansi": ""}
    return found


def _output(call: RecordedCall) -> dict[str, Any]:
    """Inspect's `ModelOutput` of a call; without choices where there was no reply."""
    if call.reply is None:
        return {"model": call.model, "choices": [], "error": call.error}
    stop = _STOPS.get(call.reply.finish_reason, "unknown")
    choice = {"message": _assistant(call.reply, call.model), "stop_reason": stop}
    return {"model": call.model, "choices": [choice], "usage": _usage(call.reply.usage), "time": call.reply.seconds}


def _message(said: Message) -> dict[str, Any]:
    called = {"tool_call_id": said.tool_call_id} if said.role == "tool" else _calls(said)
    return {"role": said.role, "content": said.text, **called}


def _assistant(reply: Reply, model: str) -> dict[str, Any]:
    return {"role": "assistant", "content": reply.text, "source": "generate", "model": model, **_calls(reply)}


def _calls(said: Message | Reply) -> dict[str, Any]:
    calls = [
        {"id": call.id or f"call_{number}", "function": call.name, "arguments": arguments_of(call.arguments)}
        for number, call in enumerate(said.tool_calls, 1)
    ]
    return {"tool_calls": calls} if calls else {}


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()

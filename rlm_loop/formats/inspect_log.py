"""Runs as one log of Inspect: a sample a run, with its messages, score, usage and a transcript of events.

A log is made of plain values and checked by Inspect's own models before it is written.  What Inspect has no field for
is in `metadata` under `rlm_loop`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rlm_loop.errors import DISTRIBUTION, install_line
from rlm_loop.formats.conversation import Act, Conversation, Span, arguments_of
from rlm_loop.messages import Message, Reply, Usage
from rlm_loop.replay.recorded import NodeRecord, RecordedCall
from rlm_loop.versions import __version__

#: Our words and Inspect's: why a reply ended, and what failed with a tool.
_STOPS = {"stop": "stop", "length": "max_tokens", "tool_calls": "tool_calls", "content_filter": "content_filter"}
_FAILURES = {"timeout": "timeout", "denied": "permission", "invalid_arguments": "parsing", "budget": "limit"}


def write_log(conversations: Sequence[Conversation], path: Path) -> None:
    """Write runs of one agent, model and suite as one `.eval` log; several runs of a task are its epochs.

    Raises `ImportError` where the extra `inspect` is not installed, `OSError` as writing does.
    """
    try:
        from inspect_ai.log import EvalLog, condense_sample, write_eval_log
    except ImportError as error:
        raise ImportError(f"Inspect's logs need the package inspect_ai: {install_line('inspect')}") from error
    log = EvalLog.model_validate(_log(conversations))
    log.samples = [condense_sample(sample) for sample in log.samples or ()]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_eval_log(log, str(path), format="eval")


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
    ids: dict[tuple[str, Message], str] = {}

    def message(said: Message, agent: str) -> dict[str, Any]:
        """A message as Inspect has it, with one id wherever it is sent, so that Inspect stores it once."""
        id = ids.setdefault((agent, said), f"{run.id}.{agent}.{len(ids)}")
        called = {"tool_call_id": said.tool_call_id} if said.role == "tool" else _calls(said)
        return {"id": id, "role": said.role, "content": said.text, **called}

    own = [call for call in run.root.calls if call.purpose == "agent"]
    messages = [message(one, root.id) for one in own[-1].prompt.messages] if own else []
    if own and own[-1].reply is not None:
        messages.append(_assistant(own[-1].reply, own[-1].model))
    found = {
        "id": task,
        "epoch": epoch,
        "input": run.told("question", ""),
        "target": "",
        "messages": messages,
        "metadata": {"rlm_loop": {"run": run.id, "stop": end.get("stop"), "episode": dict(run.episode)}},
        "events": _events(run, message),
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


def _events(run: Conversation, message: Callable[[Message, str], dict[str, Any]]) -> list[dict[str, Any]]:
    """The transcript by time.  Inspect looks for agents within a span called `solvers`."""
    root, solvers = run.spans[0], f"{run.id}.solvers"
    found: list[tuple[float, dict[str, Any]]] = []

    def add(kind: str, at: float, span: str, **fields: Any) -> None:
        when = {"timestamp": _iso(at), "working_start": max(0.0, at - root.began)}
        found.append((at, {"event": kind, "span_id": span, **when, **fields}))

    add("span_begin", root.began, solvers, id=solvers, name="solvers", type="solvers")
    for span in run.spans:
        agent = span.id.partition("/")[0]
        own = f"{run.id}.{agent}"
        match span.of:
            case RecordedCall() as call:
                add(
                    "model",
                    span.began,
                    own,
                    **_model_event(span, call, [message(m, agent) for m in call.prompt.messages]),
                )
            case Act() as act:
                add("tool", span.began, own, **_tool_event(span, act))
            case node:
                name = run.told("agent", "agent") if span is root else f"{(node.start or {}).get('kind')} {agent}"
                above = solvers if span is root else f"{run.id}.{agent.rpartition('.')[0]}"
                add("span_begin", span.began, own, id=own, parent_id=above, type="agent", name=name)
    for span in reversed(run.spans):
        if isinstance(span.of, NodeRecord):
            add("span_end", span.ended, f"{run.id}.{span.id}", id=f"{run.id}.{span.id}")
    add("span_end", root.ended, solvers, id=solvers)
    return [event for _, event in sorted(found, key=lambda one: one[0])]


def _model_event(span: Span, call: RecordedCall, messages: list[dict[str, Any]]) -> dict[str, Any]:
    ours = {"turn": call.turn, "purpose": call.purpose, "input_tokens_by_cause": dict(span.causes)}
    return {
        "model": call.model or "unknown",
        "input": messages,
        "tools": [_tool(tool["function"]) for tool in call.prompt.tools],
        "tool_choice": "auto",
        "config": {},
        "output": _output(call),
        "error": call.error,
        "completed": _iso(span.ended),
        "working_time": None if call.reply is None else call.reply.seconds - call.reply.waited,
        "metadata": {"rlm_loop": ours},
    }


def _tool_event(span: Span, act: Act) -> dict[str, Any]:
    failed = span.fault and {"type": _FAILURES.get(span.fault[0], "unknown"), "message": span.fault[1]}
    return {
        "id": act.id,
        "function": act.name,
        "arguments": dict(act.arguments),
        "result": act.observation.text,
        "error": failed,
        "completed": _iso(span.ended),
        "working_time": act.observation.seconds,
    }


def _output(call: RecordedCall) -> dict[str, Any]:
    """Inspect's `ModelOutput` of a call; without choices where there was no reply."""
    if call.reply is None:
        return {"model": call.model, "choices": [], "error": call.error}
    stop = _STOPS.get(call.reply.finish_reason, "unknown")
    choice = {"message": _assistant(call.reply, call.model), "stop_reason": stop}
    return {"model": call.model, "choices": [choice], "usage": _usage(call.reply.usage), "time": call.reply.seconds}


def _assistant(reply: Reply, model: str) -> dict[str, Any]:
    return {"role": "assistant", "content": reply.text, "source": "generate", "model": model, **_calls(reply)}


def _calls(said: Message | Reply) -> dict[str, Any]:
    calls = [
        {"id": call.id or f"call_{number}", "function": call.name, "arguments": arguments_of(call.arguments)}
        for number, call in enumerate(said.tool_calls, 1)
    ]
    return {"tool_calls": calls} if calls else {}


def _tool(function: Any) -> dict[str, Any]:
    parameters: dict[str, Any] = function.get("parameters") or {}
    kept = {name: parameters[name] for name in ("properties", "required") if name in parameters}
    named = {name: str(function.get(name, name)) for name in ("name", "description")}
    return {**named, "parameters": {"type": "object", **kept}}


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()

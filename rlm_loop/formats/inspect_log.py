"""Runs as one log of Inspect: a sample a run, with its messages, score, usage and a transcript of events.

A log is made of plain values and checked by Inspect's own models before it is written.  What Inspect has no field for
is in `metadata` under `rlm_loop`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rlm_loop.errors import DISTRIBUTION, install_line
from rlm_loop.formats.conversation import Agent, Conversation, Step, arguments_of
from rlm_loop.messages import Message, Reply, Usage
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
    episode, began = first.episode, _iso(min(c.root.began for c in conversations))
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
            "completed_samples": sum("stop" in c.root.end for c in conversations),
            "scores": [{"name": "resolved", "scorer": "resolved", "metrics": metrics, "scored_samples": len(judged)}],
        },
        "stats": {
            "started_at": began,
            "completed_at": _iso(max(c.root.ended for c in conversations)),
            "model_usage": _usage_by_model(step for c in conversations for step in c.steps),
        },
        "samples": samples,
    }


def _usage_by_model(steps: Iterable[Step]) -> dict[str, Any]:
    """Sums by model, of the calls whose input and output are known."""
    found: dict[str, Usage] = {}
    for step in steps:
        used = step.reply and step.reply.usage
        if used is not None and _usage(used):
            found[step.model] = found.get(step.model, Usage.NOTHING) + used
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
    root, end, score = run.root, run.root.end, run.score
    transcript = _Transcript(run)
    own = [step for step in root.steps if step.purpose == "agent"]
    messages = [transcript.message(message, root.path) for message in own[-1].messages] if own else []
    if own and own[-1].reply is not None:
        messages.append(_assistant(own[-1].reply, own[-1].model))
    found = {
        "id": task,
        "epoch": epoch,
        "input": run.told("question", ""),
        "target": "",
        "messages": messages,
        "metadata": {"rlm_loop": {"run": run.id, "stop": end.get("stop"), "episode": dict(run.episode)}},
        "events": list(transcript.events()),
        "model_usage": _usage_by_model(run.steps),
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


class _Transcript:
    """The events of one run; a message has the same id wherever it is sent, so that Inspect stores it once."""

    def __init__(self, run: Conversation) -> None:
        self.run, self.ids = run, dict[tuple[str, Message], str]()

    def events(self) -> Iterator[dict[str, Any]]:
        """The whole transcript: Inspect looks for agents within a span called `solvers`."""
        root, span = self.run.root, f"{self.run.id}.solvers"
        yield self._event("span_begin", span, root.began, id=span, name="solvers", type="solvers")
        yield from self._agent(root, span)
        yield self._event("span_end", span, root.ended, id=span)

    def _agent(self, agent: Agent, parent: str) -> Iterator[dict[str, Any]]:
        span = f"{self.run.id}.{agent.path}"
        root = agent is self.run.root
        name = self.run.told("agent", "agent") if root else f"{agent.kind} {agent.path}"
        yield self._event("span_begin", span, agent.began, id=span, parent_id=parent, type="agent", name=name)
        for step in agent.steps:
            yield self._call(step, agent.path, span)
            for act in step.acts:
                for child in act.agents:
                    yield from self._agent(child, span)
                failure = act.observation.failure
                kind = None if failure is None else _FAILURES.get(failure.kind, "unknown")
                yield self._event(
                    "tool",
                    span,
                    act.started,
                    id=act.id,
                    function=act.name,
                    arguments=dict(act.arguments),
                    result=act.observation.text,
                    error=None if failure is None else {"type": kind, "message": failure.message},
                    completed=_iso(act.ended),
                    working_time=act.observation.seconds,
                )
        for child in agent.agents:
            yield from self._agent(child, span)
        yield self._event("span_end", span, agent.ended, id=span)

    def _call(self, step: Step, path: str, span: str) -> dict[str, Any]:
        ours = {"turn": step.turn, "purpose": step.purpose, "input_tokens_by_cause": dict(step.causes)}
        return self._event(
            "model",
            span,
            step.started,
            model=step.model or "unknown",
            input=[self.message(message, path) for message in step.messages],
            tools=[_tool(tool["function"]) for tool in step.tools],
            tool_choice="auto",
            config={},
            output=_output(step),
            error=step.fault and step.fault[1],
            completed=_iso(step.ended),
            working_time=None if step.reply is None else step.reply.seconds - step.reply.waited,
            metadata={"rlm_loop": ours},
        )

    def _event(self, kind: str, span: str, at: float, **fields: Any) -> dict[str, Any]:
        start = max(0.0, at - self.run.root.began)
        return {"event": kind, "span_id": span, "timestamp": _iso(at), "working_start": start, **fields}

    def message(self, message: Message, path: str) -> dict[str, Any]:
        """A message as Inspect has it."""
        id = self.ids.setdefault((path, message), f"{self.run.id}.{path}.{len(self.ids)}")
        called = {"tool_call_id": message.tool_call_id} if message.role == "tool" else _calls(message)
        return {"id": id, "role": message.role, "content": message.text, **called}


def _output(step: Step) -> dict[str, Any]:
    """Inspect's `ModelOutput` of a call; without choices where there was no reply."""
    if step.reply is None:
        return {"model": step.model, "choices": [], "error": step.fault and step.fault[1]}
    stop = _STOPS.get(step.reply.finish_reason, "unknown")
    choice = {"message": _assistant(step.reply, step.model), "stop_reason": stop}
    return {"model": step.model, "choices": [choice], "usage": _usage(step.reply.usage), "time": step.reply.seconds}


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

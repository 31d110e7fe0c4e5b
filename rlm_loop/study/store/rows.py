"""One episode as one flat row: what was run, what it came to, and what it cost."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import accumulate
from typing import Any

from rlm_loop.actions import CallTool, Malformed, RunCode
from rlm_loop.models.names import without_folder
from rlm_loop.outcome import Outcome, Score
from rlm_loop.study.plan.grid import Episode
from rlm_loop.tasks.base import Deferred, Task
from rlm_loop.tools.calls import describe
from rlm_loop.traces.received import shown

Row = dict[str, Any]

#: Failures of the reply or of the rules, not of a tool or a cell.
_NOT_PERFORMED = ("malformed", "cut_off", "skipped", "rejected", "budget", "denied")
_CLIP = 500

#: Classes of errors after which an episode has not begun: nothing can succeed until a key or a model is put right.
_NEVER_BEGUN = ("AuthenticationFailed", "ModelNotFound")
_SCORING = "scoring failed: "


def make_row(
    study: str,
    episode: Episode,
    *,
    started: str,
    seconds: float,
    outcome: Outcome | None = None,
    judged: Row | None = None,
    error: str | None = None,
    error_class: str | None = None,
) -> Row:
    """The row of an episode.

    `started` is ISO 8601 in UTC; `seconds` is the wall time of the attempt, used where there is no outcome.
    Scoring is in neither.  `model` is the name that the study gives, `model_name` what the model calls itself,
    `model_version` what its provider says in the replies (empty: nothing).
    Token figures are sums over all model calls; `None` means not known; `cached_tokens` were read from a provider's
    cache.  `not_applied` is there where the provider did not take a setting, with what was done instead.  `error` is
    set for a crash: the figures then cover what was done until it; `error_class` is its type.
    `isolation` is what kept the cells apart from the machine (empty where none ran); it may differ from row to row,
    since it is no part of what a study is. `trace_run` is the id of the attempt's run in its trace. `facts` are
    those of the task, where it has any. `resolved` and `value` are `None` for an attempt that nothing judged; where
    its scorer failed `scorer_error` says why; `broke_others` is there for a patch that fixed all
    tests that it had to and broke others; `expected` is the `repr` of the answer that the scorer expected, where it
    says one. `judged` are these fields, of an attempt that was to be scored (see
    `study.scoring`). `arm_base` and `factors` are there where the study has factors.
    """
    return {
        "study": study,
        "arm": episode.arm,
        **({"arm_base": episode.base, "factors": dict(episode.factors)} if episode.factors else {}),
        "model": episode.model,
        "model_name": without_folder(outcome.model if outcome is not None else "") or episode.model,
        "model_version": _version(outcome),
        "suite": episode.suite,
        "task": episode.task.id,
        "level": episode.task.level,
        **_facts(episode.task),
        "seed": episode.seed,
        **(judged or {"resolved": False, "value": 0.0, "score_reason": "", "scorer_error": None}),
        **(_account(outcome) if outcome is not None else _nothing(seconds)),
        "trace": episode.trace,
        "trace_run": outcome.run if outcome is not None else "",
        "error": error,
        "error_class": error_class or class_of(error),
        "started": started,
    }


def _version(outcome: Outcome | None) -> str:
    """What the provider says in its replies that answered; several where it says several."""
    said = [str(t.reply.extra.get("model") or "") for t in outcome.turns] if outcome is not None else []
    return ", ".join(sorted({without_folder(s) for s in said if s}))


def score_fields(score: Score | None) -> Row:
    """What a score says; of an attempt that nothing judged (`None`: nothing could) it is not known."""
    reason = "" if score is None else clipped(score.reason, 300)
    if score is None or score.resolved is None:
        return {"resolved": None, "value": None, "score_reason": reason}
    known = {"expected": clipped(shown(score.evidence["expected"]), 300)} if "expected" in score.evidence else {}
    broke = {"broke_others": True} if score.evidence.get("broke_others") is True else {}
    return {"resolved": bool(score.resolved), "value": _finite(score.value), "score_reason": reason, **known, **broke}


def _facts(task: Task) -> Row:
    """The task's own figures, and which text a deferred context was made of; tasks without any have no such field."""
    facts = dict(task.facts)
    if isinstance(task.context, Deferred):
        facts["context"] = task.context.identify()
    return {"facts": facts} if facts else {}


def _account(outcome: Outcome) -> Row:
    usage, ledger = outcome.usage, outcome.ledger
    known = usage.input_tokens is not None and usage.cache_read_tokens is not None
    done = [(a, o) for t in outcome.turns for a, o in zip(t.actions, t.observations, strict=True)]
    performed = [
        (a, o)
        for a, o in done
        if isinstance(a, (RunCode, CallTool)) and (o.failure is None or o.failure.kind not in _NOT_PERFORMED)
    ]
    in_repl = [isinstance(a, RunCode) or o.cause == "repl_output" for a, o in performed]
    failed = [not o.ok for _, o in performed]
    return {
        "stop": str(outcome.stop),
        "answered": outcome.answered,
        "reason": clipped(outcome.reason, 300),
        "answer": clipped(shown(outcome.answer)),
        "steps": outcome.steps,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cached_tokens": usage.cache_read_tokens,
        "cache_write_tokens": usage.cache_write_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
        "new_tokens": (usage.input_tokens or 0) - (usage.cache_read_tokens or 0) if known else None,
        "scaffold_tokens": ledger.scaffold_tokens,
        "by_cause": ledger.by_cause(),
        "counting": ledger.counting,
        "cumulative_prompt_tokens": _cumulative(outcome),
        "seconds": round(outcome.seconds, 3),
        "working_seconds": round(outcome.working_seconds, 3),
        "model_seconds": round(sum(c.seconds for c in ledger.calls), 3),
        "tool_seconds": [round(o.seconds, 3) for _, o in performed],
        "calls": usage.calls,
        "cost": usage.cost,
        "malformed_turns": sum(any(isinstance(a, Malformed) for a in t.actions) for t in outcome.turns),
        "actions": len(performed),
        "tool_failures": sum(f and not r for f, r in zip(failed, in_repl, strict=True)),
        "cell_errors": sum(f and r for f, r in zip(failed, in_repl, strict=True)),
        "lenient_calls": sum(isinstance(a, CallTool) and a.lenient for a, _ in done),
        "isolation": outcome.isolation,
        **_not_applied(outcome),
    }


def _not_applied(outcome: Outcome) -> Row:
    """The settings that the provider did not take in some turn, and what was done instead; most take all."""
    found: Row = {}
    for turn in outcome.turns:
        found |= turn.reply.extra.get("not_applied") or {}
    return {"not_applied": dict(sorted(found.items()))} if found else {}


def _nothing(seconds: float) -> Row:
    """The figures of a crash that left no outcome: not known, except the time."""
    unknown = dict.fromkeys(
        (
            *("input_tokens", "output_tokens", "cached_tokens", "cache_write_tokens", "reasoning_tokens"),
            *("new_tokens", "scaffold_tokens", "calls", "cost"),
        )
    )
    return {
        "stop": "failed",
        "answered": False,
        "reason": "",
        "answer": "None",
        "steps": 0,
        **unknown,
        "by_cause": {},
        "counting": "",
        "cumulative_prompt_tokens": [],
        "seconds": round(seconds, 3),
        "working_seconds": round(seconds, 3),
        "model_seconds": 0.0,
        "tool_seconds": [],
        "malformed_turns": 0,
        "actions": 0,
        "tool_failures": 0,
        "cell_errors": 0,
        "lenient_calls": 0,
        "isolation": "",
    }


def _cumulative(outcome: Outcome) -> list[int]:
    """Prompt tokens sent up to and including each turn, sub-calls included; empty where they are not known."""
    by_turn: dict[int, int] = {}
    for call in outcome.ledger.calls:
        if call.usage.input_tokens is None:
            return []
        by_turn[call.turn] = by_turn.get(call.turn, 0) + call.usage.input_tokens
    return list(accumulate(by_turn[turn] for turn in sorted(by_turn)))


def crash_line(error: BaseException) -> str:
    """The type of an error and the first line of its message."""
    lines = describe(error).partition(": ")[2].strip().splitlines()
    return clipped(f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__, 300)


def class_of(error: str | None) -> str | None:
    """The class in a line of `crash_line`: what rows of before there was `error_class` say as well."""
    if error is None:
        return None
    return error.removeprefix(_SCORING).partition(":")[0].strip() or "Exception"


def finished(row: Mapping[str, Any]) -> bool:
    """The episode ran to its end, scored or not; a crash is not finished."""
    return row.get("error") is None


def to_run(row: Mapping[str, Any] | None, *, retry_failed: bool = False) -> bool:
    """Whether an episode is still to be run, by its row (`None`: it has none).

    A failed or unscored episode is run again only on request; one that never began, for want of a key, a model or
    its server, or was broken off to be begun again, always is.
    """
    if row is None:
        return True
    if finished(row):
        return retry_failed and bool(row.get("scorer_error"))
    return retry_failed or bool(row.get("again")) or never_begun(row)


def never_begun(row: Mapping[str, Any]) -> bool:
    """Whether an episode ended before a model said anything: no key, no such model, or a server that was not there."""
    kind = row.get("error_class") or class_of(row.get("error"))
    return kind in _NEVER_BEGUN or (kind == "ModelUnreachable" and row.get("calls") == 0)


def key(row: Mapping[str, Any]) -> tuple[str, str, str, str, int]:
    """The episode that a row belongs to (`Episode.key`)."""
    return (row["arm"], row["model"], row["suite"], row["task"], row["seed"])


def clipped(text: str, most: int = _CLIP) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _finite(value: float) -> float:
    return float(value) if math.isfinite(value) else 0.0

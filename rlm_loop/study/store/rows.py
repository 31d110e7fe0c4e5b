"""An episode as one flat row: what was run, what it came to, and what it cost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from rlm_loop.accounting.ledger import Ledger
from rlm_loop.actions import CallTool, Malformed, RunCode
from rlm_loop.errors import install_line
from rlm_loop.messages import Usage
from rlm_loop.models.names import without_folder
from rlm_loop.outcome import Outcome, Score, Stop
from rlm_loop.study.errors import StudyError
from rlm_loop.study.plan.grid import Episode
from rlm_loop.tasks.base import Deferred, Task
from rlm_loop.tools.function import describe
from rlm_loop.traces.received import shown

if TYPE_CHECKING:
    import pandas as pd

Row = dict[str, Any]

#: Failures of the reply or of the rules, not of a tool or a cell.
_NOT_PERFORMED = ("malformed", "cut_off", "skipped", "rejected", "budget", "denied")
_CLIP = 500

#: Classes of errors after which an episode has not begun: nothing can succeed until a key or a model is put right.
_NEVER_BEGUN = ("AuthenticationFailed", "ModelNotFound")
#: Classes of errors of the machine, which say nothing of the arm.
MACHINE = frozenset(
    {
        *("BlockingIOError", "ContextGone", "FileExistsError", "FileNotFoundError", "ImportError"),
        *("IsADirectoryError", "MemoryError", "ModuleNotFoundError", "NotADirectoryError", "OSError"),
        *("PermissionError", "SetupFailed", "TraceUnwritable", "WorkerLost"),
    }
)


def make_row(
    study: str,
    episode: Episode,
    *,
    started: str,
    seconds: float,
    outcome: Outcome | None = None,
    judged: Row | None = None,
    crash: BaseException | None = None,
) -> Row:
    """The row of an episode.

    `started` is ISO 8601 in UTC; `seconds` is the wall time of the attempt, used where there is no outcome.
    Scoring is in neither.  `model` is the name that the study gives, `model_name` what the model calls itself,
    `model_version` what its provider says in the replies (empty: nothing).
    Token figures are sums over all model calls; `None` means not known; `cached_tokens` were read from a provider's
    cache.  `not_applied` is there where the provider did not take a setting, with what was done instead.  `error` is
    set for a crash: the figures then cover what was done until it; `error_class` is its type.
    `isolation` is what kept the cells apart from the machine (empty where none ran); it may differ from row to row.
    `trace_run` is the id of the attempt's run in its trace.  `facts` are those of the task, where it has any.
    `resolved` and `value` are `None` for an attempt that nothing judged; where its scorer failed `scorer_error` says
    why; `broke_others` is there for a patch that fixed all tests that it had to and broke others; `expected` is the
    `repr` of the answer that the scorer expected, where it says one.  `judged` are these fields, of an attempt that was
    to be scored.  `arm_base` and `factors` are there where the study has factors.
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
        "error": None if crash is None else crash_line(crash),
        "error_class": None if crash is None else type(crash).__name__,
        "started": started,
    }


def _version(outcome: Outcome | None) -> str:
    """Return what the provider says in its replies that answered; several where it says several."""
    said = [str(t.reply.extra.get("model") or "") for t in outcome.turns] if outcome is not None else []
    return ", ".join(sorted({without_folder(s) for s in said if s}))


def score_fields(score: Score | None) -> Row:
    """Return what a score says; of an attempt that nothing judged (`None`: nothing could) it is not known."""
    reason = "" if score is None else clipped(score.reason, 300)
    if score is None or score.resolved is None:
        return {"resolved": None, "value": None, "score_reason": reason}
    known = {"expected": clipped(shown(score.evidence["expected"]), 300)} if "expected" in score.evidence else {}
    broke = {"broke_others": True} if score.evidence.get("broke_others") is True else {}
    value = float(score.value) if math.isfinite(score.value) else 0.0
    return {"resolved": bool(score.resolved), "value": value, "score_reason": reason, **known, **broke}


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
    tried = [(a, o) for a, o in done if isinstance(a, (RunCode, CallTool))]
    performed = [(a, o) for a, o in tried if o.failure is None or o.failure.kind not in _NOT_PERFORMED]
    failed_in_repl = [isinstance(a, RunCode) or o.cause == "repl_output" for a, o in performed if not o.ok]
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
        "tool_failures": failed_in_repl.count(False),
        "cell_errors": failed_in_repl.count(True),
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
    empty = Outcome(None, Stop.FAILED, (), Usage(), Ledger(), seconds=seconds, working_seconds=seconds)
    return {**_account(empty), "scaffold_tokens": None, "calls": None}


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
    """The class in a line of `crash_line`, for rows that were recorded without `error_class`."""
    return None if error is None else error.partition(":")[0].strip() or "Exception"


def finished(row: Mapping[str, Any]) -> bool:
    """The episode ran to its end, scored or not; a crash is not finished."""
    return row.get("error") is None


def kind_of(row: Mapping[str, Any]) -> str | None:
    """The class of a row's crash; `None` for an episode that ran to its end."""
    return row.get("error_class") or class_of(row.get("error"))


def to_run(row: Mapping[str, Any] | None, *, retry_failed: bool = False) -> bool:
    """Return whether an episode is still to be run, by its row (`None`: it has none).

    A failed or unscored episode is run again only on request.  One that never began, for want of a key, a model or
    its server, that the machine ended, or that met a provider's limit, always is.
    """
    if row is None:
        return True
    if finished(row):
        return retry_failed and bool(row.get("scorer_error"))
    return retry_failed or never_begun(row) or kind_of(row) in {*MACHINE, "RateLimited"}


def never_begun(row: Mapping[str, Any]) -> bool:
    """Return whether an episode ended before a model said anything: no key, no such model, or no server."""
    return kind_of(row) in _NEVER_BEGUN or (kind_of(row) == "ModelUnreachable" and row.get("calls") == 0)


def key(row: Mapping[str, Any]) -> tuple[str, str, str, str, int]:
    """The episode that a row belongs to (`Episode.key`)."""
    return (row["arm"], row["model"], row["suite"], row["task"], row["seed"])


def clipped(text: str, most: int = _CLIP) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def frame_of(rows: Sequence[Mapping[str, Any]], columns: Sequence[str] | None = None) -> pd.DataFrame:
    """A frame of rows, with these columns in their order.  Raises `StudyError` that says what to install."""
    try:
        import pandas
    except ImportError:
        raise StudyError(f"frames need pandas: {install_line('studies')}") from None
    return pandas.DataFrame(rows, columns=None if columns is None else list(columns))

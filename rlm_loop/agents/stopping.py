"""When a run is over: one pure function of the turns so far and the account."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import takewhile

from rlm_loop.accounting.budget import Account, Budget
from rlm_loop.actions import CallTool, FailureKind, Malformed, Note
from rlm_loop.outcome import Stop, Turn

#: Failures that say nothing about a tool: the reply itself could not be read, or nothing was run.
_NOT_A_TOOL_FAILURE: tuple[FailureKind, ...] = ("malformed", "cut_off", "skipped", "rejected", "budget")

#: What differs between two equal results: the number of the cell in a traceback, an object's address.
_PASSING = re.compile(r"(?<=<cell )\d+(?=>)|(?<= at 0x)[0-9a-f]+")

#: How often an answer may be refused (by its type or its check) before the run ends.
REJECTIONS = 3


def stop_reason(turns: Sequence[Turn], account: Account) -> tuple[Stop, str] | None:
    """Why the run ends now, with one line of reason, or `None` to go on.

    An answer comes first: one given in the turn that breaks a limit is kept.
    """
    if turns and turns[-1].answer is not None:
        return Stop.ANSWERED, ""
    trouble = bool(turns) and _trouble(turns[-1])
    if trouble and (blocked := _blocked(turns[-1])) is not None:
        return Stop.BLOCKED, blocked
    steps = account.budget.steps
    if steps is not None and len(turns) >= steps:
        return Stop.STEPS, f"the limit of {steps} steps is reached"
    found = account.exceeded()
    if found is not None:
        return Stop(found[0]), found[1]
    if not turns:
        return None
    if trouble and (found := _troubled(turns, account.budget)) is not None:
        return found
    times = account.budget.repeated
    if times is not None and (period := _period(turns, int(times))):
        again = "the same reply with the same result" if period == 1 else "the same two replies in turn"
        return Stop.REPEATED, f"{again}, {'twice' if times == 2 else f'{times:g} times'} over"
    failures = _failures_in_a_row(turns) if trouble and _tool_results(turns[-1]) else 0
    if account.budget.tool_failures is not None and failures and failures >= account.budget.tool_failures:
        return Stop.TOOL_FAILURES, f"{failures} failed tool calls in a row; the last: {_message(turns[-1])}"
    return None


def _trouble(turn: Turn) -> bool:
    """True where an action of the turn could not be read, or came to nothing."""
    for action, seen in zip(turn.actions, turn.observations, strict=True):
        if seen.failure is not None or isinstance(action, Malformed):
            return True
    return False


def _troubled(turns: Sequence[Turn], budget: Budget) -> tuple[Stop, str] | None:
    """Return why replies that cannot be read, or refused answers, end the run; `None` to go on."""
    malformed = _run_length(_unreadable, turns)
    if budget.malformed is not None and malformed and malformed >= budget.malformed:
        kinds = {"refused answers" if _refused(t) else "unreadable replies" for t in turns[-malformed:]}
        return Stop.MALFORMED, f"{malformed} {' or '.join(sorted(kinds))} in a row; the last: {_message(turns[-1])}"
    refusals = _run_length(_refusal, turns)
    if refusals >= 2:
        return Stop.BLOCKED, f"the model declines to go on: {turns[-1].reply.text.strip()[:200]}"
    # What the last turn did not add to was judged after an earlier one; looking at all turns each time is quadratic.
    refused = sum(map(_refusals_of, turns)) if _refused(turns[-1]) else 0
    if refused > REJECTIONS:
        return Stop.MALFORMED, f"{refused} answers were refused; the last: {_message(turns[-1])}"
    return None


def _unreadable(turn: Turn) -> bool:
    """Nothing in the turn could be acted on: every action is malformed or a refused answer."""
    return all(
        isinstance(a, Malformed) or (o.failure is not None and o.failure.kind == "rejected")
        for a, o in zip(turn.actions, turn.observations, strict=True)
    )


def _refused(turn: Turn) -> bool:
    """The reply could be read, and the answer in it was refused (by its type, its check, or since no code had run)."""
    return _refusals_of(turn) > 0


def _refusals_of(turn: Turn) -> int:
    return sum([o.failure is not None and o.failure.kind == "rejected" for o in turn.observations])


def _refusal(turn: Turn) -> bool:
    return any(isinstance(a, Malformed) and Note.REFUSAL in a.notes for a in turn.actions)


def _blocked(turn: Turn) -> str | None:
    """The model's reason where it says that it cannot go on."""
    return next((a.reason for a in turn.actions if isinstance(a, Malformed) and Note.BLOCKED in a.notes), None)


def _tool_results(turn: Turn) -> list[bool]:
    """Whether each tool call of the turn failed.

    A cell that raises is ordinary work in a REPL, under any dialect, so it neither counts nor resets.
    """
    return [
        o.failure is not None
        for a, o in zip(turn.actions, turn.observations, strict=True)
        if isinstance(a, CallTool)
        and o.cause != "repl_output"
        and (o.failure is None or o.failure.kind not in _NOT_A_TOOL_FAILURE)
    ]


def _run_length(test: Callable[[Turn], bool], turns: Sequence[Turn]) -> int:
    """How many of the last turns pass, back to the first that does not; no turn before it is looked at."""
    for count, turn in enumerate(reversed(turns)):
        if not test(turn):
            return count
    return len(turns)


def _failures_in_a_row(turns: Sequence[Turn]) -> int:
    latest_first = (failed for t in reversed(turns) for failed in reversed(_tool_results(t)))
    return sum(1 for _ in takewhile(bool, latest_first))


def _period(turns: Sequence[Turn], times: int) -> int:
    """1 or 2 if the last turns say the same so many `times` in a row, alone or two in turn, results included; else 0.

    The result is part of the comparison: the same `check()` after a change is progress, not repetition.  A turn that
    may be repeated (a poll, a call with a key, a sampled reply) is no repetition.
    """
    for period in (1, 2):
        last = turns[-period * times :]
        whole = len(last) == period * times and not any(o.repeatable for t in last for o in t.observations)
        if whole and all(_alike(last[n], last[n % period]) for n in range(period, len(last))):
            return period
    return 0


def _alike(one: Turn, other: Turn) -> bool:
    return _said(one) == _said(other) and _came(one) == _came(other)


def _said(turn: Turn) -> tuple[object, ...]:
    return (turn.reply.text, *((c.name, c.arguments) for c in turn.reply.tool_calls))


def _came(turn: Turn) -> list[object]:
    return [(_PASSING.sub("", o.text), o.failure and o.failure.kind) for o in turn.observations]


def _message(turn: Turn) -> str:
    return next((o.failure.message for o in reversed(turn.observations) if o.failure is not None), "")

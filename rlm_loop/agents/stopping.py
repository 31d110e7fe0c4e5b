"""The end of a run: one pure function of the turns so far and the account."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import takewhile

from rlm_loop.accounting.budget import Account
from rlm_loop.actions import CallTool, FailureKind, Malformed, Note
from rlm_loop.outcome import Stop, Turn

#: Failures that say nothing about a tool: the reply itself could not be read, or nothing was run.
_NOT_A_TOOL_FAILURE: tuple[FailureKind, ...] = ("malformed", "cut_off", "skipped", "rejected", "budget")

#: What differs between two equal results: the number of the cell in a traceback, an object's address.
_PASSING = re.compile(r"(?<=<cell )\d+(?=>)|(?<= at 0x)[0-9a-f]+")

#: How often an answer may be refused (by its type or its check) before the run ends.
REJECTIONS = 3


def stop_reason(turns: Sequence[Turn], account: Account) -> tuple[Stop, str] | None:
    """Return why the run ends now, with one line of reason, or `None` to go on.

    An answer comes first: one given in the turn that breaks a limit is kept.
    """
    if turns and turns[-1].answer is not None:
        return Stop.ANSWERED, ""
    trouble = [seen.failure.message for seen in turns[-1].observations if seen.failure is not None] if turns else []
    if trouble and (blocked := _malformed(turns[-1], Note.BLOCKED)):
        return Stop.BLOCKED, blocked[0].reason
    budget = account.budget
    if budget.steps is not None and len(turns) >= budget.steps:
        return Stop.STEPS, f"the limit of {budget.steps} steps is reached"
    if (spent := account.exceeded()) is not None:
        return Stop(spent[0]), spent[1]
    if trouble:
        last, count = turns[-1], _in_a_row(map(_unreadable, reversed(turns)))
        if budget.malformed is not None and count and count >= budget.malformed:
            return Stop.MALFORMED, f"{count} unreadable replies or refused answers in a row; the last: {trouble[-1]}"
        if _in_a_row(_malformed(turn, Note.REFUSAL) for turn in reversed(turns)) >= 2:
            return Stop.BLOCKED, f"the model declines to go on: {last.reply.text.strip()[:200]}"
        # What the last turn did not add to was judged after an earlier one: looking at all each time is quadratic.
        if _refused(last) and (refused := sum(map(_refused, turns))) > REJECTIONS:
            return Stop.MALFORMED, f"{refused} answers were refused; the last: {trouble[-1]}"
    times = budget.repeated
    if times is not None and (period := _period(turns, int(times))):
        again = "the same reply with the same result" if period == 1 else "the same two replies in turn"
        return Stop.REPEATED, f"{again}, {'twice' if times == 2 else f'{times:g} times'} over"
    if trouble and budget.tool_failures is not None and _tool_results(turns[-1]):
        failures = _in_a_row(failed for turn in reversed(turns) for failed in reversed(_tool_results(turn)))
        if failures and failures >= budget.tool_failures:
            return Stop.TOOL_FAILURES, f"{failures} failed tool calls in a row; the last: {trouble[-1]}"
    return None


def _in_a_row(latest_first: Iterable[object]) -> int:
    """Count what is true before the first that is not."""
    return sum(1 for _ in takewhile(bool, latest_first))


def _malformed(turn: Turn, note: Note) -> list[Malformed]:
    return [a for a in turn.actions if isinstance(a, Malformed) and note in a.notes]


def _unreadable(turn: Turn) -> bool:
    """Return True where nothing could be acted on: every action is malformed or a refused answer."""
    malformed = sum([isinstance(action, Malformed) for action in turn.actions])
    return malformed + _refused(turn) == len(turn.actions)


def _refused(turn: Turn) -> int:
    """Count the answers of a readable reply that were refused (by type, by check, or since no code had run)."""
    return sum([o.failure is not None and o.failure.kind == "rejected" for o in turn.observations])


def _tool_results(turn: Turn) -> list[bool]:
    """Return whether each tool call of the turn failed.

    A cell that raises is ordinary work in a REPL, under any dialect, so it neither counts nor resets.
    """
    return [
        o.failure is not None
        for a, o in zip(turn.actions, turn.observations, strict=True)
        if isinstance(a, CallTool)
        and o.cause != "repl_output"
        and (o.failure is None or o.failure.kind not in _NOT_A_TOOL_FAILURE)
    ]


def _period(turns: Sequence[Turn], times: int) -> int:
    """Return 1 or 2 if the last turns say the same so many `times`, alone or two in turn, results included; else 0.

    The result is part of the comparison: the same `check()` after a change is progress, not repetition.  A turn that
    may be repeated (a poll, a call with a key, a sampled reply) is no repetition.
    """
    for period in (1, 2):
        last = turns[-period * times :]
        if len(last) == period * times and not any(o.repeatable for turn in last for o in turn.observations):
            said = list(map(_signature, last))
            if said[period:] == said[:-period]:
                return period
    return 0


def _signature(turn: Turn) -> tuple[object, ...]:
    """Return all of a turn that makes it the same as another one."""
    calls = tuple((c.name, c.arguments) for c in turn.reply.tool_calls)
    came = [(_PASSING.sub("", o.text), o.failure and o.failure.kind) for o in turn.observations]
    return turn.reply.text, calls, came

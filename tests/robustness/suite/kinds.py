"""Kinds of session and loop that cases are put to: ours here, others' in `adapters`."""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from suite.case import CellCase, Played, ReplyCase, Scripted, Seen, not_applicable

#: Features.  "reserved": names come back after a cell that rebound them; "named-answer": the answer is a variable that
#: a cell may delete; "called-answer": a call ends the cell; "echo": a last expression is shown; "stops": a cell ends at
#: a time limit; "process": cells may do what a Python process may; "limits": for memory and processes.
_NAMES = "variables set reserved answer named-answer called-answer echo await files stops process limits llm_query"
ALL = frozenset(_NAMES.split())
#: Besides: answers arrive as text, and are compared as text.
TEXT_ANSWERS = "text-answers"

TIMEOUT, GRACE = 0.5, 0.5  # seconds that an endless cell is given, and that it has to stop
PATIENCE = 30.0  # seconds that any other cell may take: large, since the machine may be busy


def slack() -> float:
    """Return the factor for every time bound, for a machine that is busy with other things."""
    return float(os.environ.get("RLM_LOOP_ROBUSTNESS_SLACK", "1"))


@dataclass(frozen=True)
class Kind:
    """A kind of session.

    `open(**options of a case)` gives a subject: `run(code, hasty) -> Seen` (`hasty`: at the shortest time limit),
    `set(name, value, reserved)`, `new_run()`, `close()`.  `play` runs a `ReplyCase` (None: there is no loop).  `bound`
    is the longest that a hasty cell may take.  `gaps` are cases known to fail, with the reason.
    """

    name: str
    features: frozenset[str]
    open: Callable[..., Any]
    play: Callable[[ReplyCase], Played] | None
    bound: float | None = None
    gaps: Mapping[str, str] = field(default_factory=dict)

    def why_not(self, case: CellCase | ReplyCase) -> str:
        """Return why the case does not apply (empty: it does)."""
        reason = not_applicable(case, self.features)
        return reason if reason or isinstance(case, CellCase) or self.name in KINDS else self._not_for_others(case)

    def _not_for_others(self, case: ReplyCase) -> str:
        if self.play is None:
            return "it has no loop over code"
        if case.loop != "tool-loop" or case.settings or case.stop not in ("", "answered"):
            return "it is about a setting of ours, or our reasons to stop"
        if any(isinstance(answer, str) and any(answer in text for text in case.texts) for answer in case.answer or ()):
            return "whether a text is an answer is for each project to say"
        return "" if any("final_answer" in text for text in case.texts) else "no reply answers"


class OfSession:
    """A session of ours as a subject; `refusals` are words of its rules."""

    def __init__(self, session: Any, refusals: tuple[str, ...]) -> None:
        self.session, self._refusals = session, refusals
        self.set, self.new_run, self.close = session.set, session.new_run, session.close

    def run(self, code: str, hasty: bool = False) -> Seen:
        began = time.monotonic()
        result = self.session.run(code, timeout=TIMEOUT if hasty else None)
        seconds = time.monotonic() - began
        answer = () if result.answer is None else (result.answer.value,)
        error = {None: "none", "runtime": "raised", "timeout": "stopped", "died": "died"}[result.error]
        refused = error == "raised" and any(words in result.message for words in self._refusals)
        return Seen(result.output, error, result.message, answer, result.lost, seconds, refused)


def play(case: ReplyCase, repl: Any) -> Played:
    """Run one of our loops over the replies of a case."""
    from rlm_loop import Budget
    from rlm_loop.agents import LeanAgent, Rules, ToolLoopAgent
    from rlm_loop.models import ModelError, Reply, ScriptedModel, ToolCall

    def reply(one: Scripted) -> Reply:
        calls = tuple(ToolCall(f"call_{n}", name, arguments) for n, (name, arguments) in enumerate(one.calls))
        return Reply(one.text, calls, one.finish_reason)  # pyright: ignore[reportArgumentType]

    makes = {"budget": Budget, "rules": Rules}
    settings = {key: makes[key](**value) if key in makes else value for key, value in case.settings.items()}
    model = ScriptedModel(reply(one) if isinstance(one, Scripted) else one for one in case.replies)
    agent: Any = LeanAgent(model=model, repl=repl, presentation="native", **settings) if case.loop == "lean" else None
    agent = agent or ToolLoopAgent(model=model, repl=repl, **settings)
    exhausted = False
    try:
        outcome: Any = agent.run("What is the answer?", context=case.context)
    except ModelError as error:
        outcome, exhausted = error.outcome, True  # pyright: ignore[reportAttributeAccessIssue]
    answers = [turn.answer for turn in outcome.turns if turn.answer is not None]
    if not answers and outcome.stop != "answered":
        answers = [turn.pending for turn in reversed(outcome.turns) if turn.pending is not None]
    told = "\n" + "\n".join(o.text for turn in outcome.turns for o in turn.observations)
    stop = "asked again" if exhausted else str(outcome.stop)
    return Played(tuple(answer.value for answer in answers[:1]), stop, outcome.steps, told)


def _ours(name: str, gaps: Mapping[str, str] | None = None, without: str = "", refusals: tuple[str, ...] = ()) -> Kind:
    def session(**options: Any) -> Any:
        from rlm_loop.repl import Container, Limits, PythonREPL, open_repl

        if limits := {key: options.pop(key) for key in ("memory", "processes") if key in options}:
            options["limits"] = Limits(**limits)
        if name == "container":
            return PythonREPL(launcher=Container(IMAGE), timeout=PATIENCE * slack(), grace=GRACE, **options)
        return open_repl(name, timeout=PATIENCE * slack(), grace=GRACE, **options)

    return Kind(
        name,
        ALL - set(without.split()),
        lambda **options: OfSession(session(**options), refusals),
        lambda case: play(case, session),
        TIMEOUT + GRACE + 0.5,
        gaps or {},
    )


#: The image for the kind `container`; `tests/repl/python_image.sh` makes one of this system's own Python.
IMAGE = "localhost/rlm-loop-robustness-python"


def _gaps(reason: str, cases: str) -> dict[str, str]:
    return dict.fromkeys(cases.split(), reason)


LATE = _gaps(
    "threads and processes that a cell leaves print, call and answer for the cell that runs then",
    "thread-that-prints plain-thread-that-prints raw-thread-that-prints timer-that-prints thread-that-raises"
    " thread-that-answers output-after-the-stop child-that-prints fork-that-prints",
) | _gaps(
    "a message out of bounds may be read only with the next cell, which then says that the process died", "forged-junk"
)
NO_ISOLATION = LATE | _gaps(
    "runs with the user's rights: it protects from crashes and endless loops, not from reading or reaching out",
    "environment-of-ancestors memory-of-the-host home-folder link-out-of-the-folder dots-out-of-the-folder"
    " file-of-another-folder child-reads-home write-to-home write-outside write-through-a-link hard-link"
    " new-file-outside remove-outside tcp udp unix-socket tcp-of-a-child signal-a-process limits-of-another-process"
    " priority-of-another-process processors-of-another-process attributes-of-a-file owner-of-a-file"
    " virtual-machines-host sees-processes system-is-writable runs-as-root kernel-settings"
    " process-limit-of-the-session",
)
RESTRICTED_GAPS = _gaps(
    "RestrictedPython's rules, or the list of modules that may be imported, do not allow the code",
    "flood-on-stderr both-streams-in-order threads-print-at-once answer-module answer-decimal-snan"
    " pickle-own-class walrus-and-match star-import threads-in-a-cell shell-block",
)
RULES = ("in a restricted session", "cannot be imported here")

KINDS: dict[str, Kind] = {
    "plain": _ours("plain", NO_ISOLATION),
    "hardened": _ours("hardened", LATE),
    "sandbox": _ours("sandbox", LATE),
    "auto": _ours("auto", LATE),
    "container": _ours("container", LATE),
    "kernel": _ours("kernel", NO_ISOLATION),
    "restricted": _ours("restricted", RESTRICTED_GAPS, "await process", RULES),
}


def named(name: str) -> Kind:
    """Return the kind of ours, or of the project whose adapter has that name."""
    return KINDS[name] if name in KINDS else importlib.import_module(f"adapters.{name}").KIND

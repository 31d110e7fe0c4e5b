"""Put one case to one subject, in this process."""

from __future__ import annotations

import time
from collections.abc import Callable

from experiments.robustness.suite.case import ORDINARY, CaseResult, CellCase, Played, ReplyCase, Seen
from experiments.robustness.suite.judge import left_fault, played_fault, step_fault
from experiments.robustness.suite.subject import TEXT_ANSWERS, Subject, slack
from experiments.robustness.suite.world import Surroundings

_NOWHERE = Surroundings("", {})


def not_applicable(case: CellCase | ReplyCase, features: frozenset[str]) -> str:
    """Why a case means nothing for a subject with these features; empty if it does."""
    needs = case.needs | ({"variables"} if isinstance(case, CellCase) and len(case.steps) > 1 else frozenset())
    missing = sorted(needs - features)
    return f"needs: {', '.join(missing)}" if missing else ""


def run_cells(
    case: CellCase,
    subject: Subject,
    place: Surroundings = _NOWHERE,
    *,
    kind: str = "",
    note: Callable[[str], None] = lambda _: None,
) -> CaseResult:
    """Run the cells of a case on an open subject, and judge what was seen.

    What a world outside shows is not looked at here (see `apart`).  `note` is told what is about to be done, for a
    process that may not live to tell.  Exceptions of the subject itself are faults, not ours.
    """
    if reason := not_applicable(case, subject.features):
        return CaseResult(case.name, kind, "n/a", reason)
    began = time.monotonic()
    seen: list[Seen] = []
    bound = subject.bound if "stops" in case.needs else None
    as_text = TEXT_ANSWERS in subject.features
    fault = ""
    try:
        _prepare(case, subject, place)
        began = time.monotonic()
        for number, step in enumerate(case.steps, 1):
            note(f"cell {number}")
            hasty = bound is not None and "stopped" in step.error
            result = subject.run(step.code, hasty)
            seen.append(result)
            fault = fault or step_fault(step, result, place.secret, as_text, case.theme not in ORDINARY)
            if bound is not None and hasty and result.seconds > bound * slack() and not fault:
                fault = f"cell {number} returned after {result.seconds:.2f} s, more than {bound:g} s"
        note("a look at what is left")
        alive = subject.run("print(6 * 7)")
        while alive.error == "died" and case.keeps != "variables" and len(seen) < len(case.steps) + 2:
            seen.append(alive)  # the damage showed only now, and may once more where earlier cells were run again
            alive = subject.run("print(6 * 7)")
        kept = subject.run("print(kept_before + 1)") if "variables" in subject.features else Seen("41")
        fault = fault or left_fault(case, seen, alive, kept)
    except Exception as error:
        fault = fault or f"the session failed: {type(error).__name__}: {error}"
    except BaseException as error:  # a cell's own, let through by the subject
        fault = fault or f"{type(error).__name__} came out of the session and would end its host"
    seconds = time.monotonic() - began
    if not fault and seconds > case.seconds * slack():
        fault = f"took {seconds:.1f} s, more than {case.seconds:g} s"
    slowest = max((s.seconds for s in seen[: len(case.steps)]), default=0.0)
    return CaseResult(case.name, kind, "red" if fault else "green", fault, seconds, slowest, bound)


def _prepare(case: CellCase, subject: Subject, place: Surroundings) -> None:
    subject.new_run()
    for name, make in case.given.items():
        subject.set(name, make())
    if "reserved" in case.needs:
        subject.set("context", {"a": 1}, True)
    if place.outside:
        subject.run(f"outside = {dict(place.outside)!r}")
    subject.run("kept_before = 40")


def run_replies(
    case: ReplyCase, play: Callable[[ReplyCase], Played], *, kind: str = "", as_text: bool = False
) -> CaseResult:
    """Have a loop play the replies of a case, and judge what came of it."""
    began = time.monotonic()
    try:
        played = play(case)
        fault = played_fault(case, played, as_text)
    except Exception as error:
        fault = f"the run was left by {type(error).__name__}: {error}"
    except BaseException as error:
        fault = f"{type(error).__name__} came out of the run and would end its host"
    seconds = time.monotonic() - began
    if not fault and seconds > case.seconds * slack():
        fault = f"took {seconds:.1f} s, more than {case.seconds:g} s"
    return CaseResult(case.name, kind, "red" if fault else "green", fault, seconds)

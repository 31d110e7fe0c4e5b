"""Every case once: against the default launcher where a launcher can matter, else against the plain session.

`make test` runs the cases that take no time by nature; the others are slow.  `RLM_LOOP_ROBUSTNESS_KINDS=sandbox,kernel`
runs all cases on other kinds.  A known gap is an expected failure.  On a busy machine, `RLM_LOOP_ROBUSTNESS_SLACK=5`
makes every time bound five times as long.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest
from suite.case import CellCase, ReplyCase, Verdict
from suite.cases import CASES
from suite.hosts import run_apart, run_cells, run_replies
from suite.kinds import KINDS, Kind
from suite.world import World

from rlm_loop.repl import PythonREPL

LINUX = sys.platform.startswith("linux")
pytestmark = pytest.mark.skipif(not LINUX, reason="what is left of processes is seen in /proc")


def default_kind() -> Kind:
    """`auto` with the known gaps of the launcher that it picks here; `plain` where it picks that."""
    with warnings.catch_warnings(), PythonREPL(launcher="auto") as repl:
        warnings.simplefilter("ignore")  # it says so where it is plain
        repl.get("0")
        picked = repl.isolation
    return replace(KINDS["auto"], gaps=KINDS[picked].gaps) if picked != "plain" else KINDS["plain"]


def matters_to_a_launcher(case: CellCase | ReplyCase) -> bool:
    """Ordinary work and replies are read by the same code whatever starts it; so are most endless cells stopped."""
    if case.theme == "endless loops":
        return "process" in case.needs
    return case.theme.startswith(("resources", "streams", "protocol", "ends of", "left behind", "isolation"))


def chosen() -> list[tuple[Kind, CellCase | ReplyCase]]:
    if names := os.environ.get("RLM_LOOP_ROBUSTNESS_KINDS"):
        return [(KINDS[name], case) for name in names.split(",") for case in CASES]
    default = default_kind() if LINUX else KINDS["plain"]
    return [(default if matters_to_a_launcher(case) else KINDS["plain"], case) for case in CASES]


def has_a_host(kind: Kind, case: CellCase | ReplyCase) -> bool:
    """Whether a case cannot be run in this process, or needs a session that nobody else uses."""
    if isinstance(case, ReplyCase):
        return False
    around = case.host_killed or case.after or case.fresh or case.theme.startswith("isolation") or case.seconds < 10
    return bool(around or "process" not in kind.features)


def takes_long(kind: Kind, case: CellCase | ReplyCase) -> bool:
    return has_a_host(kind, case) or "stops" in case.needs or case.seconds > 10 or case.theme == "ends of the process"


@pytest.fixture(scope="module")
def sessions() -> Iterator[dict[str, Any]]:
    """One session a kind, for the cases that leave it usable; replaced after one that did not."""
    opened: dict[str, Any] = {}
    yield opened
    for subject in opened.values():
        subject.close()


def judge(kind: Kind, case: CellCase | ReplyCase, sessions: dict[str, Any]) -> Verdict:
    if has_a_host(kind, case):
        return run_apart(kind, case)
    if isinstance(case, ReplyCase):
        return run_replies(case, kind)
    if kind.name not in sessions:  # after a crash, do not run again all that other cases did
        sessions[kind.name] = kind.open(rebuild=False)
    subject = sessions[kind.name]
    subject.run("1")  # its start is not the case's time
    with World() if any("outside" in step.code for step in case.steps) else nullcontext() as world:
        verdict = run_cells(case, kind, subject, *([world.secret, world.outside] if world else []))
    if verdict.colour == "red":
        sessions.pop(kind.name).close()
    return verdict


@pytest.mark.parametrize(
    ("kind", "case"),
    [
        pytest.param(kind, case, id=f"{kind.name}-{case.name}", marks=[pytest.mark.slow] * takes_long(kind, case))
        for kind, case in chosen()
    ],
)
def test_case(kind: Kind, case: CellCase | ReplyCase, sessions: dict[str, Any]) -> None:
    if reason := kind.why_not(case):
        pytest.skip(f"not applicable: {reason}")
    verdict = judge(kind, case, sessions)
    if verdict.colour == "red" and case.name in kind.gaps:
        pytest.xfail(f"known gap: {kind.gaps[case.name]}: {verdict.reason}")
    assert verdict.colour == "green", verdict.reason


def test_names_are_unique_and_gaps_are_cases() -> None:
    names = {case.name for case in CASES}
    assert len(names) == len(CASES) >= 490
    for kind in KINDS.values():
        assert set(kind.gaps) <= names

"""Every case against the plain session, and against the default launcher those that a launcher can matter for.

`RLM_LOOP_ROBUSTNESS_KINDS=sandbox,kernel` runs all cases on other kinds.  A known gap is run as well: it is an expected
failure with its reason.  On a busy machine, `RLM_LOOP_ROBUSTNESS_SLACK=5` makes every time bound five times as long.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hosts import Beside, has_a_host

from experiments.robustness.suite import (
    CASES,
    CaseResult,
    CellCase,
    Kind,
    ReplyCase,
    Subject,
    Surroundings,
    World,
    run_cells,
    run_replies,
)
from experiments.robustness.suite.kinds import kind
from experiments.robustness.suite.play import play
from experiments.robustness.suite.runner import not_applicable
from rlm_loop.repl import PythonREPL

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="what is left of processes is seen in /proc"),
]


def default_kind() -> Kind:
    """The kind `auto`, with the known gaps of what it comes to on this machine; `plain` where it is no more."""
    with warnings.catch_warnings(), PythonREPL(launcher="auto") as repl:
        warnings.simplefilter("ignore")  # it says so where it is plain
        repl.start()
        found = repl.isolation
    return replace(kind("auto"), gaps=kind(found).gaps) if found != "plain" else kind("plain")


def matters_to_a_launcher(case: CellCase | ReplyCase) -> bool:
    """Ordinary work and replies are read by the same code whatever starts it; so are most endless cells stopped.

    A second look at what only takes time (output, C functions, contexts) would double the time of the suite.
    """
    if case.theme == "endless loops":
        return "process" in case.needs
    themes = ("resources", "streams", "protocol", "ends of", "left behind", "isolation")
    return case.theme.startswith(themes)


def chosen() -> list[tuple[Kind, CellCase | ReplyCase]]:
    if names := os.environ.get("RLM_LOOP_ROBUSTNESS_KINDS"):
        return [(kind(name), case) for name in names.split(",") for case in CASES]
    if not sys.platform.startswith("linux"):
        return []
    default = default_kind()
    plain = [(kind("plain"), case) for case in CASES]
    return plain + [(default, case) for case in CASES if matters_to_a_launcher(case) and default.name != "plain"]


CHOSEN = chosen()


@pytest.fixture(scope="module")
def sessions() -> Iterator[dict[str, Subject]]:
    """One session a kind, for the cases that leave it usable; replaced after one that did not."""
    opened: dict[str, Subject] = {}
    yield opened
    for subject in opened.values():
        subject.close()


def judge(opened: Kind, case: CellCase | ReplyCase, sessions: dict[str, Subject], beside: Beside) -> CaseResult:
    if reason := not_applicable(case, opened.features):
        return CaseResult(case.name, opened.name, "n/a", reason)
    if has_a_host(opened, case):
        return beside.verdict(opened, case)
    if isinstance(case, ReplyCase):
        return run_replies(case, lambda c: play(c, opened.session), kind=opened.name)
    if opened.name not in sessions:
        sessions[opened.name] = opened.open(shared=True)
    verdict = in_a_world(case, sessions[opened.name], opened.name)
    if verdict.colour == "red":
        sessions.pop(opened.name).close()
    return verdict


def in_a_world(case: CellCase, subject: Subject, name: str) -> CaseResult:
    subject.run("1")  # what starting takes is not the case's
    if not any("outside" in step.code for step in case.steps):
        return run_cells(case, subject, kind=name)
    with World() as world:
        return run_cells(case, subject, Surroundings.of(world), kind=name)


@pytest.mark.parametrize(("opened", "case"), CHOSEN, ids=[f"{k.name}-{c.name}" for k, c in CHOSEN])
def test_case(opened: Kind, case: CellCase | ReplyCase, sessions: dict[str, Subject], beside: Beside) -> None:
    verdict = judge(opened, case, sessions, beside)
    if verdict.colour == "n/a":
        pytest.skip(f"not applicable: {verdict.reason}")
    if verdict.colour == "red" and case.name in opened.gaps:
        pytest.xfail(f"known gap: {opened.gaps[case.name]}: {verdict.reason}")
    assert verdict.colour == "green", f"{case.does}; must: {case.must}; but: {verdict.reason}"


def test_there_are_enough_cases_and_each_is_described() -> None:
    assert len(CASES) >= 120
    assert len({case.name for case in CASES}) == len(CASES)
    for case in CASES:
        assert case.does, case.name
        assert case.must, case.name
        assert case.theme, case.name
        assert case.name == case.name.lower().replace("_", "-").replace(" ", "-")
    for known, _ in CHOSEN:
        assert set(known.gaps) <= {case.name for case in CASES}

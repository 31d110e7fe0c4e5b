"""Every case against every kind of session of ours; `RLM_LOOP_TORTURE_KINDS=plain,sandbox` says which (default: plain).

A known gap is run as well, and is an expected failure with its reason.  On a machine that is busy with other things,
`RLM_LOOP_TORTURE_SLACK=5` makes every time bound five times as long.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest

from rlm_loop.torture import (
    CASES,
    CellCase,
    Place,
    ReplyCase,
    Subject,
    Verdict,
    World,
    run_apart,
    run_cells,
    run_replies,
)
from rlm_loop.torture.__main__ import host_command
from rlm_loop.torture.kinds import Kind, kind
from rlm_loop.torture.play import play
from rlm_loop.torture.runner import not_applicable

KINDS = [kind(name) for name in os.environ.get("RLM_LOOP_TORTURE_KINDS", "plain").split(",")]

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="what is left of processes is seen in /proc"
)


@pytest.fixture(scope="module")
def sessions() -> Iterator[dict[str, Subject]]:
    """One session a kind, for the cases that leave it usable; replaced after one that did not."""
    opened: dict[str, Subject] = {}
    yield opened
    for subject in opened.values():
        subject.close()


def judge(opened: Kind, case: CellCase | ReplyCase, sessions: dict[str, Subject]) -> Verdict:
    if reason := not_applicable(case, opened.features):
        return Verdict(case.name, opened.name, "n/a", reason)
    if isinstance(case, ReplyCase):
        return run_replies(case, lambda c: play(c, opened.session), kind=opened.name)
    if case.host_killed or case.after or case.theme.startswith("isolation") or case.seconds < 10:
        return run_apart(host_command(opened.name), case, kind=opened.name)
    if case.fresh or (case.apart and "process" not in opened.features):
        subject = opened.open(**case.options)
        try:
            return in_a_world(case, subject, opened.name)
        finally:
            subject.close()
    if opened.name not in sessions:
        sessions[opened.name] = opened.open(shared=True)
    verdict = in_a_world(case, sessions[opened.name], opened.name)
    if verdict.colour == "red":
        sessions.pop(opened.name).close()
    return verdict


def in_a_world(case: CellCase, subject: Subject, name: str) -> Verdict:
    subject.run("1")  # what starting takes is not the case's
    if not any("outside" in step.code for step in case.steps):
        return run_cells(case, subject, kind=name)
    with World() as world:
        return run_cells(case, subject, Place.of(world), kind=name)


@pytest.mark.parametrize("opened", KINDS, ids=lambda k: k.name)
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_case(case: CellCase | ReplyCase, opened: Kind, sessions: dict[str, Subject]) -> None:
    verdict = judge(opened, case, sessions)
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
    for known in KINDS:
        assert set(known.gaps) <= {case.name for case in CASES}

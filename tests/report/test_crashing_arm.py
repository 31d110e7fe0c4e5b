"""An arm that crashes, on some tasks or on all: one denominator on every page, and nothing is emptied by it."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from made_study import Says, judge
from parsed_page import Parsed

from rlm_loop import DirectAgent, Suite, Task
from rlm_loop.cli.main import main
from rlm_loop.models import ModelError
from rlm_loop.report import arm_table, figures, study_page, suite_table
from rlm_loop.study import Results, Study, StudyError, compare, load_study

TASKS = 20


def run(folder: Path, crashes: int) -> Results:
    """Two arms that are right, and one whose model fails for good on the last `crashes` of 20 tasks."""
    gone = {f"it {n}?": ModelError("the provider is gone") for n in range(TASKS - crashes, TASKS)}
    of = {"base": {}, "other": {}, "broken": gone}
    arms = {
        name: DirectAgent(Says("local:scripted", dict(replies), n + 1)) for n, (name, replies) in enumerate(of.items())
    }
    suite = Suite("sums", tuple(Task(f"t{n}", f"Is it {n}?", judge) for n in range(TASKS)))
    study = Study("crashing", arms, suite)
    with suppress(StudyError):  # an arm that crashes alike in its first tasks stops the study once
        study.run(folder, False)
    study.run(folder, False)
    return load_study(folder)


@pytest.fixture(scope="module", params=[TASKS // 2, pytest.param(TASKS, marks=pytest.mark.slow)])
def crashing(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[int, Results]:
    return request.param, run(tmp_path_factory.mktemp("study"), request.param)


def test_the_denominator_is_the_same_everywhere(crashing: tuple[int, Results]) -> None:
    crashes, results = crashing
    right = TASKS - crashes
    assert (len(results.crashed), results.left_out) == (crashes, 0)
    assert [(s.n, s.resolved, s.judged, s.measured) for s in results.summary()] == [
        (TASKS, TASKS, TASKS, TASKS), (TASKS, TASKS, TASKS, TASKS), (TASKS, right, TASKS, right)
    ]  # fmt: skip
    for table in (arm_table(results), suite_table(results)):
        cells = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
        assert [(row["n"], row["resolved"]) for row in cells] == [("20", "20"), ("20", "20"), ("20", str(right))]
        assert re.search(rf"ran to their end \(broken( in sums)? {right} of 20\)", " ".join(table.notes))
    rate = next(c for c in compare(results).contrasts if (c.arm, c.measure) == ("broken", "resolved"))
    assert (rate.pairs, rate.missing, rate.used, rate.value) == (TASKS, 0, TASKS, right / TASKS)
    text = Parsed(study_page(results)).text.replace("\n", "")
    assert crashes == 0 or f"broken in {crashes} of {TASKS} episodes (" in text
    assert f"broken20{right}" in text


@pytest.mark.slow
def test_the_others_are_on_every_page(crashing: tuple[int, Results], capsys: pytest.CaptureFixture[str]) -> None:
    crashes, results = crashing
    text = Parsed(study_page(results)).text
    assert "nothing to compare" not in text
    assert "other against base" in text
    assert "broken against base" in text
    assert main(["study", "report", results.folder]) == 0
    said = capsys.readouterr().out
    assert re.search(r"other +20 +20 ", said)
    assert re.search(rf"broken +20 +{TASKS - crashes} ", said)
    for draw in (figures.resolve_rates, figures.resolve_against_tokens, figures.paired_differences):
        assert draw(results).axes


def test_a_fault_of_the_machine_is_in_no_rate_and_is_a_missing_pair(crashing: tuple[int, Results]) -> None:
    crashes, results = crashing
    rows = [
        {**r, "error": "MemoryError: full", "error_class": "MemoryError"} if r["error"] else r for r in results.rows
    ]
    faulty = replace(results, rows=rows)
    assert [s.judged for s in faulty.summary()] == [TASKS, TASKS, TASKS - crashes]
    assert crashes == 0 or f"episodes ({crashes} MemoryError)" in Parsed(study_page(faulty)).text

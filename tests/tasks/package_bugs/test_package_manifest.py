"""The recorded bugs: enough of them, spread, none that breaks everything, and a sample of them run."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from experiments.bug_search.manifest import write_manifest
from experiments.bug_search.verify import verify
from rlm_loop.tasks.package_bugs.bugs import read_manifest, recorded, recorded_path
from rlm_loop.tasks.package_bugs.sdists import PACKAGES, cached
from rlm_loop.tasks.package_bugs.statements import description, statement
from rlm_loop.tasks.package_bugs.suite import package_bugs

SAMPLE = ("inflection", "xmltodict")  # fetched by `make test`


def test_there_are_enough_and_they_are_spread() -> None:
    bugs = recorded().bugs
    packages = Counter(bug.package.name for bug in bugs)
    kinds = Counter(bug.mutation.kind for bug in bugs)
    assert len(bugs) >= 150
    assert len(packages) >= 12
    assert max(packages.values()) <= 15
    assert len(kinds) >= 15
    assert max(kinds.values()) <= len(bugs) / 5
    assert len({bug.id for bug in bugs}) == len(bugs)
    assert len({(bug.package.name, bug.file, bug.function) for bug in bugs}) == len(bugs)
    assert set(packages) == {package.name for package in PACKAGES}


def test_each_breaks_some_tests_and_few() -> None:
    for bug in recorded().bugs:
        assert 1 <= len(bug.fail_to_pass) <= 0.3 * len(bug.tests), bug.id
        assert len(set(bug.fail_to_pass)) == len(bug.fail_to_pass)
        assert bug.output
        assert not bug.file.startswith(tuple(bug.package.tests))


def test_both_halves_have_every_package() -> None:
    suite = package_bugs()
    halves = [{task.facts["package"] for task in suite.split(which)} for which in ("dev", "test")]
    assert halves[0] == halves[1]


def test_no_statement_says_where_and_no_description_shows_the_change() -> None:
    for bug in recorded().bugs:
        told = description(bug)
        assert len(told) < 800, bug.id
        assert "misbehaves" not in told, f"no words for {bug.mutation.kind}"
        assert bug.file not in told
        for form in ("output", "description", "bare"):
            assert "/tmp" not in statement(bug, form), bug.id


def test_the_file_is_small_and_written_as_it_is_read(tmp_path: Path) -> None:
    text = Path(recorded_path()).read_text("utf-8")
    assert len(text.encode()) < 400_000
    write_manifest(tmp_path / "again.json", read_manifest(text))
    assert (tmp_path / "again.json").read_text("utf-8") == text


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLE)
def test_a_sample_is_as_recorded_and_resolved_by_taking_the_bug_back(name: str) -> None:
    bugs = [bug for bug in recorded().bugs if bug.package.name == name]
    if cached(bugs[0].package) is None:
        pytest.skip(f"{name} is not here: python experiments/bug_search fetch --packages {','.join(SAMPLE)}")
    assert [(bug.id, problem) for bug, problem in verify(bugs[:2]) if problem] == []

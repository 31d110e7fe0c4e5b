"""The search for bugs in a package, from its own tests to a manifest."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from made_package import CODE, Made

from experiments.bug_search.baseline import Baseline
from experiments.bug_search.build import build, confirmed, table
from experiments.bug_search.manifest import packed, write_manifest
from experiments.bug_search.progress import load
from experiments.bug_search.search import Found, judged, tidy
from experiments.bug_search.verify import sample, verify
from rlm_loop.tasks.mutation import Mutation, apply
from rlm_loop.tasks.package_bugs.bugs import read_manifest, unpacked
from rlm_loop.tasks.package_bugs.sdists import source_files
from rlm_loop.workspace.testing import TestRun

pytestmark = pytest.mark.slow

FILE = "src/lengths/__init__.py"


def test_the_baseline_knows_what_passes_and_which_tests_reach_which_function(made: Made) -> None:
    """Left out: a test that passes once or measures time, a function that runs at import or that no test calls."""
    known = load(made.state, made.package).baseline
    assert known is not None
    assert len(known.tests) == 16
    assert not any("shaky" in name or "speed" in name for name in known.tests)
    assert list(known.reached) == [(FILE, "clamp")]
    assert [name.partition("[")[0] for name in known.reached[FILE, "clamp"]] == [
        "tests/test_lengths.py::test_clamp"
    ] * 4


def test_a_bug_is_one_mutation_with_what_the_tests_say(made: Made) -> None:
    (bug,) = made.manifest.bugs
    assert (bug.id, bug.function, bug.lines) == ("lengths-01", "clamp", CODE.count("\n") + 1)
    assert bug.purpose == "Keep a value within bounds."
    assert 1 <= len(bug.fail_to_pass) <= 4
    assert len(bug.pass_to_pass) == 16 - len(bug.fail_to_pass)
    assert set(bug.fail_to_pass) | set(bug.pass_to_pass) == set(bug.tests)
    assert "assert" in bug.output
    assert "rlm-tests" not in bug.output
    files = bug.files()
    assert files[FILE].decode() == apply(CODE, bug.mutation) != CODE
    assert not any(CODE.encode() in content for content in files.values())
    assert "lengths: 16 tests" in made.told[0]


def test_a_search_goes_on_where_it_ended(made: Made) -> None:
    """With one function there is no second bug to find, so a second build runs no test and tells nothing new."""
    told: list[str] = []
    assert build([made.package], 2, made.state, tell=told.append).bugs == made.manifest.bugs
    assert told == []
    assert load(made.state, replace(made.package, sha256="other")).baseline is None


def test_a_manifest_is_read_as_it_was_written(made: Made, tmp_path: Path) -> None:
    file = tmp_path / "manifest.json"
    write_manifest(file, made.manifest)
    assert read_manifest(file.read_text(), [made.package]) == made.manifest
    assert "| lengths 1.0 | MIT | 1 | 16 | 1 |" in table(made.manifest)
    with pytest.raises(ValueError, match="of another lengths"):
        read_manifest(file.read_text(), [replace(made.package, sha256="0")])


@pytest.mark.parametrize("names", [(), ("a",), ("t.py::test_é[x-\t]", "t.py::test_b")])
def test_lists_of_tests_are_packed(names: tuple[str, ...]) -> None:
    assert unpacked(packed(names)) == names
    with pytest.raises(ValueError, match="line break"):
        packed(["a\nb"])


def test_verify_compares_with_the_manifest(made: Made) -> None:
    (bug,) = made.manifest.bugs
    harmless = replace(bug, mutation=Mutation(1, 3, "Lengths.", "Length.", "string"))
    problems = [problem for _, problem in verify([bug, harmless])]
    assert problems[0] == ""
    assert "should fail and do not" in problems[1]
    assert sample([bug] * 10, 3) == [bug] * 3
    assert [sample(list("abcdef"), n) for n in (2, None, 9)] == [["a", "d"], list("abcdef"), list("abcdef")]  # pyright: ignore


def test_confirmation_adds_the_other_tests_that_fail_and_wants_two_runs_to_agree(made: Made) -> None:
    progress = load(made.state, made.package)
    known, (found,) = progress.baseline, progress.found
    assert known is not None
    files = source_files(made.package)
    first = replace(found, fail_to_pass=found.fail_to_pass[:1])
    sure = confirmed(made.package, files, known, first)
    assert sure is not None
    assert set(sure.fail_to_pass) == set(found.fail_to_pass)
    wrong = replace(found, fail_to_pass=(next(name for name in known.tests if "others" in name),))
    assert confirmed(made.package, files, known, wrong) is None
    by_chance = Mutation(10, 11, "value", "value + hash('a') % 2", "chance")  # line 10 returns the value
    assert confirmed(made.package, files, known, replace(found, mutation=by_chance, fail_to_pass=())) is None


ALL = tuple(f"t.py::test_{n}" for n in range(10))


@pytest.mark.parametrize(
    ("bad", "options", "why"),
    [
        (1, {}, ""),
        (3, {}, ""),
        (4, {}, "breaks too much"),
        (0, {}, "survives"),
        (1, {"timed_out": True, "cut_short": "stopped after 9 s"}, "does not end"),
        (1, {"cut_short": "the interpreter ended early (signal 9)"}, "does not end"),
        (1, {"cut_short": "pytest ended early: x"}, "breaks the run"),
    ],
)
def test_which_mutants_are_kept(bad: int, options: dict[str, object], why: str) -> None:
    known = Baseline(ALL, {}, 1.0)
    run = TestRun({n: "failed" if i < bad else "passed" for i, n in enumerate(ALL)}, **options)  # pyright: ignore
    assert judged(run, known, ALL) == (why, () if why else ALL[:bad])


def test_mutants_that_change_which_tests_there_are_are_passed_over() -> None:
    known = Baseline(ALL, {}, 1.0)
    assert judged(TestRun({"t.py": "error"}), known, ALL)[0] == "breaks the import"
    assert judged(TestRun(dict.fromkeys(ALL[1:], "passed")), known, ALL)[0] == "changes which tests there are"
    assert judged(TestRun({**dict.fromkeys(ALL, "passed"), ALL[0]: "skipped"}), known, ALL)[0].startswith("changes")


def test_output_is_the_same_in_every_run() -> None:
    text = "/tmp/a/rlm-tests-x1/work/src/m.py:3: in f\nE  <A at 0x7f0011223344> /opt/v/lib/python3.11/json/a.py"
    assert tidy(text) == "src/m.py:3: in f\nE  <A at 0x...> lib/python3.11/json/a.py"
    assert tidy("no file '/tmp/rlm-tests-x1/tmp/p/t.sql', /var/b/c.c:46: </root>") == "no file 't.sql', c.c:46: </root>"
    assert len(tidy("x" * 9000)) < 1300


def test_found_is_kept_whole(made: Made) -> None:
    (found,) = load(made.state, made.package).confirmed
    assert isinstance(found, Found)
    assert isinstance(found.mutation, Mutation)

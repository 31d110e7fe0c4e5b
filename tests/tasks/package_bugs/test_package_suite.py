"""The suite: what a model sees, and how its patch is judged."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from made_package import CODE, Made

from experiments.bug_search.verify import fix
from rlm_loop.tasks import Attempt, get_suite
from rlm_loop.tasks.package_bugs.statements import STATEMENTS, statement
from rlm_loop.tasks.package_bugs.suite import checkout, package_bugs

FILE = "src/lengths/__init__.py"


@pytest.mark.slow
def test_the_checkout_has_the_bug_and_no_trace_of_what_was_there_before(made: Made) -> None:
    (bug,) = made.manifest.bugs
    with checkout(bug, run_tests=True) as space:
        assert space.diff() == ""
        assert (space.root / FILE).read_bytes() == bug.files()[FILE]
        log = space.run(["git", "log", "--all", "--format=%s"]).output
        assert log.split() == ["start"]
        listed = space.run("git cat-file --batch-all-objects --batch-check --unordered").output
        blobs = [line.split()[0] for line in listed.splitlines() if " blob " in line]
        assert blobs
        assert all(CODE not in space.run(["git", "cat-file", "blob", blob]).output for blob in blobs)
        tools = {getattr(tool, "name", getattr(tool, "__name__", "")): tool for tool in space.tools()}
        assert "1 failed" in tools["run_tests"](bug.fail_to_pass[0])
    with checkout(bug) as space:
        assert "run_tests" not in {getattr(tool, "name", "") for tool in space.tools()}


@pytest.mark.slow
def test_taking_the_bug_back_resolves_it_and_changing_tests_does_not(made: Made) -> None:
    (task,) = package_bugs(manifest=made.manifest).tasks
    (bug,) = made.manifest.bugs
    mended = task.score(Attempt(artifact=fix(bug)[0]))
    assert mended.resolved, mended.reason
    with checkout(bug) as space:
        (space.root / "tests/test_lengths.py").write_text("def test_clamp(): pass\n")
        cheat = space.diff()
    for artifact in (None, "", "  \n", cheat, "no patch at all"):
        judged = task.score(Attempt(artifact=artifact))
        assert not judged.resolved
        assert judged.reason
        assert "\n" not in judged.reason


def test_a_machine_that_cannot_judge_is_not_held_against_a_patch(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    (task,) = package_bugs(manifest=made.manifest).tasks
    patch = fix(made.manifest.bugs[0])[0]
    monkeypatch.setattr(tempfile, "tempdir", "/there/is/no/such/folder")
    with pytest.raises(OSError):
        task.score(Attempt(artifact=patch))


def test_a_statement_in_three_forms(made: Made) -> None:
    (bug,) = made.manifest.bugs
    output, description, bare = (statement(bug, form) for form in ("output", "description", "bare"))
    assert bug.fail_to_pass[0] in output
    assert bug.output in output
    assert "`clamp` in `lengths`" in description
    assert '"Keep a value within bounds."' in description
    assert "Seen: assert" in description
    assert "clamp" not in bare
    assert "A test of this repository fails." in bare
    for form in STATEMENTS:
        suite = package_bugs(form, manifest=made.manifest)  # pyright: ignore[reportArgumentType]
        assert [task.question for task in suite] == [statement(bug, form)]  # pyright: ignore[reportArgumentType]


def test_facts_of_a_task(made: Made) -> None:
    (task,) = package_bugs(manifest=made.manifest).tasks
    assert task.facts["package"] == "lengths"
    assert task.facts["file"] == FILE
    assert task.facts["kind"] in task.tags
    assert task.facts["lines"] == CODE.count("\n") + 1
    assert task.facts["tests"] == 16


def test_names_and_options() -> None:
    whole = get_suite("package_bugs")
    assert get_suite("package-bugs").name == whole.name == "package_bugs"
    bare = get_suite("package_bugs@bare/test")
    assert bare.name == "package_bugs@bare/test"
    assert len(bare) == len(whole) // 2
    assert {t.question for t in get_suite("package_bugs@bare")} == {bare.tasks[0].question}
    few = get_suite("package_bugs", statement="description", packages=["xmltodict"], run_tests=False)
    assert {t.facts["package"] for t in few} == {"xmltodict"}
    for name in ("package_bugs@other", "package_bugs@bare@x"):
        with pytest.raises(ValueError, match="there is no suite"):
            get_suite(name)
    for options in ({"statement": "other"}, {"packages": ["nothing"]}):
        with pytest.raises(ValueError, match=r"there is no statement|no bugs of nothing are recorded"):
            get_suite("package_bugs", **options)


def test_a_package_that_cannot_be_fetched_is_told_when_its_checkout_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RLM_LOOP_CACHE", str(tmp_path))
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    task = get_suite("package_bugs").tasks[0]
    from rlm_loop.tasks.package_bugs.sdists import PackageMissing

    assert task.workspace is not None
    with pytest.raises(PackageMissing, match="is not on this machine") as caught:
        task.workspace()
    assert "\n" not in str(caught.value)

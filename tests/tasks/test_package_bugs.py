"""The suite `package_bugs`: packages fetched once and checked, what a model sees, and how its patch is judged."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections import Counter
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from rlm_loop.tasks import Attempt
from rlm_loop.tasks.mutation import Mutation
from rlm_loop.tasks.package_bugs import Bug, package_bugs, recorded
from rlm_loop.tasks.sdists import Package, PackageMissing, is_here, pull, source_files

FILE = "src/lengths/__init__.py"
CODE = """def clamp(value, low, high):
    \"\"\"Keep a value within bounds.\"\"\"
    if value < low:
        return low
    return min(value, high)
"""
TESTS = """import pytest
from lengths import clamp

@pytest.mark.parametrize(("value", "wanted"), [(1, 2), (2, 2), (3, 3), (9, 4)])
def test_clamp(value, wanted):
    assert clamp(value, 2, 4) == wanted
"""
FILES = {
    FILE: CODE,
    "tests/test_lengths.py": TESTS,
    "setup.py": 'raise SystemExit("code of the package ran")\n',
    "PKG-INFO": "Metadata-Version: 2.1\nName: lengths\nVersion: 1.0\n",
    "src/lengths/__pycache__/__init__.cpython-311.pyc": "byte code",
}
NAMES = tuple(f"tests/test_lengths.py::test_clamp[{pair}]" for pair in ("1-2", "2-2", "3-3", "9-4"))


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Package:
    """A made package, pinned; its source distribution is in `tmp_path`, where pip finds it."""
    file = tmp_path / "lengths-1.0.tar.gz"
    with tarfile.open(file, "w:gz") as archive:
        for name, text in FILES.items():
            entry = tarfile.TarInfo(f"lengths-1.0/{name}")
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))
    monkeypatch.setenv("RLM_LOOP_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    return Package("lengths", "1.0", hashlib.sha256(file.read_bytes()).hexdigest(), ("tests",))


@pytest.fixture
def bug(package: Package, tmp_path: Path) -> Bug:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "sdists").symlink_to(tmp_path)
    slip = Mutation(3, 13, "<", ">", "compare")
    return Bug("lengths-1", package, FILE, "clamp", slip, NAMES[2:3], NAMES, "assert 2 == 3", 5)


@pytest.mark.slow
@pytest.mark.skipif(find_spec("pip") is None, reason="needs pip: python -m ensurepip")
def test_pip_fetches_a_package_once_and_again_when_damaged_and_never_runs_it(package: Package, tmp_path: Path) -> None:
    """The package's setup.py ends with an error when it is run."""
    file, published = pull(package), (tmp_path / "lengths-1.0.tar.gz").read_bytes()
    fetched = file.stat().st_ino, file.stat().st_mtime_ns
    assert (file.read_bytes(), pull(package).stat().st_ino, file.stat().st_mtime_ns) == (published, *fetched)
    file.write_bytes(b"torn")
    assert not is_here(package)
    assert pull(package).read_bytes() == published
    for change, name in (({"sha256": "0" * 64}, "lengths-1.0"), ({"version": "9"}, "lengths==9")):
        with pytest.raises(PackageMissing, match=name):
            pull(replace(package, **change))


def test_the_checkout_has_the_bug_and_no_trace_of_what_was_there_before(bug: Bug) -> None:
    (task,) = package_bugs(bugs=[bug]).tasks
    assert (bug.fail_to_pass[0] in task.question, bug.output in task.question) == (True, True)
    with task.workspace() as space:
        names = sorted(str(p.relative_to(space.root)) for p in space.root.rglob("*.py*"))
        assert names == ["setup.py", FILE, "tests/test_lengths.py"]
        assert (space.root / FILE).read_bytes() == bug.files()[FILE] != CODE.encode()
        assert space.run(["git", "log", "--all", "--format=%s"]).output.split() == ["start"]
        assert "run_tests" in {getattr(tool, "name", "") for tool in space.tools()}


@pytest.mark.slow
def test_taking_the_bug_back_resolves_it_and_changing_tests_does_not(bug: Bug) -> None:
    (task,) = package_bugs(bugs=[bug]).tasks
    with task.workspace() as mended, task.workspace() as cheat:
        (mended.root / FILE).write_text(CODE)
        (cheat.root / "tests/test_lengths.py").write_text("def test_clamp(): pass\n")
        patches = mended.diff(), cheat.diff()
    for artifact, resolved in zip((*patches, None, "  \n", "no patch at all"), (True, *[False] * 4), strict=True):
        judged = task.score(Attempt(artifact=artifact))
        assert (judged.resolved, bool(judged.reason)) == (resolved, True), judged.reason


def test_the_recorded_bugs_are_many_spread_and_small() -> None:
    bugs = recorded()
    packages = Counter(bug.package.name for bug in bugs)
    assert (len(bugs) >= 150, len(packages) >= 12, max(packages.values()) <= 15) == (True, True, True)
    assert all(1 <= len(bug.fail_to_pass) <= 0.3 * len(bug.tests) for bug in bugs)
    dev, test = ({task.facts["package"] for task in package_bugs().split(half)} for half in ("dev", "test"))
    assert dev == test


@pytest.mark.slow
@pytest.mark.parametrize("name", ["inflection", "xmltodict"])  # fetched by `make slow`
def test_a_sample_is_as_recorded_and_resolved_by_taking_the_bug_back(name: str) -> None:
    bug = next(bug for bug in recorded() if bug.package.name == name)
    if not is_here(bug.package):
        pytest.skip(f"{name} is not here: make slow")
    (task, *_) = package_bugs(bugs=[bug]).tasks
    with task.workspace() as space:
        (space.root / bug.file).write_bytes(source_files(bug.package)[bug.file])
        assert task.score(Attempt(artifact=space.diff())).resolved

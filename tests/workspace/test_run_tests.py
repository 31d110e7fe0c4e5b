"""Running a repository's tests: what is reported of each, whatever it does, and the tool by which a model does so."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lazy import BARE

from rlm_loop.repl import Hardened, Launch, ReplError, Sandbox
from rlm_loop.tools import ToolGateway
from rlm_loop.tools.processes import Finished
from rlm_loop.workspace import Workspace
from rlm_loop.workspace.testing import TestRun, run_tests, summary, tests_tool
from rlm_loop.workspace.testing.run import Reports

SETTINGS = """
[tool.pytest.ini_options]
addopts = "-x --cov=pkg --cov-report term -n auto --ff -ra --no-such-option"
filterwarnings = ["error"]
required_plugins = ["pytest-nowhere"]
"""

EVERY_KIND = """
import os, socket, subprocess, sys, time, unittest
import pytest
from pkg import expect_failure, value

def test_fails(): assert value() == 2, "the reason"
def test_passes(): assert value() == 1
@pytest.mark.parametrize("x", ["a::b", "[", "]/é\\n", "", "a b"])
def test_odd(x): assert x is not None
def test_skips(): pytest.skip("not now")
def test_says_that_it_fails(): pytest.xfail("known")
def test_subject_says_that_it_fails(): expect_failure()
@pytest.mark.xfail
def test_marked(): assert 0
@pytest.mark.xfail(strict=True)
def test_marked_but_passes(): pass
@pytest.fixture
def early(): raise ValueError("in setup")
def test_setup(early): pass
@pytest.fixture
def late():
    yield
    raise ValueError("in teardown")
def test_teardown(late): pass
class TestUnit(unittest.TestCase):
    def test_subtests(self):
        for i in range(2):
            with self.subTest(i=i): self.assertEqual(i, 0)
    def test_whole(self): pass
def test_child(): assert subprocess.run([sys.executable, "-c", "import pkg"], cwd="/").returncode == 0
def test_changes_files():
    open("dropping", "w").close()
    os.remove("pyproject.toml")
def test_forked_copy_is_silent():
    pid = os.fork()
    if not pid:
        pytest.exit("in the child")
    os.waitpid(pid, 0)
def test_hash(): assert os.environ["PYTHONHASHSEED"] == "0" and "RLM_LOOP_TEST_SECRET" not in os.environ
def test_env(): assert os.environ["GIVEN"] == "1"
def test_input(): assert sys.stdin is None or pytest.raises(OSError, input)
"""

FILES = {
    "pyproject.toml": SETTINGS,
    "src/pkg/__init__.py": "def value(): return 1\ndef expect_failure():\n    import pytest\n    pytest.xfail('no')\n",
    "tests/test_every_kind.py": EVERY_KIND,
    "tests/test_broken.py": "import nothing_of_this_name\n",
    "tests/test_syntax.py": "def (:\n",
    "tests/test_elsewhere.py": "import pytest\npytest.skip('not here', allow_module_level=True)\n",
    "tests/unit/test_unit.py": "import unittest\nclass A(unittest.TestCase):\n    def test_it(self): pass\n",
    "pytest.py": "raise ImportError('the false one')\n",
}

OUTCOMES = {
    "passed": (
        *("tests/unit/test_unit.py::A::test_it", "::test_passes", "::test_says_that_it_fails", "::test_marked"),
        *("::test_odd[a::b]", "::test_odd[[]", "::test_odd[]/\\xe9\\n]", "::test_odd[]", "::test_odd[a b]"),
        *("::TestUnit::test_whole", "::test_child", "::test_changes_files", "::test_forked_copy_is_silent"),
        *("::test_hash", "::test_env", "::test_input"),
    ),
    "failed": ("::test_fails", "::test_marked_but_passes", "::TestUnit::test_subtests"),
    "error": ("tests/test_broken.py", "tests/test_syntax.py", "::test_setup", "::test_teardown"),
    "skipped": ("tests/test_elsewhere.py", "::test_skips", "::test_subject_says_that_it_fails"),
}


def whole(name: str) -> str:
    return f"tests/test_every_kind.py{name}" if name[0] == ":" else name


EXPECTED = {whole(name): outcome for outcome, names in OUTCOMES.items() for name in names}


def made(folder: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def ran(folder: Path, files: Mapping[str, str], ids: Sequence[str] = (), **options: Any) -> TestRun:
    return run_tests(made(folder, files), ids, **{"place": "plain", "env": BARE, **options})


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("repository"), FILES)


def test_each_test_has_its_result_and_the_repository_stays_as_it_was(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RLM_LOOP_TEST_SECRET", "hunter2")
    run = run_tests(repository, place="plain", env={**BARE, "GIVEN": "1"})
    assert dict(run.results) == EXPECTED, run.output
    assert (run.complaint, run.cut_short, run.place) == ("", "", "plain")
    assert "the reason" in run.messages[whole("::test_fails")]
    assert "nothing_of_this_name" in run.messages["tests/test_broken.py"]
    assert "in teardown" in run.messages[whole("::test_teardown")]
    assert "rlm-tests-" not in run.output + "".join(run.messages.values())
    left = {p.relative_to(repository).as_posix(): p.read_text() for p in repository.rglob("*") if p.is_file()}
    assert left == FILES


def test_chosen_ids(repository: Path) -> None:
    chosen = ["::test_odd[a::b]", "::TestUnit", "::test_marked", "tests/unit/"]
    absent = ["::test_odd[none]", "::test_od", "tests/nowhere.py::test_x", "../outside.py::test_x", "/etc"]
    run = run_tests(repository, [whole(name) for name in [*chosen, *absent]], place="plain", env=BARE)
    units = "::TestUnit::test_subtests", "::TestUnit::test_whole", "tests/unit/test_unit.py::A::test_it"
    answering = [whole(name) for name in ("::test_odd[a::b]", "::test_marked", *units)]
    assert dict(run.results) == {name: EXPECTED[name] for name in answering}
    assert run.complaint == ""


def test_a_crash_keeps_what_was_reported(tmp_path: Path) -> None:
    text = "import os\ndef test_1(): pass\ndef test_2(): os._exit(0)\ndef test_3(): pass\n"
    run = ran(tmp_path, {"test_x.py": text})
    assert dict(run.results) == {"test_x.py::test_1": "passed", "test_x.py::test_2": "error"}
    assert run.cut_short == "the interpreter ended early (exit status 0) in test_x.py::test_2"
    assert run.messages["test_x.py::test_2"] == run.cut_short


@pytest.mark.slow
def test_the_time_is_up(tmp_path: Path) -> None:
    text = "import signal, time\ndef test_1(): pass\ndef test_2():\n    while True: time.sleep(1)\n"
    run = ran(tmp_path, {"test_x.py": text}, timeout=8)
    assert run.cut_short.startswith("stopped after ")
    # On a slow machine pytest itself may take longer than that.
    assert dict(run.results) in ({"test_x.py::test_1": "passed", "test_x.py::test_2": "error"}, {})


OUTWARD = """
import os, socket, pytest
from pathlib import Path
def test_network():
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", %d), timeout=5)
def test_files():
    with pytest.raises(OSError):
        Path(%r).read_text()
def test_own_files(tmp_path):
    (tmp_path / "x").write_text("x")
    Path("y").write_text("y")
    assert os.getuid() == os.stat("y").st_uid
"""


@pytest.mark.parametrize("place", ["hardened", "sandbox"])
def test_isolated(place: str, tmp_path: Path) -> None:
    if problem := {"hardened": Hardened(), "sandbox": Sandbox()}[place].problem(sys.executable):
        pytest.skip(problem)
    secret = made(tmp_path, {"secret": "hunter2"}) / "secret"
    with socket.create_server(("127.0.0.1", 0)) as server:
        files = {"test_x.py": OUTWARD % (server.getsockname()[1], str(secret))}
        run = ran(tmp_path / "repository", files, place="auto" if place == "sandbox" else place)
    assert ([*run.results.values()], run.place) == (["passed"] * 3, place), run.output


def test_a_place_that_does_not_work_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Hardened, "problem", lambda self, python: "no landlock")
    with pytest.raises(ReplError, match="no landlock"):
        run_tests(tmp_path, place="hardened")
    with pytest.raises(ValueError, match="got 'moon'"):
        run_tests(tmp_path, place="moon")  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("files", "ids", "complaint"),
    [
        ({"a.txt": ""}, [], "pytest found no tests"),
        ({"test_x.py": ""}, ["test_y.py::test_1"], "no test has one of these ids"),
        ({"conftest.py": "import os\nos._exit(7)\n"}, [], "no test ran: the interpreter ended early (exit status 7)"),
    ],
)
def test_why_nothing_ran(files: dict[str, str], ids: list[str], complaint: str, tmp_path: Path) -> None:
    run = ran(tmp_path, files, ids)
    assert run.complaint.startswith(complaint), run.output
    assert run.results == {}


SUMS = """
from pkg import add
def test_add():
    open("dropping", "w").close()
    assert add(1, 2) == 3
def test_none(): assert add(0, 0) == 0
"""


@pytest.mark.slow
def test_a_model_runs_tests_and_the_diff_stays_clean() -> None:
    with Workspace({"pkg.py": "def add(a, b): return a - b\n", "tests/test_pkg.py": SUMS}) as space:
        gateway = ToolGateway([tests_tool(space, place="plain")])
        text = gateway.call("run_tests", "").text
        assert text.startswith("1 passed, 1 failed, 0 errors\nFAILED tests/test_pkg.py::test_add\n")
        assert ("assert -1 == 3" in text, "rlm-tests-" in text) == (True, False)
        assert (space.diff(), space.snapshot()) == ("", space.base)
        one = gateway.call("run_tests", '{"selector": "./tests/test_pkg.py::test_none"}')
        assert one.text == "1 passed, 0 failed, 0 errors"
        none = gateway.call("run_tests", '{"selector": "tests/test_no.py"}')
        assert (none.error, none.text) == ("invalid_arguments", "no test has one of these ids: tests/test_no.py")


def test_summaries_are_short() -> None:
    assert summary(TestRun({"a": "skipped"}, cut_short="stopped")) == "0 passed, 0 failed, 0 errors, 1 skipped\nstopped"
    three = TestRun({"a": "failed", "b": "error", "c": "failed"}, messages={"a": "x\ny\n", "b": "z"})
    assert summary(three, failures=1) == "0 passed, 2 failed, 1 errors\nFAILED a\nx\ny\nERROR b\nFAILED c"
    long = TestRun({"a": "failed"}, messages={"a": "\n".join(str(n) for n in range(20))})
    assert summary(long).splitlines()[1:] == ["FAILED a", "...", *(str(n) for n in range(5, 20))]
    many = TestRun({f"t{n}": "failed" for n in range(1000)}, messages={f"t{n}": "x" * 90 for n in range(1000)})
    lines = summary(many).splitlines()
    assert (len(lines), lines[-1]) == (1 + 3 * 2 + 20 + 1, "... 977 more")


# -- what the process of the tests tells is not believed further than it has to be

Told = tuple[str, dict[str, str]]


def result(outcome: str) -> Told:
    return "result", {"id": "a.py::test_a", "outcome": outcome, "text": ""}


CONTROL, FINISH, END, FOOLED = [
    (kind, {"text": text}) for kind, text in (("control", ""), ("finish", ""), ("end", "0"), ("control", "x"))
]


@pytest.mark.parametrize(
    ("lines", "outcome", "distrusted"),
    [
        ([result("passed"), CONTROL, FINISH, END], "passed", ""),
        ([result("passed"), result("failed"), CONTROL, FINISH, END], "failed", ""),
        ([result("failed"), result("passed"), CONTROL, FINISH, END], "failed", ""),  # a result never improves
        ([result("failed"), CONTROL, FINISH, result("passed"), END], "failed", ""),
        ([CONTROL, FINISH, result("passed"), END], None, ""),  # the end has been told
        ([result("passed")], "passed", "the run did not come to its end, after the last test"),
        ([result("passed"), FINISH, END], "passed", "control tests, which have to fail, passed: which were not run"),
        ([result("passed"), FOOLED, FINISH], "passed", "control tests, which have to fail, passed: x"),
    ],
)
def test_what_is_told(lines: list[Told], outcome: str | None, distrusted: str) -> None:
    reports = Reports("word")
    for kind, fields in lines:
        reports.hear(b"word" + json.dumps({"kind": kind, **fields}).encode())
    run = reports.result(Finished(0, "", False, 1.0), Launch((), {}, "plain"), ["a.py"], "/folder", ())
    assert (run.results.get("a.py::test_a"), run.distrusted) == (outcome, distrusted)


@given(st.binary() | st.recursive(st.none() | st.text(), st.lists).map(lambda value: json.dumps(value).encode()))
def test_any_line_is_borne(line: bytes) -> None:
    reports = Reports("word")
    for text in (line, b"word" + line, b"word" + b'{"kind": "result"}', b"word" + b"[" * 100_000):
        reports.hear(text)
    assert reports.results == {}

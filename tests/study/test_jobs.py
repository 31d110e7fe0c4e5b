"""Episodes as bytes: what can travel, what cannot, and what comes back."""

from __future__ import annotations

import errno
import json
import pickle
import socket
import threading
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from study_arms import Arm, suite, task

from rlm_loop import Budget, DirectAgent, LeanAgent, ReActAgent, ToolLoopAgent
from rlm_loop.messages import Reply
from rlm_loop.models import ScriptedModel
from rlm_loop.models.base import AuthenticationFailed, RateLimited
from rlm_loop.study import Study, StudyError
from rlm_loop.study.plan.grid import Episode
from rlm_loop.study.run.jobs import Done, Job, JobRefused, _pace, keep_trace, pack, perform, portable
from rlm_loop.tasks import get_suite, list_suites
from rlm_loop.tasks.base import Suite, Task


def episode(of: Task | None = None) -> Episode:
    return Study("mine", {"a": Arm()}, Suite("s", (of or task("t"),))).episodes()[0]


def sent(agent: Any = None, of: Task | None = None, folder: Path | None = None) -> Done:
    return perform(pack(Job("mine", episode(of), Arm() if agent is None else agent, folder)))


def test_the_row_and_the_trace_come_back(tmp_path: Path) -> None:
    done = sent()
    assert (done.row["resolved"], done.row["steps"], done.fault) == (True, 2, None)
    assert done.trace is not None
    assert json.loads(zlib.decompress(done.trace).splitlines()[0])["event"] == "run_start"
    there = sent(folder=tmp_path)
    assert there.trace is None
    assert (tmp_path / there.row["trace"]).is_file()


@pytest.mark.parametrize("kind", [ToolLoopAgent, LeanAgent, ReActAgent, DirectAgent])
def test_our_agents_travel_with_a_model_object(kind: type[Any]) -> None:
    """The object is copied with its script, though it holds a lock; the one at home stays as it is."""
    model = ScriptedModel(["answer-t"] * 3)
    done = sent(kind(model=model, repl="restricted", budget=Budget(steps=3)))
    assert done.row["error"] is None
    assert done.row["calls"] >= 1
    assert model.prompts == []


@pytest.mark.parametrize("name", list_suites())
def test_the_tasks_of_our_suites_travel(name: str) -> None:
    try:
        tasks = get_suite(f"{name}@2k" if name.startswith("long_context") else name).tasks
    except (ImportError, OSError) as missing:
        pytest.skip(f"needs what is not here: {missing}")
    for one in (tasks[0], tasks[-1]):
        inner = pickle.loads(pack(Job("mine", replace(episode(), task=one), Arm(), None)))[2]
        assert pickle.loads(inner).episode.task.question == one.question


def test_closures_lambdas_and_locks_travel() -> None:
    lock, count = threading.RLock(), 2

    def judge(attempt: Any) -> Any:
        with lock:
            return type(attempt_score)(attempt.answer == "answer-t", count / 2)

    attempt_score = task("t").score(type("A", (), {"answer": "x"})())  # a Score
    assert sent(of=replace(task("t"), score=judge)).row["value"] == 1.0


def test_what_cannot_travel_is_named() -> None:
    with socket.socket() as here, pytest.raises(StudyError) as refused:
        pack(Job("mine", episode(), Arm(before=lambda _: here.close()), None))
    assert str(refused.value).startswith("arm a on s/t cannot travel to another process (")
    assert str(refused.value).endswith("give models by name, or run it in threads")
    assert "\n" not in str(refused.value)


def test_a_worker_of_another_version_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    packed = pack(Job("mine", episode(), Arm(), None))
    monkeypatch.setattr("rlm_loop.study.run.jobs.__version__", "0.0.1")
    with pytest.raises(JobRefused, match=r"a worker has rlm-loop 0\.0\.1 and the study .*; install the same on both"):
        perform(packed)


def test_a_worker_that_lacks_a_package_says_which() -> None:
    version, files, _ = pickle.loads(pack(Job("mine", episode(), Arm(), None)))
    missing = b"cno_such_package\nThing\n."  # a pickle of a class that is not there
    with pytest.raises(JobRefused, match=r"No module named 'no_such_package'.*install on the workers"):
        perform(pickle.dumps((version, files, missing)))


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (None, None),
        (RuntimeError("mine"), None),
        (AuthenticationFailed("set A_KEY", "gpt"), ("AuthenticationFailed", "set A_KEY")),
        (RateLimited("wait", "gpt", True), ("RateLimited", "wait")),
        (OSError(errno.ENOSPC, "No space left on device", "x"), ("OSError", "[Errno 28] No space left on device: 'x'")),
    ],
)
def test_faults_that_concern_the_study_are_told_without_what_hangs_on_them(fault: Any, told: Any) -> None:
    if isinstance(fault, RateLimited):
        fault.retry_after, fault.partial_answer = 7.0, threading.Lock()
    found = portable(fault)
    assert (None if found is None else (type(found).__name__, str(found))) == told
    assert getattr(found, "retry_after", None) == getattr(fault, "retry_after", None)
    pickle.dumps(found)


def test_a_rate_is_kept_by_all_episodes_of_a_process() -> None:
    model = ScriptedModel([Reply("answer-t")])
    job = Job("mine", episode(), DirectAgent(model=model), None, rate=600_000.0)
    assert perform(pack(job)).row["resolved"]
    assert _pace(600_000.0)._next > 0
    assert "rate cannot be kept" in perform(pack(replace(job, agent=Outside()))).row["error"]


class Outside:
    """An arm with a model of its own."""

    def settings(self) -> dict[str, Any]:
        return {}

    def attempt(self, task: Task, *, trace: Any = None) -> Any:
        raise AssertionError


lines = st.lists(st.sampled_from([b'{"event":"a"}\n', b'{"event":"b"}\n']), min_size=1)


@given(before=st.none() | st.tuples(lines, st.sampled_from([b"", b'{"torn'])), came=lines)
def test_a_trace_that_came_back_is_appended_as_at_home(
    tmp_path_factory: pytest.TempPathFactory, before: Any, came: list[bytes]
) -> None:
    folder = tmp_path_factory.mktemp("traces")
    path, old, torn = folder / episode().trace, b"", b""
    if before is not None:
        old, torn = b"".join(before[0]), before[1]
        path.parent.mkdir(parents=True)
        path.write_bytes(old + torn)
    keep_trace(folder, episode(), Done({}, None, zlib.compress(b"".join(came))))
    assert path.read_bytes() == old + (torn + b"\n" if torn else b"") + b"".join(came)


def test_a_trace_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "traces").write_text("")
    with pytest.raises(StudyError, match=r"cannot write .*; make room and resume"):
        keep_trace(tmp_path, episode(), Done({}, None, zlib.compress(b"{}\n")))


def test_tasks_of_a_suite_made_here_are_the_same_there() -> None:
    for one in suite("a", 2):
        inner = pickle.loads(pack(Job("mine", replace(episode(), task=one), Arm(), None)))[2]
        assert pickle.loads(inner).episode.task.id == one.id

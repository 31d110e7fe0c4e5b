"""Studies on threads, processes and Dask: the same rows and traces everywhere, and what a lost worker costs."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from study_arms import Arm, suite

from rlm_loop.models.base import AuthenticationFailed
from rlm_loop.study import Study, StudyError, StudyInterrupted, executor_of, load_study, verify_traces
from rlm_loop.study.run.executors import capacity, in_this_process, on_this_machine
from rlm_loop.study.run.processes import SeparateProcesses
from rlm_loop.tasks.base import Task

HERE = Path(__file__).parent
DASK = pytest.param("dask:2", marks=pytest.mark.slow)
ARMS = {"short": Arm("short", 1), "long": Arm("long", 3, wrong=("a-2",))}


def told(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in ("started", "trace_run")}


def events(trace: Path) -> list[str]:
    return [json.loads(line)["event"] for line in trace.read_text().splitlines()]


@pytest.mark.parametrize("where", ["threads:2", "processes:2", DASK])
def test_rows_and_traces_are_those_of_a_run_in_turn(tmp_path: Path, where: str) -> None:
    study = Study("mine", ARMS, suite("a", 3))
    one, other = study.run(tmp_path / "one", False), study.run(tmp_path / "other", False, executor=where)
    assert [told(r) for r in other.rows] == [told(r) for r in one.rows]
    for row in one.rows:
        assert events(tmp_path / "other" / row["trace"]) == events(tmp_path / "one" / row["trace"])
    assert verify_traces(tmp_path / "other") == verify_traces(tmp_path / "one")
    assert other.lock["arms"] == one.lock["arms"]
    assert len(study.run(tmp_path / "one", False, executor=where)) == 6  # not another study: all is finished


@pytest.mark.slow
def test_two_clusters_stand_side_by_side() -> None:
    with executor_of("dask:1") as one, executor_of("dask:1") as other:
        assert (one.submit(len, "abc").result(60), other.submit(len, "ab").result(60)) == (3, 2)


def _dies_once(flag: Path, task_id: str) -> Callable[[Task], None]:
    def before(task: Task) -> None:
        if task.id == task_id and not flag.exists():
            flag.touch()
            os.kill(os.getpid(), signal.SIGKILL)

    return before


@pytest.mark.parametrize("where", ["processes:2", DASK])
def test_a_lost_worker_costs_the_episode_that_it_ran(tmp_path: Path, where: str) -> None:
    arms = {"good": Arm("good"), "bad": Arm("bad", before=_dies_once(tmp_path / "flag", "a-3"))}
    study = Study("mine", arms, suite("a", 6))
    found = study.run(tmp_path / "out", False, executor=where)
    assert len(found) == 12
    assert [(r["arm"], r["task"], r["error_class"]) for r in found.crashed] == [("bad", "a-3", "WorkerLost")]
    assert found.crashed[0]["error"].startswith("WorkerLost: its worker ended in mid-episode")
    again = study.run(tmp_path / "out", False, executor=where, retry_failed=True)
    assert (len(again), again.crashed) == (12, [])


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")  # a choice of the user's
@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_a_pool_of_the_users_that_breaks_as_a_whole_costs_one_episode(tmp_path: Path, method: str) -> None:
    """The standard library's pool loses all that was under way, whoever was to blame; only that one is a failed row."""

    def always(task: Task) -> None:
        if task.id == "a-2":
            os.kill(os.getpid(), signal.SIGKILL)

    study = Study("mine", {"good": Arm("good"), "bad": Arm("bad", before=always)}, suite("a", 4))
    with ProcessPoolExecutor(3, multiprocessing.get_context(method)) as pool:
        found = study.run(tmp_path, False, executor=pool)
    assert len(found) == 8
    assert [(r["arm"], r["task"], r["error_class"]) for r in found.crashed] == [("bad", "a-2", "WorkerLost")]


class _PipeClosed(ProcessPoolExecutor):
    """The pool in the moment after a worker's death: its pipe is closed, and it does not yet say that it is broken."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        raise OSError("handle is closed")


def test_a_pool_whose_pipe_is_closed_is_a_broken_pool(tmp_path: Path) -> None:
    with _PipeClosed(1) as pool:
        found = Study("mine", ARMS, suite("a", 1)).run(tmp_path, False, executor=pool)
    assert (len(found), found.crashed) == (2, [])


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_a_process_that_dies_ends_its_call_alone(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that dies between two calls; what waits for a process gets a new one."""
    monkeypatch.setattr("rlm_loop.study.run.processes._context", lambda: multiprocessing.get_context(method))
    with SeparateProcesses(2) as processes:
        died, waiting = processes.submit(os._exit, 3), [processes.submit(os.getpid) for _ in range(6)]
        assert isinstance(died.exception(60), BrokenProcessPool)
        for pid in {call.result(60) for call in waiting}:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        ended = [processes.submit(len, "abc").exception(60) for _ in range(9)]  # the death is noticed before or after
        assert {type(e) for e in ended} <= {BrokenProcessPool, type(None)}
        assert ended[-1] is None


def test_a_kill_ends_what_runs_and_what_waits() -> None:
    processes = SeparateProcesses(1)
    begun, waiting = processes.submit(time.sleep, 600), processes.submit(time.sleep, 600)
    while not begun.running():
        time.sleep(0.01)
    processes.kill()
    assert isinstance(begun.exception(60), BrokenProcessPool)
    assert waiting.cancelled()
    processes.shutdown()


def test_worker_after_worker_lost_ends_the_run(tmp_path: Path) -> None:
    def never(_: Task) -> None:
        os._exit(9)

    study = Study("mine", {"bad": Arm(before=never)}, suite("a", 20))
    with pytest.raises(StudyError, match="8 workers in a row were lost in mid-episode; see to their memory"):
        study.run(tmp_path, False, executor="processes:1")
    assert len(load_study(tmp_path).crashed) == 8


def test_a_wrong_key_stops_the_study_in_processes_too(tmp_path: Path) -> None:
    def refuse(_: Task) -> None:
        raise AuthenticationFailed("set OPENAI_API_KEY", "gpt")

    with pytest.raises(AuthenticationFailed, match="OPENAI_API_KEY"):
        Study("mine", {"a": Arm(before=refuse)}, suite("s", 9)).run(tmp_path, False, executor="processes:1")


def test_workers_have_the_environment_and_the_folder_of_the_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of now, though the server that they are forked from may be as old as this process."""
    monkeypatch.setenv("A_KEY_SET_LATE", "yes")
    monkeypatch.chdir(tmp_path)
    with executor_of("processes:1") as executor:
        assert executor.submit(os.getcwd).result() == str(tmp_path)
        assert executor.submit(os.getenv, "A_KEY_SET_LATE").result() == "yes"


@pytest.mark.parametrize(
    ("where", "width", "here", "machine"), [("threads:3", 3, True, False), ("processes:2", 2, False, True)]
)
def test_what_is_known_of_an_executor(where: str, width: int, here: bool, machine: bool) -> None:
    with executor_of(where) as executor:
        assert (capacity(executor), in_this_process(executor), on_this_machine(executor)) == (width, here, machine)


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("cluster", "there is no executor 'cluster'; there are threads:N"),
        ("threads:0", "'threads:0' needs a number of workers, 1 or more, as in threads:4"),
        ("processes:two", "needs a number of workers"),
        ("processes:-1", "needs a number of workers"),
        ("dask:nowhere.json", "there is no scheduler file nowhere.json; `dask scheduler --scheduler-file"),
        ("dask:tcp://127.0.0.1:9", "no Dask scheduler answers at tcp://127.0.0.1:9; start one"),
        ("dask:0", "needs a number of workers"),
    ],
)
def test_a_name_that_is_no_place_is_one_line(
    tmp_path: Path, where: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rlm_loop.study.run.dask_cluster.PATIENCE", 0.5)
    with pytest.raises(StudyError) as refused:
        Study("mine", ARMS, suite("a", 1)).run(tmp_path, False, executor=where)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_library_that_is_not_there_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)  # type: ignore[arg-type]
    monkeypatch.delitem(sys.modules, "rlm_loop.study.run.dask_cluster", raising=False)
    with pytest.raises(StudyError, match=r'pip install -e "\.\[dask\]"'), executor_of("dask"):
        pass


def test_an_interrupt_from_inside_an_episode_keeps_the_others(tmp_path: Path) -> None:
    """A loop that the user stopped (a notebook's button) stops the study; what else runs is waited for."""
    begun = threading.Event()

    def stopped(_: Task) -> None:
        begun.wait()
        raise KeyboardInterrupt

    def other(_: Task) -> None:
        begun.set()
        time.sleep(0.2)

    arms = {"stopped": Arm("stopped", before=stopped), "other": Arm("other", before=other)}
    with pytest.raises(StudyInterrupted, match="stopped with 1 episodes to go"):
        Study("mine", arms, suite("a", 1)).run(tmp_path, False, executor="threads:2")
    assert [(r["arm"], r["error"]) for r in load_study(tmp_path).rows] == [("other", None)]


SCRIPT = """
import os, sys, time
sys.path.insert(0, {tests!r})
from study_arms import Arm, suite
from rlm_loop.study import Study

def slow(task):
    os.write(1, b"begun\\n")  # threads that print at once may write both words before both ends of line
    until = time.monotonic() + (1.0 if task.id == "a-1" else 600.0)
    while time.monotonic() < until:
        time.sleep(0.02)

{guard}
    Study("mine", {{"x": Arm(before=slow)}}, suite("a", 9)).run({folder!r}, False, executor={executor!r})
"""


@contextlib.contextmanager
def script(
    tmp_path: Path, guard: str = 'if __name__ == "__main__":', executor: str = "processes:1"
) -> Iterator[subprocess.Popen[str]]:
    file = tmp_path / "script.py"
    file.write_text(SCRIPT.format(tests=str(HERE), folder=str(tmp_path / "out"), guard=guard, executor=executor))
    environment = {**os.environ, "PYTHONPATH": str(HERE.parents[1])}
    with subprocess.Popen(
        [sys.executable, str(file)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:  # its test failed
                os.killpg(process.pid, signal.SIGKILL)


def test_ctrl_c_keeps_what_runs_and_fails_nothing(tmp_path: Path) -> None:
    """Ctrl-C reaches the workers as well: what they run is waited for and kept, and nothing is a failed row."""
    with script(tmp_path) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        os.killpg(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=120)
        assert process.returncode != 0
        assert "stopped with 8 episodes to go" in said
        assert [(r["task"], r["error"]) for r in load_study(tmp_path / "out").rows] == [("a-1", None)]


@pytest.mark.parametrize("executor", ["threads:2", "processes:2"])
def test_a_second_ctrl_c_ends_what_runs_and_keeps_what_has_ended(tmp_path: Path, executor: str) -> None:
    with script(tmp_path, executor=executor) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        for _ in range(3):  # one is over, and two go on for ten minutes
            assert process.stdout.readline() == "begun\n"
        process.send_signal(signal.SIGINT)
        assert "waiting for 2 running episodes" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=120)
        assert "stopped with 8 episodes to go" in said
        assert [(r["task"], r["error"]) for r in load_study(tmp_path / "out").rows] == [("a-1", None)]


def test_workers_end_with_the_study_however_it_ends(tmp_path: Path) -> None:
    with script(tmp_path) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        os.kill(process.pid, signal.SIGKILL)
        _, said = process.communicate(timeout=120)  # the end of the file: no worker holds the pipe any more
        assert process.returncode == -signal.SIGKILL
        assert "Traceback" not in said


def test_a_script_without_a_main_guard_is_told_so(tmp_path: Path) -> None:
    with script(tmp_path, guard="if True:") as process:
        _, said = process.communicate(timeout=120)
    assert "run the study of a script under `if __name__ == '__main__':`" in said
    assert load_study(tmp_path / "out").rows == []


EXPERIMENT = """
import functools, sys
from dataclasses import dataclass
sys.path.insert(0, {tests!r})
from study_arms import Arm, suite, task
from rlm_loop import Suite
from rlm_loop.study import Study

@functools.lru_cache
def letters():
    return "the letters"

@dataclass(frozen=True)
class Mine(Arm):
    def attempt(self, task, *, trace=None):
        assert letters() == "the letters"
        return super().attempt(task, trace=trace)

def study():
    return Study("mine", {{"one": Mine("one", 1), "two": Mine("two", 2)}}, suite("a", 2))
"""


def test_a_study_file_travels_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No worker could import it by name, and it is gone by the time that they look."""
    from rlm_loop.study import load_study_file

    file = tmp_path / "questions" / "study.py"
    file.parent.mkdir()
    file.write_text(EXPERIMENT.format(tests=str(HERE)))
    study = load_study_file(file)
    study = replace(study, tasks=suite("a", 3))
    with executor_of("processes:2") as executor:
        first = study.run(tmp_path / "out", False, limit=1, executor=executor)
        file.unlink()
        found = study.run(tmp_path / "out", False, executor=executor)
    assert (len(first), len(found), found.crashed) == (2, 6, [])


def test_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from rlm_loop.cli.main import main

    file = tmp_path / "study.py"
    file.write_text(EXPERIMENT.format(tests=str(HERE)))
    words = ["study", "run", str(file), "--out", str(tmp_path / "out"), "--executor"]
    assert main([*words, "processes:2"]) == 0
    assert "[4/4]" in capsys.readouterr().err or len(load_study(tmp_path / "out")) == 4
    assert main([*words, "elsewhere"]) == 0  # all is finished: nothing needs a place
    assert main(["study", "run", str(file), "--out", str(tmp_path / "new"), "--executor", "elsewhere"]) != 0
    assert "there is no executor 'elsewhere'" in capsys.readouterr().err


def test_seconds_end_a_study_on_an_executor_after_whole_tasks(tmp_path: Path) -> None:
    study = Study("mine", ARMS, suite("s", 5))
    assert len(study.run(tmp_path, False, seconds=0, executor="threads:2")) == 0
    assert len(study.run(tmp_path, False, seconds=600, executor="threads:2")) == 10


def test_an_executor_that_is_given_stays_open(tmp_path: Path) -> None:
    with executor_of("threads:2") as executor:
        assert len(Study("mine", ARMS, suite("a", 2)).run(tmp_path, False, executor=executor)) == 4
        assert executor.submit(time.monotonic).result() > 0

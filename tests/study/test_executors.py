"""Studies in threads, on executors of others, as an array of jobs, interrupted and killed: the same rows and traces
everywhere."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import killed_study
import pytest
from study_arms import TIMES, Arm, suite, told

from rlm_loop.cli.main import main
from rlm_loop.models import AuthenticationFailed
from rlm_loop.study import Study, StudyError, StudyInterrupted, load_study, load_study_file, submit, verify_traces
from rlm_loop.tasks import Attempt, Suite, Task

HERE = Path(__file__).parent
ARMS = {"short": Arm("short", 1), "long": Arm("long", 3, wrong=("a-2",))}


def events(trace: Path) -> list[str]:
    return [json.loads(line)["event"] for line in trace.read_text().splitlines()]


def right(attempt: Attempt) -> bool:
    return attempt.answer == "answer"


@contextlib.contextmanager
def pool(kind: str) -> Generator[Executor]:
    if kind == "dask":
        distributed = pytest.importorskip("distributed")
        with (
            distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
            distributed.Client(cluster, set_as_default=False) as client,
        ):
            yield client.get_executor()
    elif kind == "loky":
        yield pytest.importorskip("loky").get_reusable_executor(2)
    else:
        with {"threads": ThreadPoolExecutor, "processes": ProcessPoolExecutor}[kind](2) as executor:
            yield executor


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
@pytest.mark.parametrize("kind", ["jobs", "threads", "processes", "loky", pytest.param("dask", marks=pytest.mark.slow)])
def test_rows_and_traces_are_those_of_a_run_in_turn(tmp_path: Path, kind: str) -> None:
    tasks = Suite("a", tuple(Task(f"a-{n}", "Please repeat answer", right) for n in range(1, 4)))
    study = Study("mine", ARMS, tasks)
    one = study.run(tmp_path / "one", False)
    with contextlib.nullcontext() if kind == "jobs" else pool(kind) as executor:
        other = study.run(tmp_path / "other", False, jobs=2, executor=executor)
        assert len(study.run(tmp_path / "one", False, executor=executor)) == 6  # not another study: all is finished
    assert sum(r["resolved"] for r in one.rows) == 5
    assert told(other) == told(one)
    for row in one.rows:
        assert events(tmp_path / "other" / row["trace"]) == events(tmp_path / "one" / row["trace"])
    assert verify_traces(tmp_path / "other") == verify_traces(tmp_path / "one")
    assert other.lock["arms"] == one.lock["arms"]


def stop(task: Task) -> None:
    os._exit(9)


def refuse(task: Task) -> None:
    raise AuthenticationFailed("set OPENAI_API_KEY", "gpt")


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
@pytest.mark.parametrize(
    ("before", "error", "said"),
    [
        (type("Open", (), {"__call__": stop})(), StudyError, "pickle"),
        (stop, StudyError, "BrokenProcessPool"),
        (refuse, AuthenticationFailed, "OPENAI_API_KEY"),  # a model's fault comes back as what it is
    ],
)
def test_what_stops_a_study_on_processes(tmp_path: Path, before: Any, error: type[Exception], said: str) -> None:
    study = Study("mine", {"a": Arm(before=before)}, Suite("a", (Task("a-1", "Please repeat answer", right),)))
    with pool("processes") as executor, pytest.raises(error, match=said):
        study.run(tmp_path, False, executor=executor)


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
        Study("mine", arms, suite("a", 1)).run(tmp_path, False, jobs=2)
    assert [(r["arm"], r["error"]) for r in load_study(tmp_path).rows] == [("other", None)]


SCRIPT = """
import os, sys, time
from study_arms import Arm, suite
from rlm_loop.study import Study

def slow(task):
    os.write(1, b"begun\\n")  # threads that print at once may write both words before both ends of line
    until = time.monotonic() + (1.0 if task.id == "a-1" else 600.0)
    while time.monotonic() < until:
        time.sleep(0.02)

Study("mine", {"x": Arm(before=slow)}, suite("a", 9)).run(sys.argv[1], False, jobs=2)
"""


def test_a_second_ctrl_c_ends_what_runs_and_keeps_what_has_ended(tmp_path: Path) -> None:
    file = tmp_path / "script.py"
    file.write_text(SCRIPT)
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), str(HERE.parents[1])])}
    with subprocess.Popen(
        [sys.executable, str(file), str(tmp_path / "out")], env=environment, start_new_session=True, **pipes
    ) as process:
        try:
            for _ in range(3):  # one is over, and two go on for ten minutes
                assert process.stdout.readline() == "begun\n"
            process.send_signal(signal.SIGINT)
            assert "waiting for 2 running episodes" in process.stderr.readline()
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=120)
        finally:
            if process.poll() is None:  # the test failed
                os.killpg(process.pid, signal.SIGKILL)
    assert "stopped with 8 episodes to go" in said
    assert [(r["task"], r["error"]) for r in load_study(tmp_path / "out").rows] == [("a-1", None)]


def test_a_limit_of_time_and_an_executor_that_is_left_open(tmp_path: Path) -> None:
    study = Study("mine", ARMS, suite("a", 5))
    assert len(study.run(tmp_path, False, seconds=0)) == 0
    with ThreadPoolExecutor(2) as executor:
        assert len(study.run(tmp_path, False, seconds=0, executor=executor)) == 0
        assert len(study.run(tmp_path, False, seconds=600, executor=executor)) == 10
        assert executor.submit(time.monotonic).result() > 0


# -- killed again and again, a study ends with the rows of one that nobody disturbed


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="lives of the study are forks")
def test_killed_thirty_times_nothing_is_lost_and_nothing_is_there_twice(tmp_path: Path) -> None:
    whole = killed_study.study().run(tmp_path / "whole", False)
    assert len(whole) == killed_study.EPISODES
    assert {r["error_class"] for r in whole.rows} == {None, "RuntimeError"}
    words = [sys.executable, killed_study.__file__, str(tmp_path / "killed"), "7", "30"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.split()) == (0, ["30"]), done.stderr
    lines = (tmp_path / "killed" / "results.jsonl").read_text().splitlines()
    assert json.loads(lines[0])["schema"] == 1
    assert len(lines) == 1 + killed_study.EPISODES
    assert told(load_study(tmp_path / "killed"), *TIMES) == told(whole, *TIMES)
    assert verify_traces(tmp_path / "killed") == []


# -- an array of jobs: a killed one is sent again

ARRAY = """
import os, time
from rlm_loop import LeanAgent, ScriptedModel, Study, Task, ToolLoopAgent

def slow(attempt):
    while os.path.exists(os.environ.get("HOLD", "")) and attempt.answer == "3":
        time.sleep(0.05)
    return attempt.answer in ("1", "3", "4")

def study():
    arms = {"one": ToolLoopAgent(), "two": LeanAgent()}
    tasks = [Task(f"t{n}", f"Say {n}.", slow) for n in range(1, 6)]
    replies = lambda prompt: prompt.messages[-1].text.split("Say ")[1][0]
    return Study("array", arms, tasks, model=ScriptedModel([replies] * 20))
"""


def rows(folder: Path) -> list[dict[str, Any]]:
    return sorted(told(load_study(folder), *TIMES), key=lambda row: (row["task"], row["arm"]))


@pytest.fixture
def make(tmp_path: Path) -> partial[Study]:
    pytest.importorskip("submitit")
    (tmp_path / "study.py").write_text(ARRAY)
    return partial(load_study_file, tmp_path / "study.py")


@pytest.mark.slow
def test_a_killed_job_is_sent_again_as_on_one_machine(tmp_path: Path, make: Any, monkeypatch: Any, capsys: Any) -> None:
    make().run(tmp_path / "here", progress=False)
    hold = tmp_path / "hold"
    hold.touch()
    monkeypatch.setenv("HOLD", str(hold))
    jobs = submit(make, tmp_path / "array", array=3, minutes=5, cluster="local")
    end = time.monotonic() + 100
    while len(load_study(tmp_path / "array").rows) < 6 and time.monotonic() < end:  # those before the held ones
        time.sleep(0.1)
    assert main(["study", "status", str(tmp_path / "array")]) == 0
    assert "a process is running it" in capsys.readouterr().out
    for job in jobs:
        subprocess.run(["pkill", "-KILL", "-P", str(job._process.pid)], check=False)
        job._process.kill()
        job._process.wait()
    hold.unlink()
    for job in submit(make, tmp_path / "array", array=3, minutes=5, cluster="local"):
        job.result()
        job._process.wait()
    assert rows(tmp_path / "array") == rows(tmp_path / "here")
    assert submit(make, tmp_path / "array", array=3, minutes=5, cluster="local") == []


def test_an_array_by_command(tmp_path: Path, make: Any, monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.chdir(tmp_path)
    make().run("runs/array", progress=False)
    assert main(["study", "submit", "study.py", "--array", "2", "--minutes", "240", "--cluster", "local"]) == 0
    assert "nothing is left" in capsys.readouterr().err

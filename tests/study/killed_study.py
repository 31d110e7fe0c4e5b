"""A study of 300 scripted episodes, killed and resumed by a parent process that has everything imported (`python
killed_study.py FOLDER SEED KILLS`): each life is a fork, so that thirty of them take seconds."""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
import traceback
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rlm_loop import Budget, LeanAgent, Suite, Task
from rlm_loop.agents import Agent
from rlm_loop.messages import Reply, ToolCall
from rlm_loop.models import ScriptedModel
from rlm_loop.outcome import Outcome
from rlm_loop.study import Study
from rlm_loop.tasks import Attempt, Score

EPISODES = 300


def double(number: int) -> int:
    """Twice a number."""
    return 2 * number


@dataclass(frozen=True)
class Scripted:
    """An agent with a script of its own for each episode, so that no reply depends on what ran before."""

    agent: Agent
    turns: int

    def settings(self) -> dict[str, Any]:
        return {**self.agent.settings(), "turns": self.turns}

    def attempt(self, task: Task, *, trace: Any = None) -> Outcome:
        calls = [Reply("", (ToolCall(f"c{n}", "double", json.dumps({"number": n})),)) for n in range(self.turns)]
        if task.id.endswith("7"):
            calls.append(RuntimeError("the server fell over"))  # type: ignore[arg-type]
        model = ScriptedModel([*calls, f"It is {task.id}."], price=(1e-6, 2e-6))
        return replace(self.agent, model=model).attempt(task, trace=trace)


def study() -> Study:
    def judge(attempt: Attempt) -> Score:
        return Score(str(attempt.answer).endswith("3."), 0.5, "by its last digit")

    tasks = tuple(Task(f"t{n}", f"What is {n}?", judge, tools=(double,), needs_repl=False) for n in range(50))
    agent = LeanAgent(model="local", budget=Budget(steps=9))
    arms = {f"turns-{n}": Scripted(agent, n) for n in (0, 1, 3)}
    return Study("killed", arms, Suite("numbers", tasks), seeds=(0, 1))


def live(folder: Path, jobs: int) -> int:
    """One life of the study, in a fork."""
    child = os.fork()
    if child:
        return child
    try:
        study().run(folder, False, jobs=jobs)
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def rows_in(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def kill_often(folder: Path, seed: int, kills: int) -> int:
    """Kill as many lives of the study, each at a random moment, and then let it end; returns how many were killed."""
    chance, results, killed = random.Random(seed), folder / "results.jsonl", 0
    for number in range(kills):
        begun = rows_in(results)
        left = max(0, EPISODES - 20 - begun)  # the last ones are for the life that is not killed
        wanted = begun + min(left, chance.randint(0, int(1.8 * left / (kills - number))))
        child = live(folder, jobs=chance.choice([1, 1, 4]))
        while rows_in(results) < wanted and os.waitpid(child, os.WNOHANG) == (0, 0):
            time.sleep(0.001)
        time.sleep(chance.random() * 0.03)
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        killed += os.WIFSIGNALED(status)
    _, status = os.waitpid(live(folder, jobs=1), 0)
    if status:
        raise SystemExit("the last life did not end well")
    return killed


if __name__ == "__main__":
    print(kill_often(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))

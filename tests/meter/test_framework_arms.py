"""A function as an arm of a study: its answer is judged, its calls are metered, its crashes are rows.

So are agents of four projects, in processes of their own; `make frameworks` installs the projects.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from wires import post, user

from rlm_loop import Budget, ScriptedModel, Study, Task, ToolLoopAgent, arm
from rlm_loop.traces import read

ROOT = Path(__file__).parents[2]
HOST = """
import json, sys
from experiments.peers import arms
from rlm_loop import ScriptedModel, Study, Task, arm
name, reply, folder = sys.argv[1:]
one = arm(getattr(arms, name).function, name=name, model=ScriptedModel([reply]))
task = Task("sum", "What is 17 + 25?", lambda attempt: str(attempt.answer).strip() == "42")
row = dict(Study("peer", {name: one}, [task]).run(folder, progress=False).rows[0])
print("row " + json.dumps({k: row[k] for k in ("resolved", "steps", "calls", "input_tokens", "error")}))
"""
DSPY = "[[ ## reasoning ## ]]\nI add.\n\n[[ ## code ## ]]\n```python\nSUBMIT(answer=str(17 + 25))\n```\n\n"
MINI = "THOUGHT: add\n\n```mswea_bash_command\necho COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && echo 42\n```"
#: The name of each, its package, its module, and a reply that answers in its own way.
REPLIES = [
    ("smolagents_code", "smolagents", "smolagents", "Thought: I add.\n<code>\nfinal_answer(17 + 25)\n</code>"),
    ("dspy_rlm", "dspy", "dspy", f"{DSPY}[[ ## completed ## ]]"),
    ("rlms_rlm", "rlms", "rlm", "```repl\nanswer['content'] = 17 + 25\nanswer['ready'] = True\n```"),
    ("mini_swe_agent", "mini-swe-agent", "minisweagent", MINI),
]


@pytest.mark.parametrize(("name", "package", "module", "reply"), REPLIES)
def test_answers_are_judged_and_calls_counted(name: str, package: str, module: str, reply: str, tmp_path: Path) -> None:
    if importlib.util.find_spec(module) is None and package not in os.environ.get("FRAMEWORKS", ""):
        pytest.skip(f"{package} is not installed: make frameworks")
    env = {**os.environ, "PYTHONPATH": str(ROOT), "HOME": str(tmp_path), "MSWEA_CONFIGURED": "true"}
    env |= {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "MSWEA_GLOBAL_CONFIG_DIR": str(tmp_path)}
    words = [sys.executable, "-c", HOST, name, reply, str(tmp_path / "runs")]
    done = subprocess.run(words, capture_output=True, text=True, env=env, cwd=tmp_path, timeout=300)
    found = next((line for line in done.stdout.splitlines() if line.startswith("row ")), done.stderr[-2000:])
    row = json.loads(found.removeprefix("row "))
    assert row | {"input_tokens": 0} == {"resolved": True, "steps": 1, "calls": 1, "input_tokens": 0, "error": None}
    assert row["input_tokens"] > 100  # what a framework says before the question


TASKS = [Task(f"sum-{n}", f"What is {n} and {n}?", str(2 * n)) for n in (1, 2)]


def ask(endpoint: str, text: str) -> str:
    answer = post(endpoint, {"model": "any", "messages": [user(text)]}).raise_for_status()
    return answer.json()["choices"][0]["message"]["content"]


@arm
def twice(task: Task, endpoint: str) -> str:
    ask(endpoint, "Think: " + task.question)
    return ask(endpoint, task.question)


def test_its_rows_are_like_those_of_agents(tmp_path: Path) -> None:
    replies = ["hm", "2"]
    code = ToolLoopAgent(model=ScriptedModel(["```python\nfinal_answer = '2'\n```"]))
    own = arm(twice.function, name="twice", model=ScriptedModel(replies))
    found = Study("s", {"twice": own, "code": code}, TASKS).run(tmp_path, progress=False).rows
    ours, theirs = ({r["task"]: r for r in found if r["arm"] == a} for a in ("code", "twice"))
    assert [theirs[t.id]["resolved"] for t in TASKS] == [ours[t.id]["resolved"] for t in TASKS] == [True, False]
    row = theirs["sum-1"]
    assert (row["calls"], row["stop"], row["error"], row["input_tokens"] > 0) == (2, "answered", None, True)
    trace: Any = read(tmp_path / row["trace"])
    assert (trace.start["task"], trace.start["question"], trace.end["answer"]) == ("sum-1", TASKS[0].question, "2")


def test_what_it_raises_is_a_crash_with_what_it_had_spent(tmp_path: Path) -> None:
    @arm(model=ScriptedModel(["hm"]))
    def broken(task: Task, endpoint: str) -> str:
        raise KeyError(ask(endpoint, task.question))

    with pytest.raises(KeyError) as caught:
        broken.attempt(TASKS[0])
    outcome: Any = caught.value.outcome  # pyright: ignore[reportAttributeAccessIssue]
    assert (outcome.stop, outcome.usage.calls, outcome.steps) == ("failed", 1, 1)


@pytest.mark.parametrize(("limit", "stop"), [({"max_steps": 1}, "calls"), ({"budget": Budget(tokens=10)}, "tokens")])
def test_a_request_past_the_budget_is_refused_and_the_row_says_so(limit: dict[str, Any], stop: str) -> None:
    limited = arm(twice.function, model=ScriptedModel(["hm", "2"]), **limit)
    outcome = limited.attempt(TASKS[0])
    assert (outcome.stop, outcome.answer) == (stop, None)


def test_another_source_is_another_arm() -> None:
    other = arm(lambda task, endpoint: "2", name="twice")
    assert other.settings()["source"] != twice.settings()["source"]
    assert twice.settings() == arm(twice.function).settings()

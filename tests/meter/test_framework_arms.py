"""Agents of four projects as arms of a study, in processes of their own; `make frameworks` installs the projects."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

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
#: The package of each, its module, and a reply that answers in its own way.
REPLIES = {
    "smolagents_code": ("smolagents", "smolagents", "Thought: I add.\n<code>\nfinal_answer(17 + 25)\n</code>"),
    "dspy_rlm": (
        "dspy",
        "dspy",
        "[[ ## reasoning ## ]]\nI add.\n\n[[ ## code ## ]]\n```python\nSUBMIT(answer=str(17 + 25))\n```\n\n"
        "[[ ## completed ## ]]",
    ),
    "rlms_rlm": ("rlms", "rlm", "```repl\nanswer['content'] = 17 + 25\nanswer['ready'] = True\n```"),
    "mini_swe_agent": (
        "mini-swe-agent",
        "minisweagent",
        "THOUGHT: add\n\n```mswea_bash_command\necho COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && echo 42\n```",
    ),
}


@pytest.mark.parametrize("name", REPLIES)
def test_its_answer_is_judged_and_its_calls_are_counted(name: str, tmp_path: Path) -> None:
    package, module, reply = REPLIES[name]
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

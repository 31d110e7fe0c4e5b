"""Our own loops on the task, through our client of the metered address: `ours.py lean|code URL FOLDER TASK`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))  # it is not installed

from rlm_loop import Budget, LeanAgent, ToolLoopAgent
from rlm_loop.models import OpenAICompatibleModel
from rlm_loop.tools.code import CodeTools


def main(loop: str, url: str, folder: str, task: str) -> None:
    model = OpenAICompatibleModel("scripted", url, api_key="any")
    budget = Budget(steps=100, repeated=None)
    if loop == "code":
        done = ToolLoopAgent(model=model, budget=budget, repl="plain").run(task)
    else:
        code = CodeTools(folder)

        def run_command(command: str) -> str:
            """Run a shell command in the repository and return what it prints."""
            made = subprocess.run(command, shell=True, cwd=folder, capture_output=True, text=True, check=False)
            return made.stdout + made.stderr

        code.offer(run_command)
        done = LeanAgent(model=model, budget=budget, tools=code.tools()).run(task)
    print(done.stop, done.answer)


if __name__ == "__main__":
    main(*sys.argv[1:])

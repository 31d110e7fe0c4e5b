"""Our own loops on the task, with the three tools of every framework: `ours.py lean|react|code URL FOLDER TASK`."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2]))  # it is not installed

from frameworks import tools_in

from rlm_loop import Budget, LeanAgent, ReActAgent, Task, ToolLoopAgent
from rlm_loop.models import OpenAICompatibleModel
from rlm_loop.tasks.match import Match
from rlm_loop.tools import tool


def main(loop: str, url: str, folder: str, task: str) -> None:
    common: dict[str, Any] = {
        "model": OpenAICompatibleModel("scripted", url, api_key="any"),
        "budget": Budget(steps=100, repeated=None),
        "tools": [tool(function) for function in tools_in(Path(folder))],
        "repl": "plain",
    }
    loops = {"code": ToolLoopAgent, "lean": LeanAgent, "react": partial(ReActAgent, form="calls")}
    # the loops with calls have these three tools and final_answer, and no REPL
    done = loops[loop](**common).attempt(Task("edit", task, Match("done"), needs_repl=loop == "code"))
    print(done.stop, done.answer)


if __name__ == "__main__":
    main(*sys.argv[1:])

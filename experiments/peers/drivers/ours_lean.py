"""rlm_loop: `LeanAgent` (function calls) through its own client of the same endpoint."""

from __future__ import annotations

from typing import Any

import job as jobs

from rlm_loop import Budget, LeanAgent, Task
from rlm_loop.agents.checking import unscored
from rlm_loop.models import OpenAICompatibleModel


def play(job: jobs.Job, answer_tool: bool = True) -> dict[str, Any]:
    given = {"temperature": None, "seed": None, **jobs.sampling(job)}
    model = OpenAICompatibleModel(job["model"], job["url"], api_key=job["key"], **given)
    repl = job["tool"] == "python"  # its own tool of that name
    agent = LeanAgent(
        model=model,
        budget=Budget(steps=job["steps"]),
        tools=() if repl else (jobs.tool_of(job),),
        presentation="text" if job.get("small") else "native",
        answer_tool=answer_tool,
    )
    done = agent.attempt(Task("job", job["task"], unscored, needs_repl=repl))
    why = {} if done.stop == "answered" else {"error": f"stopped: {done.stop} ({done.reason})"}
    return {"answer": done.answer, "reported_input_tokens": done.usage.input_tokens, **why}


if __name__ == "__main__":
    jobs.main(play, "rlm-loop")

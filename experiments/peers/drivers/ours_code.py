"""rlm_loop: `ToolLoopAgent` (code blocks) through its own client of the same endpoint."""

from __future__ import annotations

from typing import Any

import job as jobs

from rlm_loop import Budget, ToolLoopAgent
from rlm_loop.models import OpenAICompatibleModel


def play(job: jobs.Job) -> dict[str, Any]:
    given = {"temperature": None, "seed": None, **jobs.sampling(job)}
    model = OpenAICompatibleModel(job["model"], job["url"], api_key=job["key"], **given)
    depth = {} if job.get("depth") is None else {"max_depth": job["depth"]}
    tools = tuple(jobs.tools_beside_code(job))
    agent = ToolLoopAgent(model=model, budget=Budget(steps=job["steps"]), tools=tools, **depth)
    done = agent.run(job["task"], context=job.get("context"))
    why = {} if done.stop == "answered" else {"error": f"stopped: {done.stop} ({done.reason})"}
    return {"answer": done.answer, "reported_input_tokens": done.usage.input_tokens, **why}


if __name__ == "__main__":
    jobs.main(play, "rlm-loop")

"""smolagents: `CodeAgent` with its local executor."""

from __future__ import annotations

from typing import Any

import job as jobs
from smolagents import CodeAgent, LogLevel, OpenAIModel, tool


def play(job: jobs.Job) -> dict[str, Any]:
    model = OpenAIModel(job["model"], api_base=job["url"], api_key=job["key"], **jobs.sampling(job))
    tools = [tool(one) for one in jobs.tools_beside_code(job)]
    imports = job.get("imports", [])  # beyond the few modules that its interpreter allows
    agent = CodeAgent(
        tools, model, max_steps=job["steps"], additional_authorized_imports=imports, verbosity_level=LogLevel.OFF
    )
    done = agent.run(job["task"], return_full_result=True)
    used = done.token_usage
    answer = done.output if done.state == "success" else None
    return {"answer": answer, "reported_input_tokens": used.input_tokens if used else None}


if __name__ == "__main__":
    jobs.main(play, "smolagents")

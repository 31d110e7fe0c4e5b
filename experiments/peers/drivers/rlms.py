"""rlms: `RLM` with its default `LocalREPL`; the task is its root prompt and, without a text of its own, its context."""

from __future__ import annotations

from typing import Any

import job as jobs
from rlm import RLM


def play(job: jobs.Job) -> dict[str, Any]:
    tools = {tool.__name__: {"tool": tool, "description": tool.__doc__} for tool in jobs.tools_beside_code(job)}
    loop = RLM(
        backend="openai",
        backend_kwargs={"model_name": job["model"], "base_url": job["url"], "api_key": job["key"]},
        max_iterations=job["steps"],
        custom_tools=tools or None,
        sampling_args=jobs.sampling(job) or None,
        **({"max_depth": job["depth"]} if job.get("depth") else {}),
    )
    done = loop.completion(job.get("context") or job["task"], root_prompt=job["task"])
    usage = done.usage_summary.model_usage_summaries.values()
    return {"answer": done.response, "reported_input_tokens": sum(one.total_input_tokens for one in usage)}


if __name__ == "__main__":
    jobs.main(play, "rlms")

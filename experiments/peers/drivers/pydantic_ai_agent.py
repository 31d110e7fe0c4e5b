"""pydantic-ai: `Agent` over its OpenAI chat model."""

from __future__ import annotations

from typing import Any

import job as jobs
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.usage import UsageLimits


def play(job: jobs.Job) -> dict[str, Any]:
    model = OpenAIChatModel(job["model"], provider=OpenAIProvider(base_url=job["url"], api_key=job["key"]))
    agent = Agent(model, tools=[jobs.tool_of(job)], model_settings=jobs.sampling(job))
    done = agent.run_sync(job["task"], usage_limits=UsageLimits(request_limit=job["steps"]))
    usage = done.usage() if callable(done.usage) else done.usage
    return {"answer": done.output, "reported_input_tokens": usage.input_tokens}


if __name__ == "__main__":
    jobs.main(play, "pydantic-ai-slim")

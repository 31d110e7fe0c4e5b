"""The OpenAI Agents SDK: `Agent` and `Runner` over the chat API."""

from __future__ import annotations

from typing import Any

import job as jobs
from agents import Agent, ModelSettings, OpenAIChatCompletionsModel, Runner, function_tool, set_tracing_disabled
from openai import AsyncOpenAI


def play(job: jobs.Job) -> dict[str, Any]:
    set_tracing_disabled(True)
    given = jobs.sampling(job)
    extra = {"seed": given.pop("seed")} if "seed" in given else None
    model = OpenAIChatCompletionsModel(job["model"], AsyncOpenAI(base_url=job["url"], api_key=job["key"]))
    settings = ModelSettings(**given, extra_body=extra)
    agent = Agent("agent", tools=[function_tool(jobs.tool_of(job))], model=model, model_settings=settings)
    done = Runner.run_sync(agent, job["task"], max_turns=job["steps"])
    return {"answer": done.final_output, "reported_input_tokens": done.context_wrapper.usage.input_tokens}


if __name__ == "__main__":
    jobs.main(play, "openai-agents")

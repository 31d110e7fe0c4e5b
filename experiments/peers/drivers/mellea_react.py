"""mellea: the framework `react` over its OpenAI backend."""

from __future__ import annotations

import asyncio
from typing import Any

import job as jobs
from mellea.backends import ModelOption
from mellea.backends.openai import OpenAIBackend
from mellea.backends.tools import MelleaTool
from mellea.stdlib.context import ChatContext
from mellea.stdlib.frameworks.react import react


def play(job: jobs.Job) -> dict[str, Any]:
    names = {"temperature": ModelOption.TEMPERATURE, "seed": ModelOption.SEED, "max_tokens": ModelOption.MAX_NEW_TOKENS}
    options = {names[key]: value for key, value in jobs.sampling(job).items()}
    backend = OpenAIBackend(job["model"], base_url=job["url"], api_key=job["key"], model_options=options)
    tool = MelleaTool.from_callable(jobs.tool_of(job))
    step, _context = asyncio.run(
        react(
            goal=job["task"],
            context=ChatContext(),
            backend=backend,
            tools=[tool],
            loop_budget=job["steps"],
            model_options=options,
        )
    )
    return {"answer": step.value}


if __name__ == "__main__":
    jobs.main(play, "mellea")

"""dspy: `ReAct`."""

from __future__ import annotations

from typing import Any

import dspy
import job as jobs


def play(job: jobs.Job) -> dict[str, Any]:
    lm = dspy.LM(f"openai/{job['model']}", api_base=job["url"], api_key=job["key"], cache=False, **jobs.sampling(job))
    loop = dspy.ReAct("question -> answer: str", tools=[jobs.tool_of(job)], max_iters=job["steps"])
    with dspy.context(lm=lm, track_usage=True):
        done = loop(question=job["task"])
    used = (done.get_lm_usage() or {}).values()
    return {"answer": done.answer, "reported_input_tokens": sum(one.get("prompt_tokens") or 0 for one in used) or None}


if __name__ == "__main__":
    jobs.main(play, "dspy")

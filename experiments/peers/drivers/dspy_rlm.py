"""dspy: `RLM` with its `LocalInterpreter` (the default one wants to download Deno modules at its first start)."""

from __future__ import annotations

from typing import Any

import dspy
import job as jobs
from dspy.primitives.local_interpreter import LocalInterpreter


def play(job: jobs.Job) -> dict[str, Any]:
    lm = dspy.LM(f"openai/{job['model']}", api_base=job["url"], api_key=job["key"], cache=False, **jobs.sampling(job))
    given = {"context": job["context"]} if job.get("context") else {}
    loop = dspy.RLM(
        f"{'context, ' if given else ''}question -> answer: str",
        max_iters=job["steps"],
        tools=jobs.tools_beside_code(job),
        interpreter_factory=LocalInterpreter,
    )
    with dspy.context(lm=lm, track_usage=True):
        done = loop(question=job["task"], **given)
    used = (done.get_lm_usage() or {}).values()
    return {"answer": done.answer, "reported_input_tokens": sum(one.get("prompt_tokens") or 0 for one in used) or None}


if __name__ == "__main__":
    jobs.main(play, "dspy")

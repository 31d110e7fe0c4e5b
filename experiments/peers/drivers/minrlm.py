"""minrlm: `RLM` as the package exports it; a text is its context, which its code reads as `input_0`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.remove(str(Path(__file__).resolve().parent))  # this file has the package's name
from minrlm import RLM

sys.path.append(str(Path(__file__).resolve().parent))
import job as jobs


def play(job: jobs.Job) -> dict[str, Any]:
    sampling = jobs.sampling(job)
    kept = {"temperature": sampling["temperature"]} if "temperature" in sampling else {}
    loop = RLM(job["model"], base_url=job["url"], api_key=job["key"], max_iterations=job["steps"], **kept)
    done = loop.completion(job["task"], job.get("context") or "")
    return {"answer": done.response or None, "reported_input_tokens": getattr(done, "input_tokens", None)}


if __name__ == "__main__":
    jobs.main(play, "minrlm")

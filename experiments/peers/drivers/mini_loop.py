"""mini-swe-agent: its `DefaultAgent` with the settings that it ships, in the current folder."""

from __future__ import annotations

from typing import Any

import job as jobs
import yaml
from minisweagent.agents.default import DefaultAgent
from minisweagent.config import builtin_config_dir
from minisweagent.environments.local import LocalEnvironment


def play(job: jobs.Job, model_class: Any, settings: str) -> dict[str, Any]:
    jobs.record(job)
    config = yaml.safe_load((builtin_config_dir / settings).read_text("utf-8"))
    given = {"api_base": job["url"], "api_key": job["key"], **jobs.sampling(job)}
    model = config.get("model", {})
    model["model_kwargs"] = {**model.get("model_kwargs", {}), **given}
    limits = {"step_limit": job["steps"], "cost_limit": 0.0}
    agent = DefaultAgent(
        model_class(**{**model, "model_name": f"openai/{job['model']}", "cost_tracking": "ignore_errors"}),
        LocalEnvironment(**config.get("environment", {})),
        **{**{k: v for k, v in config["agent"].items() if k in ("system_template", "instance_template")}, **limits},
    )
    done = agent.run(job["task"])
    status, answer = (done.get("exit_status"), done.get("submission")) if isinstance(done, dict) else done
    if status != "Submitted":
        return {"answer": None, "error": f"stopped: {status}"}
    return {"answer": answer}

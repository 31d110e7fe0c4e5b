"""A loop of ours as a harness of verifiers, and a suite of ours as its tasks: rollouts for training.

    pip install -e ".[suites,verifiers]"
    PYTHONPATH=benchmarks vf-eval rlm_rollouts --model MODEL --client.base-url ADDRESS --client.api-key-var KEY \\
        --env.agent.runtime.type subprocess --env.taskset.suite tables --no-push -n 2

The loop runs in the process of verifiers.  Every request goes through the address that verifiers gives it, so that
verifiers records messages and usage, and, with its client for training, ids and log-probabilities.  Cells run in a REPL
of ours, as isolated as `auto` makes them here.  The reward is the suite's score.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import verifiers.v1 as vf

from rlm_loop import LeanAgent, ReActAgent, ToolLoopAgent
from rlm_loop.models.openai_compatible import OpenAICompatibleModel
from rlm_loop.tasks import get_suite
from rlm_loop.tasks.attempt import Attempt

__all__ = ["LoopHarness", "SuiteTaskset"]

AGENTS = {"code": ToolLoopAgent, "calls": LeanAgent, "react": ReActAgent}


class SuiteData(vf.TaskData):
    suite: str = ""


class SuiteTask(vf.Task[SuiteData]):
    @vf.reward
    async def resolved(self, trace: vf.Trace) -> float:
        """The suite's score of the attempt, from 0 to 1."""
        return float(trace.info["rlm_loop"]["value"])


class SuiteConfig(vf.TasksetConfig):
    suite: str = "tables"
    """Name of a suite, as `rlm-loop study` takes it."""


class SuiteTaskset(vf.Taskset[SuiteTask, SuiteConfig]):
    def load(self) -> Iterable[SuiteTask]:
        name = self.config.suite
        for task in get_suite(name):
            yield SuiteTask(SuiteData(id=task.id, prompt=task.question, suite=name), self.config.task)


class LoopConfig(vf.HarnessConfig):
    loop: str = "code"
    """`code`, `calls` or `react`."""
    max_steps: int = 12
    max_depth: int = 1


class LoopHarness(vf.Harness[LoopConfig]):
    NEEDS_CONTAINER = False

    async def launch(
        self,
        ctx: vf.ModelContext,
        trace: vf.Trace,
        runtime: vf.Runtime,
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],
        data: SuiteData,
    ) -> vf.ProgramResult:
        settings: dict[str, Any] = {"temperature": ctx.sampling.temperature, "max_tokens": ctx.sampling.max_tokens}
        model = OpenAICompatibleModel(ctx.model, endpoint, api_key=secret, seed=None, **settings)
        config = self.config
        agent = AGENTS[config.loop](model=model, max_steps=config.max_steps, max_depth=config.max_depth)
        task = next(task for task in get_suite(data.suite) if task.id == data.id)
        outcome = await asyncio.to_thread(agent.attempt, task)
        score = task.judge(Attempt.of(outcome))
        trace.info["rlm_loop"] = {"stop": str(outcome.stop), "value": score.value, "reason": score.reason}
        return vf.ProgramResult(0, str(outcome.answer), "")

"""Writes the job folders of Harbor in `files/` with Harbor's own models: `python write_harbor.py FOLDER` (Python 3.12).

Two jobs of one agent with two models, three tasks each, `sort-lines` twice.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from harbor.models.agent.context import AgentContext
from harbor.models.task.id import LocalTaskId
from harbor.models.trajectories.agent import Agent
from harbor.models.trajectories.observation import Observation
from harbor.models.trajectories.observation_result import ObservationResult
from harbor.models.trajectories.step import Step
from harbor.models.trajectories.tool_call import ToolCall
from harbor.models.trajectories.trajectory import Trajectory
from harbor.models.trial.config import TaskConfig, TrialConfig
from harbor.models.trial.paths import TrialPaths
from harbor.models.trial.result import AgentInfo, ExceptionInfo, ModelInfo, TimingInfo, TrialResult
from harbor.models.verifier.result import VerifierResult

BEGAN = datetime(2030, 1, 1, tzinfo=UTC)
#: Task, reward (None: none), exception, prompt tokens, of the trials of a job.
JOBS = {
    "small": [("sort-lines", 0.0, "", 900), ("sort-lines", 1.0, "", 950), ("fix-build", 0.0, "AgentTimeoutError", 4000),
              ("find-bug", None, "EnvironmentStartTimeoutError", None)],
    "large": [("sort-lines", 1.0, "", 500), ("sort-lines", 1.0, "", 520), ("fix-build", 1.0, "", 1500),
              ("find-bug", 1.0, "", 700)],
}  # fmt: skip


def write(
    job: Path, number: int, model: str, task: str, reward: float | None, failure: str, tokens: int | None
) -> None:
    trial = TrialPaths(job / f"{task}__{number}")
    trial.mkdir()
    trial.log_path.write_text("", encoding="utf-8")
    at = BEGAN + timedelta(minutes=number)
    ended = ExceptionInfo(
        exception_type=failure, exception_message="it took too long", exception_traceback="", occurred_at=at
    )
    result = TrialResult(
        task_name=task,
        trial_name=trial.trial_dir.name,
        trial_uri=f"file://{trial.trial_dir.name}",
        task_id=LocalTaskId(path=Path(task)),
        source="made-up",
        task_checksum="0" * 8,
        config=TrialConfig(task=TaskConfig(path=Path(task))),
        agent_info=AgentInfo(name="terminus", version="2", model_info=ModelInfo(name=model, provider="none")),
        agent_result=AgentContext(n_input_tokens=tokens, n_cache_tokens=0, n_output_tokens=60, cost_usd=0.01)
        if tokens
        else None,
        verifier_result=None if reward is None else VerifierResult(rewards={"reward": reward}),
        exception_info=ended if failure else None,
        started_at=at,
        agent_execution=TimingInfo(started_at=at, finished_at=at + timedelta(seconds=20 + number)),
    )
    trial.result_path.write_text(result.model_dump_json(indent=1), encoding="utf-8")
    steps = [
        Step(step_id=1, source="user", message=f"Do {task}."),
        Step(
            step_id=2,
            source="agent",
            message="I look first.",
            tool_calls=[ToolCall(tool_call_id="1", function_name="bash", arguments={"command": "ls"})],
            observation=Observation(results=[ObservationResult(source_call_id="1", content="notes.txt")]),
        ),
    ]
    about = Agent(name="terminus", version="2", model_name=model)
    told = Trajectory(session_id=trial.trial_dir.name, agent=about, steps=steps)
    (trial.agent_dir / "trajectory.json").write_text(
        told.model_dump_json(indent=1, exclude_none=True), encoding="utf-8"
    )


if __name__ == "__main__":
    for name, trials in JOBS.items():
        for number, trial in enumerate(trials):
            write(Path(sys.argv[1]) / name, number, name, *trial)

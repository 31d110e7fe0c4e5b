"""Inspect's logs: golden runs out and in again, a log that inspect_ai itself makes, and bad input in one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rlm_loop.cli.main import main
from rlm_loop.formats import conversation_of, export_study, export_trace
from rlm_loop.messages import Usage
from rlm_loop.outcome import Score
from rlm_loop.study import load_study
from rlm_loop.traces import read

pytest.importorskip("inspect_ai")

ROOT = Path(__file__).parents[2]
GOLDEN = sorted((ROOT / "tests/golden").glob("*.jsonl"))


def opened(path: Path) -> Any:
    """A log as Inspect's own reader has it."""
    from inspect_ai.log import read_eval_log

    return read_eval_log(str(path), resolve_attachments=True)


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_a_golden_run_is_read_by_inspect_itself(path: Path, tmp_path: Path) -> None:
    conversation = conversation_of(read(path), Score(True, 1.0, "right"))
    spent = sum((call.reply.usage for call in conversation.calls if call.reply and call.reply.usage), Usage.NOTHING)
    out = tmp_path / "run.eval"
    export_trace(conversation, "inspect", out)
    [sample] = opened(out).samples
    assert sample.scores["resolved"].value == "C"
    used = sample.model_usage["scripted"]
    counted = (used.input_tokens + (used.input_tokens_cache_read or 0), used.output_tokens, used.total_tokens)
    assert counted == (spent.input_tokens, spent.output_tokens, spent.total_tokens)
    answers = [call for call in conversation.root.calls if call.reply is not None and call.purpose == "agent"]
    if answers[-1] is conversation.root.calls[-1]:
        assert sample.messages[-1].text == answers[-1].reply.text  # pyright: ignore[reportOptionalMemberAccess]


def test_the_command_and_the_tokens_by_cause(tmp_path: Path) -> None:
    trace, out = ROOT / "tests/golden/tool_loop_sub_agents.jsonl", tmp_path / "run.eval"
    assert main(["trace", "export", str(trace), "--to", "inspect", "--out", str(out)]) == 0
    [sample] = opened(out).samples
    causes = sample.metadata["rlm_loop"]["input_tokens_by_cause"]
    used = sample.model_usage["scripted"]
    assert sum(causes.values()) == used.input_tokens + (used.input_tokens_cache_read or 0)


def test_a_study_is_a_log_for_each_arm_and_suite(tmp_path: Path) -> None:
    study = load_study(ROOT / "experiments/recovery/results")
    logs = [opened(path) for path in export_study(study, "inspect", tmp_path)]
    assert sum(len(log.samples) for log in logs) == len(study.rows)
    for log in logs:
        arm, suite = log.eval.task_args["arm"], log.eval.task
        rows = [row for row in study.rows if (row["arm"], row["suite"]) == (arm, suite)]
        [score] = log.results.scores
        assert score.metrics["accuracy"].value == sum(row["resolved"] for row in rows) / len(rows)
        tokens = [usage.total_tokens for usage in log.stats.model_usage.values()]
        assert sum(tokens) == sum(row["input_tokens"] + row["output_tokens"] for row in rows)
    assert len({log.eval.task_id for log in logs}) == len(logs)  # else the viewer takes them for retries

"""ATIF: golden runs out and in again, documents of others, and bad input in one line."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from rlm_loop.accounting.tree import tree_of
from rlm_loop.actions import CallTool, Observation
from rlm_loop.agents.past_run import ledger_of, outcome_of
from rlm_loop.cli.main import main
from rlm_loop.formats.traces import FormatError, conversation_of, export_study, export_trace, import_trace
from rlm_loop.formats.traces.as_trace import record_of
from rlm_loop.formats.traces.calls import OURS
from rlm_loop.messages import ToolCall, Usage
from rlm_loop.outcome import Score
from rlm_loop.report.run import run_page
from rlm_loop.study import load_study
from rlm_loop.traces.reader import read

ROOT = Path(__file__).parents[2]
GOLDEN = sorted((ROOT / "tests/golden").glob("*.jsonl"))


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_a_golden_run_comes_back_the_same(path: Path, tmp_path: Path) -> None:
    atif = pytest.importorskip("atif")
    conversation = conversation_of(read(path), Score(False, 0.25, "a reason"))
    out = export_trace(conversation, "atif", tmp_path / "run.json")
    document = json.loads(out.read_text(encoding="utf-8"))
    found = atif.Trajectory.model_validate(document)
    assert import_trace(out) == (conversation,)
    assert ledger_of(record_of(import_trace(out)[0])).rows == ledger_of(read(path)).rows
    sums = [step.metrics.prompt_tokens for t in every(found) for step in t.steps if step.metrics]
    assert sum(sums) == conversation.usage.input_tokens
    causes = [
        sum(step.metrics.extra[OURS]["input_tokens_by_cause"].values())
        for t in every(found)
        for step in t.steps
        if step.metrics
    ]
    assert causes == sums


def every(trajectory: Any) -> list[Any]:
    return [trajectory, *(t for below in trajectory.subagent_trajectories or () for t in every(below))]


def test_a_turn_is_a_step_with_its_calls_and_results(tmp_path: Path) -> None:
    out = export_trace(ROOT / "tests/golden/tool_loop_sub_agents.jsonl", "atif", tmp_path / "run.json")
    steps = json.loads(out.read_text(encoding="utf-8"))["steps"]
    assert [step["source"] for step in steps] == ["system", "user", "agent", "agent", "agent", "agent"]
    turn = steps[2]
    assert turn["tool_calls"][0]["function_name"] == "python"
    assert "llm_query" in turn["tool_calls"][0]["arguments"]["code"]
    [result] = turn["observation"]["results"]
    assert result["source_call_id"] == turn["tool_calls"][0]["tool_call_id"]
    assert result["subagent_trajectory_ref"][0]["trajectory_id"].endswith(".0.1")


#: As another harness writes it: reasoning, a call with its result, context that was copied, a sub-agent, no metrics.
THEIRS: dict[str, Any] = {
    "schema_version": "ATIF-v1.7",
    "session_id": "s1",
    "agent": {
        "name": "theirs",
        "version": "2.0",
        "model_name": "m",
        "tool_definitions": [{"type": "function", "function": {"name": "shell"}}],
    },
    "steps": [
        {"step_id": 1, "source": "system", "message": "Be brief."},
        {"step_id": 2, "source": "user", "message": "How many files?"},
        {
            "step_id": 3,
            "source": "agent",
            "timestamp": "2026-01-02T03:04:05Z",
            "message": "I look.",
            "reasoning_content": "ls will do",
            "tool_calls": [{"tool_call_id": "c1", "function_name": "shell", "arguments": {"cmd": "ls"}}],
            "observation": {"results": [{"source_call_id": "c1", "content": "a b"}]},
            "metrics": {"prompt_tokens": 40, "completion_tokens": 8, "cached_tokens": 30, "cost_usd": 0.01},
        },
        {"step_id": 4, "source": "agent", "message": "So far: two.", "llm_call_count": 0, "is_copied_context": True},
        {
            "step_id": 5,
            "source": "agent",
            "message": [{"type": "text", "text": "Two."}],
            "observation": {"results": [{"content": "done", "subagent_trajectory_ref": [{"trajectory_id": "sub"}]}]},
        },
    ],
    "subagent_trajectories": [
        {
            "schema_version": "ATIF-v1.7",
            "trajectory_id": "sub",
            "agent": {"name": "helper", "version": "1", "model_name": "small"},
            "steps": [
                {"step_id": 1, "source": "user", "message": "Check."},
                {"step_id": 2, "source": "agent", "message": "Fine.", "metrics": {"prompt_tokens": 5}},
            ],
        }
    ],
}


def saved(document: Any, folder: Path) -> Path:
    path = folder / "theirs.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def test_a_document_of_others_is_a_run(tmp_path: Path) -> None:
    pytest.importorskip("atif")
    out = tmp_path / "run.jsonl"
    [found] = import_trace(saved(THEIRS, tmp_path), out=out)
    assert (found.agent, found.model, found.question) == ("theirs", "m", "How many files?")
    first, second = found.root.steps
    assert first.actions == (CallTool("shell", '{"cmd": "ls"}', "c1"),)
    assert first.observations == (Observation("a b"),)
    assert first.usage == Usage(40, 8, 30, 1, 0.01)
    assert first.reply is not None
    assert first.reply.tool_calls == (ToolCall("c1", "shell", '{"cmd": "ls"}'),)
    assert [m.role for m in second.messages] == ["system", "user", "assistant", "tool", "assistant"]
    assert second.usage is None
    record = read(out)
    assert [call.usage.input_tokens for call in ledger_of(record).calls] == [40, None, 5]
    assert sum(row.tokens for row in ledger_of(record).rows) == 45  # shared out by length, since nobody counted
    assert [node.node for node in tree_of(record).nodes] == ["0", "0.1"]
    assert (len(outcome_of(record).turns), outcome_of(record).answer) == (2, "Two.")
    assert "How many files?" in run_page(str(out))


def changed(where: str, value: Any) -> dict[str, Any]:
    document = copy.deepcopy(THEIRS)
    *path, last = [int(part) if part.isdigit() else part for part in where.split(".")]
    part: Any = document
    for name in path:
        part = part[name]
    part[last] = value
    return document


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ([], "has schema_version None; read are ATIF-v1.0 to ATIF-v1.8"),
        (changed("schema_version", "ATIF-v2.0"), "has schema_version 'ATIF-v2.0'; read are ATIF-v1.0 to ATIF-v1.8"),
        (changed("steps.2.message", None), "steps.2.message"),
        (changed("steps.2.step_id", 7), "steps[2].step_id=7 is not sequential; expected 3."),
        (changed("steps.2.observation.results.0.source_call_id", "c9"), "does not match any tool_call in step 3"),
        (changed("steps.2.extra", {OURS: {"request": {}}}), f"what is under {OURS} is damaged (KeyError: 'kept')"),
    ],
)
def test_bad_input_is_said_in_one_line(document: Any, said: str, tmp_path: Path) -> None:
    pytest.importorskip("atif")
    path = saved(document, tmp_path)
    with pytest.raises(FormatError) as caught:
        import_trace(path)
    assert said in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_truncated_document_says_where(tmp_path: Path) -> None:
    pytest.importorskip("atif")
    path = saved(THEIRS, tmp_path)
    path.write_text(path.read_text(encoding="utf-8")[:200], encoding="utf-8")
    with pytest.raises(FormatError, match=r"is no JSON document: .*column 20\d"):
        import_trace(path)
    with pytest.raises(FormatError, match=r"cannot read .*: No such file"):
        import_trace(tmp_path / "none.json")


def test_a_study_is_a_folder_of_documents_with_scores(tmp_path: Path) -> None:
    study = load_study(ROOT / "experiments/token_overhead/results")
    written = export_study(study, "atif", tmp_path)
    assert len(written) == len(study.rows)
    ours = json.loads(written[0].read_text(encoding="utf-8"))["extra"][OURS]
    assert ours["score"]["resolved"] is study.rows[0]["resolved"]
    assert ours["about"]["episode"] == {
        name: study.rows[0][name] for name in ("study", "arm", "model", "suite", "task", "seed")
    }


def test_the_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("atif")
    trace, out, back = ROOT / "tests/golden/lean_native.jsonl", tmp_path / "a/run.json", tmp_path / "back.jsonl"
    assert main(["trace", "export", str(trace), "--to", "atif", "--out", str(out)]) == 0
    assert main(["trace", "import", str(out), "--out", str(back)]) == 0
    assert "question: calls with scripted, 5 calls, 1,413 tokens in, " in capsys.readouterr().out
    assert conversation_of(read(back)).agents == conversation_of(read(trace)).agents
    study = ROOT / "experiments/token_overhead/results"
    assert main(["study", "export", str(study), "--to", "atif", "--out", str(tmp_path / "s")]) == 0
    assert capsys.readouterr().out == f"168 files in {tmp_path / 's'}\n"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("trace export {trace} --to nothing --out x.json", "there is no format 'nothing'; there are atif, inspect, hf"),
        ("trace export {trace} --to atif --out {trace}", "is the trace itself; name another file"),
        ("trace import {trace} --out x.jsonl", "is no JSON document"),
        ("trace import {trace} --out {trace}", "is the file that is read; name another file"),
    ],
)
def test_misuse_is_one_line(line: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = tmp_path / "run.jsonl"
    trace.write_bytes((ROOT / "tests/golden/direct.jsonl").read_bytes())
    assert main(line.format(trace=trace).split()) == 2
    err = capsys.readouterr().err
    assert said in err
    assert err.count("\n") == 1

"""Inspect's logs: golden runs out and in again, a log that inspect_ai itself makes, and bad input in one line."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from rlm_loop.actions import CallTool, Observation
from rlm_loop.agents.past_run import ledger_of, outcome_of
from rlm_loop.cli.main import main
from rlm_loop.formats.traces import FormatError, conversation_of, export_study, export_trace, import_trace
from rlm_loop.formats.traces.as_trace import record_of
from rlm_loop.messages import ToolCall, Usage
from rlm_loop.outcome import Score
from rlm_loop.report.run import run_page
from rlm_loop.study import load_study
from rlm_loop.traces.reader import read

pytest.importorskip("inspect_ai")

ROOT = Path(__file__).parents[2]
GOLDEN = sorted((ROOT / "tests/golden").glob("*.jsonl"))


def opened(path: Path) -> Any:
    """A log as Inspect's own reader has it."""
    from inspect_ai.log import read_eval_log

    return read_eval_log(str(path), resolve_attachments=True)


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_a_golden_run_comes_back_the_same(path: Path, tmp_path: Path) -> None:
    conversation = conversation_of(read(path), Score(True, 1.0, "right"))
    out = export_trace(conversation, "inspect", tmp_path / "run.eval")
    assert import_trace(out) == (conversation,)
    assert ledger_of(record_of(import_trace(out)[0])).rows == ledger_of(read(path)).rows
    [sample] = opened(out).samples
    assert sample.scores["resolved"].value == "C"
    used = sample.model_usage["scripted"]
    assert used.input_tokens + (used.input_tokens_cache_read or 0) == conversation.usage.input_tokens
    assert used.output_tokens == conversation.usage.output_tokens
    assert used.total_tokens == conversation.usage.total_tokens
    answers = [step for step in conversation.root.steps if step.reply is not None and step.purpose == "agent"]
    if answers[-1] is conversation.root.steps[-1]:
        assert sample.messages[-1].text == answers[-1].reply.text  # pyright: ignore[reportOptionalMemberAccess]


def test_the_transcript_has_agents_calls_and_tools(tmp_path: Path) -> None:
    out = export_trace(ROOT / "tests/golden/tool_loop_sub_agents.jsonl", "inspect", tmp_path / "run.eval")
    [sample] = opened(out).samples
    kinds = [event.event for event in sample.events]
    assert [kinds.count(kind) for kind in ("model", "tool", "span_begin", "span_end")] == [10, 9, 6, 6]
    [first, *_] = [event for event in sample.events if event.event == "tool" and event.span_id.endswith(".0")]
    assert first.function == "python"
    assert "llm_query" in first.arguments["code"]
    model = next(event for event in sample.events if event.event == "model")
    assert sum(model.metadata["rlm_loop"]["input_tokens_by_cause"].values()) == 220


def test_a_study_is_a_log_for_each_arm_and_suite(tmp_path: Path) -> None:
    study = load_study(ROOT / "experiments/token_overhead/results")
    written = export_study(study, "inspect", tmp_path)
    logs = [opened(path) for path in written]
    assert sum(len(log.samples) for log in logs) == len(study.rows)
    for log in logs:
        arm, suite = log.eval.task_args["arm"], log.eval.task
        rows = [row for row in study.rows if (row["arm"], row["suite"]) == (arm, suite)]
        [score] = log.results.scores
        assert score.metrics["accuracy"].value == sum(row["resolved"] for row in rows) / len(rows)
        tokens = [usage.total_tokens for usage in log.stats.model_usage.values()]
        assert sum(tokens) == sum(row["input_tokens"] + row["output_tokens"] for row in rows)
    assert len({log.eval.task_id for log in logs}) == len(logs)  # else the viewer takes them for retries


#: An agent of Inspect's own that calls a tool, then answers.  In a process of its own: it leaves streams unclosed.
SCRIPT = """
import sys
from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import includes
from inspect_ai.solver import generate, use_tools
from inspect_ai.tool import tool

@tool
def add():
    async def execute(x: int, y: int) -> str:
        '''Add two numbers.

        Args:
            x: The first.
            y: The second.
        '''
        return str(x + y)
    return execute

outputs = [
    ModelOutput.for_tool_call("mockllm/model", "add", {"x": 1, "y": 2}),
    ModelOutput.from_content("mockllm/model", "It is 3."),
]
for output in outputs:
    output.usage = ModelUsage(input_tokens=10, output_tokens=5, total_tokens=45, input_tokens_cache_read=30)
samples = [Sample(id="sum", input="What is 1 + 2?", target="3")]
task = Task(dataset=samples, solver=[use_tools(add()), generate()], scorer=includes())
[log] = eval(task, model=get_model("mockllm/model", custom_outputs=outputs), log_dir=sys.argv[1], display="none")
assert log.status == "success", log.error
"""


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log that inspect_ai makes."""
    folder = tmp_path_factory.mktemp("logs")
    done = subprocess.run([sys.executable, "-c", SCRIPT, str(folder)], capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stderr
    return next(folder.glob("*.eval"))


def test_a_log_of_inspect_itself_is_a_run(theirs: Path, tmp_path: Path) -> None:
    out = tmp_path / "run.jsonl"
    [found] = import_trace(theirs, out=out)
    [sample] = opened(theirs).samples
    assert (found.task, found.question, found.model) == ("sum", "What is 1 + 2?", "mockllm/model")
    first, second = found.root.steps
    assert isinstance(first.actions[0], CallTool)
    assert (first.actions[0].name, json.loads(first.actions[0].arguments)) == ("add", {"x": 1, "y": 2})
    assert first.observations[0].text == "3"
    assert [m.role for m in second.messages] == ["user", "assistant", "tool"]
    assert second.messages[-1].text == "3"
    assert found.score is not None
    assert (found.score.resolved, found.score.value) == (True, 1.0)
    assert found.answer == "It is 3."
    used = sample.model_usage["mockllm/model"]
    assert (used.input_tokens, used.input_tokens_cache_read, used.output_tokens) == (20, 60, 10)
    assert found.usage == Usage(80, 10, 60, 2, None, None, None)
    record = read(out)
    assert ledger_of(record).usage.total_tokens == used.total_tokens
    assert len(outcome_of(record).turns) == 2
    assert "What is 1 + 2?" in run_page(str(out))


def changed(theirs: Path, path: Path, change: Any) -> Path:
    from inspect_ai.log import write_eval_log

    log = opened(theirs)
    change(log)
    write_eval_log(log, str(path))
    return path


def test_a_log_without_events_has_the_messages(theirs: Path, tmp_path: Path) -> None:
    def without(log: Any) -> None:
        log.samples[0].events = []

    [found] = import_trace(changed(theirs, tmp_path / "run.eval", without))
    first, second = found.root.steps
    assert first.observations == (Observation("3"),)
    assert first.reply is not None
    assert [(call.name, call.arguments) for call in first.reply.tool_calls] == [("add", '{"x": 1, "y": 2}')]
    assert isinstance(first.reply.tool_calls[0], ToolCall)
    assert second.usage is None


def test_scores_are_read_as_they_are(theirs: Path, tmp_path: Path) -> None:
    from inspect_ai.scorer import Score as Theirs

    values: list[tuple[Any, Any]] = [
        ("C", (True, 1.0)),
        ("I", (False, 0.0)),
        (1, (True, 1.0)),
        (0.25, (False, 0.25)),
        (True, (True, 1.0)),
        ([1, 2], (None, 0.0)),
        (float("nan"), (None, 0.0)),
    ]
    for value, expected in values:

        def scored(log: Any, value: Any = value) -> None:
            log.samples[0].scores = {"s": Theirs(value=value)}

        [found] = import_trace(changed(theirs, tmp_path / "run.eval", scored))
        assert found.score is not None
        assert (found.score.resolved, found.score.value) == expected


def test_two_epochs_are_two_runs(theirs: Path, tmp_path: Path) -> None:
    def twice(log: Any) -> None:
        again = log.samples[0].model_copy(update={"epoch": 2, "uuid": "another"})
        log.samples, log.eval.config.epochs = [log.samples[0], again], 2

    out = tmp_path / "runs.jsonl"
    found = import_trace(changed(theirs, tmp_path / "two.eval", twice), out=out)
    assert [c.about["episode"]["seed"] for c in found] == [1, 2]
    assert [conversation_of(read(out, run=n)).episode["seed"] for n in range(2)] == [1, 2]


def test_bad_input_is_said_in_one_line(theirs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = theirs.read_bytes()
    cut, empty, later = tmp_path / "cut.eval", tmp_path / "empty.eval", tmp_path / "later.json"
    cut.write_bytes(whole[: len(whole) // 2])
    with zipfile.ZipFile(empty, "w") as archive:
        archive.writestr("nothing.txt", "")
    later.write_text(json.dumps({"version": 99, "eval": {}, "samples": []}), encoding="utf-8")
    headers = changed(theirs, tmp_path / "headers.eval", lambda log: setattr(log, "samples", []))
    for path, said in (
        (cut, "cannot be read as a log of Inspect ("),
        (empty, "cannot be read as a log of Inspect ("),
        (later, "cannot be read as a log of Inspect ("),
        (headers, "has no samples"),
    ):
        with pytest.raises(FormatError) as caught:
            import_trace(path)
        assert said in str(caught.value)
        assert str(path) in str(caught.value)
        assert main(["trace", "import", str(path), "--out", str(tmp_path / "no.jsonl")]) == 2
        assert capsys.readouterr().err.count("\n") == 1
        assert not (tmp_path / "no.jsonl").exists()


def test_the_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace, out, back = ROOT / "tests/golden/lean_native.jsonl", tmp_path / "run.eval", tmp_path / "back.jsonl"
    assert main(["trace", "export", str(trace), "--to", "inspect", "--out", str(out)]) == 0
    assert main(["trace", "import", str(out), "--out", str(back)]) == 0
    assert "question: calls with scripted, 5 calls, 1,413 tokens in, " in capsys.readouterr().out
    assert conversation_of(read(back)).agents == conversation_of(read(trace)).agents

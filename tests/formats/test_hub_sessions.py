"""Session traces for the Hugging Face Hub, and a study as a dataset with a card."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rlm_loop.cli.main import main
from rlm_loop.formats.traces import conversation_of, export_study, export_trace
from rlm_loop.outcome import Score
from rlm_loop.study import load_study
from rlm_loop.traces.reader import read

ROOT = Path(__file__).parents[2]
GOLDEN = sorted((ROOT / "tests/golden").glob("*.jsonl"))


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_a_session_is_a_header_and_every_message_once(path: Path, tmp_path: Path) -> None:
    conversation = conversation_of(read(path), Score(None, 0.0, "nobody judged it"))
    header, *messages = lines(export_trace(conversation, "hf", tmp_path / "session.jsonl"))
    assert (header["type"], header["harness"], header["id"]) == ("session", "rlm-loop", conversation.id)
    assert header["tokens"]["input"] == sum(header["input_tokens_by_cause"].values()) == conversation.usage.input_tokens
    assert {line["type"] for line in messages} == {"message"}
    told = [line["message"] for line in messages]
    steps = [step for step in conversation.root.steps if step.purpose == "agent"]
    sent = list(dict.fromkeys(message for step in steps for message in step.messages))
    assert [(m["role"], m["content"]) for m in told[: len(sent)]] == [(m.role, m.text) for m in sent]
    assert len(told) == len(sent) + (steps[-1].reply is not None)
    called = {call["id"] for message in told for call in message.get("toolCalls", ())}
    assert {message["toolCallId"] for message in told if "toolCallId" in message} <= called


def test_a_study_is_a_dataset_with_a_card(tmp_path: Path) -> None:
    study = load_study(ROOT / "experiments/token_overhead/results")
    card, rows, *sessions = export_study(study, "hf", tmp_path)
    assert lines(rows) == [dict(row) for row in study.rows]
    assert len(sessions) == len(study.rows)
    assert all(path.is_relative_to(tmp_path / "sessions") for path in sessions)
    hub = pytest.importorskip("huggingface_hub")
    found = hub.DatasetCard.load(card)
    assert found.data.pretty_name == study.name
    assert found.data.size_categories == ["n<1K"]
    for config in found.data.configs:
        assert list(tmp_path.glob(config["data_files"])), config
    [code] = [arm for arm in study.summary() if arm.arm == "lean"]
    assert f"| lean | {code.n} | {code.resolved} of {code.judged} | {code.input_tokens:,.0f} |" in found.text


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = ROOT / "experiments/token_overhead/results"
    assert main(["study", "export", str(study), "--to", "hf", "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"170 files in {tmp_path}\n"

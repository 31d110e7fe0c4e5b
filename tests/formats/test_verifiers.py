"""Runs as traces of verifiers: its own reader takes them, and ids along a path are what the model read and wrote."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from rlm_loop import ToolLoopAgent
from rlm_loop.cli.main import main
from rlm_loop.formats.traces import RunConversation, conversation_of, export_study
from rlm_loop.formats.traces.verifiers_out import record_of_run
from rlm_loop.messages import Prompt, Reply
from rlm_loop.models import ScriptedModel
from rlm_loop.outcome import Score
from rlm_loop.study import load_study
from rlm_loop.traces.reader import read, records_of
from rlm_loop.traces.trace import Trace
from tests.lazy import needs

ROOT = Path(__file__).parents[2]
GOLDEN = sorted((ROOT / "tests/golden").glob("*.jsonl"))


def path_to(record: dict[str, Any], node: int | None) -> list[dict[str, Any]]:
    """The nodes from the beginning of a path to one of them."""
    found: list[dict[str, Any]] = []
    while node is not None:
        found.insert(0, record["nodes"][node])
        node = found[0]["parent"]
    return found


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_each_call_is_the_end_of_a_path_of_its_messages(path: Path) -> None:
    conversation = conversation_of(read(path))
    record = record_of_run(conversation)
    assert len(record["calls"]) == len(conversation.steps)
    for call, step in zip(record["calls"], conversation.steps, strict=True):
        if step.reply is None:
            assert call["error"]["message"] == step.error
            continue
        nodes = path_to(record, call["node"])
        assert [node["message"]["content"] for node in nodes] == [*(m.text for m in step.messages), step.reply.text]
        assert [node["message"]["role"] for node in nodes] == [*(m.role for m in step.messages), "assistant"]
        assert nodes[-1]["sampled"]
    replies = [step for step in conversation.steps if step.reply is not None]
    assert sum(node.get("sampled", False) for node in record["nodes"]) == len(replies)


@needs("verifiers", extra="verifiers")
@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_verifiers_reads_it(path: Path, tmp_path: Path) -> None:
    from verifiers.v1.trace import WireTrace

    conversation = conversation_of(read(path), Score(True, 0.75, "nearly"))
    trace = WireTrace.model_validate_json(json.dumps(record_of_run(conversation)))
    used = conversation.usage
    replies = [step for step in conversation.steps if step.reply is not None]
    assert trace.num_turns == len(replies)
    if replies and used.input_tokens is not None:
        assert (trace.usage.input_tokens, trace.usage.completion_tokens) == (used.input_tokens, used.output_tokens)
        assert trace.usage.cached_input_tokens == used.cache_read_tokens
    assert trace.reward == 0.75
    assert trace.ok == (conversation.stop not in ("failed", "interrupted"))
    out = tmp_path / "traces.jsonl"
    assert main(["trace", "export", str(path), "--to", "verifiers", "--out", str(out)]) == 0
    assert WireTrace.model_validate_json(out.read_text(encoding="utf-8")).task.data.prompt == conversation.question


def ids_of(text: str) -> list[int]:
    return list(text.encode())


def rendered(model: str, prompt: Prompt) -> list[int]:
    """A template of one character a message, and a token a byte."""
    return ids_of("".join(f"{message.role[0]}{message.text}|" for message in prompt.messages) + "a")


def reply(text: str) -> Reply:
    ids = ids_of(f"{text}|")
    return Reply(text, extra={"tokens": {"ids": ids, "logprobs": [-0.5] * len(ids)}})


def run(replies: Sequence[Reply]) -> RunConversation:
    trace = Trace()
    ToolLoopAgent(model=ScriptedModel(replies, name="scripted"), repl="subprocess", max_depth=1).run("?", trace=trace)
    return conversation_of(records_of(trace.events)[0])


CELLS = ["```python\nprint(llm_query('a'))\n```", "b", "```python\nfinal_answer = 2\n```"]


def test_ids_along_a_path_are_what_the_model_read_and_wrote() -> None:
    conversation = run([reply(text) for text in CELLS])
    record = record_of_run(conversation, rendered)
    for call, step in zip(record["calls"], conversation.steps, strict=True):
        assert step.reply is not None
        nodes = path_to(record, call["node"])
        ids = [id for node in nodes for id in node.get("token_ids", [])]
        assert ids == [*rendered("", Prompt(step.messages)), *step.reply.extra["tokens"]["ids"]]
        masks = [chosen for node in nodes for chosen in node.get("mask", [])]
        assert len(masks) == len(ids)
        assert (
            bytes(id for id, chosen in zip(ids, masks, strict=True) if chosen).decode().endswith(f"{step.reply.text}|")
        )
        assert len(nodes[-1]["logprobs"]) == sum(nodes[-1]["mask"])
    assert sum(node["parent"] is None for node in record["nodes"]) == 2  # the run, and the sub-call


def test_ids_that_do_not_go_on_start_a_path_of_their_own() -> None:
    def other(model: str, prompt: Prompt) -> list[int]:
        return [len(prompt.messages), *rendered(model, prompt)]  # what was read before is never a beginning

    conversation = run([reply(text) for text in CELLS])
    record = record_of_run(conversation, other)
    assert sum(node["parent"] is None for node in record["nodes"]) == 3
    for call, step in zip(record["calls"], conversation.steps, strict=True):
        nodes = path_to(record, call["node"])
        assert len(nodes) == len(step.messages) + 1
        assert sum(bool(node.get("token_ids")) for node in nodes) == 1


@needs("verifiers", extra="verifiers")
def test_verifiers_makes_training_samples_of_it() -> None:
    from verifiers.v1.trace import WireTrace

    conversation = run([reply(text) for text in CELLS])
    trace = WireTrace.model_validate_json(json.dumps(record_of_run(conversation, rendered)))
    root, below = trace.branches
    assert bytes(below.token_ids).decode() == "ua|ab|"
    assert sum(root.sampled_mask) == sum(len(text) + 1 for text in CELLS[::2])
    assert sum(root.logprobs) == -0.5 * sum(root.sampled_mask)


def test_a_study_is_one_file(tmp_path: Path) -> None:
    study = load_study(ROOT / "experiments/token_overhead/results")
    [path] = export_study(study, "verifiers", tmp_path)
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [record["info"]["rlm_loop"]["episode"]["task"] for record in records] == [row["task"] for row in study.rows]
    assert [record["rewards"]["resolved"]["score"] for record in records] == [row["value"] for row in study.rows]

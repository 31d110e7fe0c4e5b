"""A loop of ours runs as a harness of verifiers: under its own runner, with a scripted provider."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.lazy import needs
from tests.meter.upstream import Answer, upstream

ROOT = Path(__file__).parents[2]
SUITE = {"id": "sum", "question": "What is 0 + 1 + ... + 9?", "answer": 45}
CELLS = ["```python\nn = sum(range(10))\nprint(n)\n```", "```python\nfinal_answer = n\n```"]


def completion(text: str, **usage: Any) -> Answer:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    about = {"id": "c", "object": "chat.completion", "created": 1, "model": "scripted"}
    return Answer.of({**about, "choices": [choice], "usage": {"total_tokens": 0, **usage}})


@pytest.mark.slow
@needs("verifiers", extra="verifiers")
def test_its_runner_drives_our_loop_and_records_what_it_said(tmp_path: Path) -> None:
    from verifiers.v1.trace import WireTrace

    suite = tmp_path / "sums.jsonl"
    suite.write_text(json.dumps(SUITE) + "\n", encoding="utf-8")
    first = completion(CELLS[0], prompt_tokens=100, completion_tokens=20)
    second = completion(CELLS[1], prompt_tokens=150, completion_tokens=10, prompt_tokens_details={"cached_tokens": 96})
    with upstream(first, second) as provider:
        command = [
            *(str(Path(sys.executable).parent / "vf-eval"), "rlm_rollouts", "--model", "scripted"),
            *("--client.base-url", f"{provider.url}/v1", "--client.api-key-var", "NO_KEY_IS_NEEDED"),
            *("--env.agent.runtime.type", "subprocess", "--env.taskset.suite", str(suite)),
            *("--no-push", "--no-rich", "--output-dir", str(tmp_path / "out"), "--run.name", "one"),
        ]
        paths = os.pathsep.join([str(ROOT / "benchmarks"), str(ROOT)])
        environment = {**os.environ, "PYTHONPATH": paths, "HOME": str(tmp_path)}
        done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    [line] = (tmp_path / "out/one/traces.jsonl").read_text(encoding="utf-8").splitlines()
    told = json.loads(line)
    [trace] = [WireTrace.model_validate(found) for found in told.get("traces", [told])]
    assert trace.ok, trace.errors
    assert trace.reward == 1.0
    assert trace.info["rlm_loop"]["stop"] == "answered"
    assert [message.role for message in trace.messages] == ["system", "user", "assistant", "user", "assistant"]
    assert [message.content for message in trace.assistant_messages] == CELLS
    assert trace.messages[3].content == "45"
    assert trace.num_branches == 1
    assert (trace.usage.input_tokens, trace.usage.cached_input_tokens, trace.usage.completion_tokens) == (250, 96, 30)

"""Text that does not stay where it was said: announced in the trace, and charged like any other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rlm_loop import LeanAgent, ToolLoopAgent
from rlm_loop.agents.compaction import Compaction
from rlm_loop.dialects.peer_injectors import TEXTS
from rlm_loop.dialects.presets import every, preset, sized
from rlm_loop.models import ScriptedModel
from rlm_loop.traces.reader import read
from rlm_loop.traces.trace import Trace

REPLIES = ["Let me see.\n```python\nprint(1)\n```", "```python\n1/0\n```", "The answer is 5"]
HISTORY = """[[ ## repl_history ## ]]
=== Step 1 ===
Reasoning: Let me see.
Code:
```python
print(1)
```
Output (1 chars):
1
=== Step 2 ===
Code:
```python
1/0
```
Output (117 chars):
Traceback (most recent call last):
  File "<cell 2>", line 1, in <module>
    1/0
ZeroDivisionError: division by zero
[[ ## iteration ## ]]
3/20
"""


def test_dspys_history_is_one_text_that_is_rendered_anew(tmp_path: Path) -> None:
    model = ScriptedModel(REPLIES)
    outcome = ToolLoopAgent(model=model, injectors=preset("dspy")).run("How much?", trace=tmp_path / "t.jsonl")
    first, second, third = model.prompts
    assert f"{TEXTS['DSPY_EMPTY']}\n[[ ## iteration ## ]]\n1/20\n{TEXTS['DSPY_REMINDER']}" in first.messages[-1].text
    assert [m.role for m in third.messages] == ["system", "user", "user"]
    assert third.messages[1].text == "How much?"
    assert third.messages[2].text == HISTORY + TEXTS["DSPY_REMINDER"]
    assert second.messages[2].text.count("Step") == 1
    causes = outcome.ledger.by_cause()
    assert sum(causes.values()) == outcome.usage.input_tokens
    assert {"assistant", "repl_output", "scaffold:dspy_history", "scaffold:dspy_reminder"} <= set(causes)
    events = read(tmp_path / "t.jsonl").of("compaction")
    assert {(e["policy"], e["turn"]) for e in events if e["policy"] == "dspy_history"} == {
        ("dspy_history", 1),
        ("dspy_history", 2),
    }


def test_calls_are_shown_as_a_trajectory() -> None:
    call = 'I look.\n{"name": "python", "arguments": {"code": "print(1)"}}'
    model = ScriptedModel([call, "5"])
    LeanAgent(model=model, presentation="text", injectors=preset("dspy-history")).run("How much?")
    assert model.prompts[1].messages[-1].text == (
        "[[ ## trajectory ## ]]\n[[ ## thought_0 ## ]]\nI look.\n\n[[ ## tool_name_0 ## ]]\npython\n\n"
        '[[ ## tool_args_0 ## ]]\n{"code": "print(1)"}\n\n[[ ## observation_0 ## ]]\n1'
    )


def test_a_reminder_stands_at_the_end_of_each_request_only() -> None:
    model = ScriptedModel(["```python\nprint(1)\n```"] * 2 + ["```python\nprint(2)\n```", "5"])
    ToolLoopAgent(model=model, injectors=preset("dspy-reminder")).run("How much?")
    for prompt in model.prompts:
        assert [TEXTS["DSPY_REMINDER"] in m.text for m in prompt.messages].count(True) == 1
        assert prompt.messages[-1].text.endswith(TEXTS["DSPY_REMINDER"])
    dosed = every(2, sized(preset("dspy-reminder")[0], 30))
    model = ScriptedModel(["```python\nprint(1)\n```", "```python\nprint(2)\n```", "5"])
    ToolLoopAgent(model=model, injectors=(dosed,)).run("How much?")
    assert [any(TEXTS["DSPY_REMINDER"][:30] in m.text for m in p.messages) for p in model.prompts] == [
        True,
        False,
        True,
    ]


def test_native_calls_and_their_results_go_together() -> None:
    from rlm_loop.messages import Reply, ToolCall

    call = Reply("", (ToolCall("a", "python", '{"code": "print(1)"}'),), "tool_calls")
    model = ScriptedModel([call, "5"])
    LeanAgent(model=model, presentation="native", injectors=preset("dspy")).run("How much?")
    assert [m.role for m in model.prompts[1].messages] == ["user", "user"]
    assert not any(m.tool_calls or m.tool_call_id for m in model.prompts[1].messages)


@pytest.mark.parametrize("policy", ["drop_outputs", "window", "summary"])
@pytest.mark.parametrize("name", ["dspy", "dspy-history", "dspy-reminder"])
@pytest.mark.filterwarnings("ignore:.*only the last turn")
def test_what_compaction_says_is_what_is_sent(policy: Any, name: str) -> None:
    replies = [f"I look {n}.\n```python\nprint('{n}' * 1500)\n```" for n in range(8)]
    model = ScriptedModel([*replies, "Done."] if policy != "summary" else [*replies, *["Done."] * 9])
    plan = Compaction(policy, threshold_tokens=1_200, keep_turns=2)
    trace = Trace()
    ToolLoopAgent(model=model, injectors=preset(name), history=plan, repl="plain").run("How much?", trace=trace)
    said = [e for e in trace.events if e["event"] == "compaction" and e["asked"] == policy]
    asked = {e["turn"]: e["estimate"] for e in trace.events if e["event"] == "request" and e["purpose"] == "agent"}
    assert said
    assert [e["tokens"] for e in said] == [asked[e["turn"] + 1] for e in said]

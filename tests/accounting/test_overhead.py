"""Added text and extra calls are two things."""

from __future__ import annotations

from rlm_loop import Compaction, ToolLoopAgent
from rlm_loop.accounting.ledger import Ledger
from rlm_loop.accounting.overhead import overhead
from rlm_loop.dialects.presets import preset
from rlm_loop.messages import Prompt, Usage
from rlm_loop.models import ScriptedModel

CELLS = ["print('word ' * 400)", "print('more ' * 400)", "print(llm_query('why?'))"]


def reply(prompt: Prompt) -> str:
    """A summary where one is asked for, a reason to a sub-call, else the next cell and at last the answer."""
    asked = prompt.messages[-1].text
    if "Summarise" in asked:
        return "words were printed"
    if asked.endswith("why?"):
        return "because"
    turn = max(m.turn for m in prompt.messages)
    return f"```python\n{CELLS[turn]}\n```" if turn < len(CELLS) else "5"


def test_text_and_calls_sum_to_the_ledger() -> None:
    plan = Compaction("summary", threshold_tokens=1_000, keep_turns=1)
    agent = ToolLoopAgent(injectors=preset("mellea-thought"), history=plan, model=ScriptedModel([reply] * 12))
    outcome = agent.run("How many?")
    found = overhead(outcome.ledger)
    assert set(found.extra_calls) == {"llm_query", "compaction"}
    assert found.calls + found.requests.calls == outcome.usage.calls
    total = sum((u.input_tokens or 0 for u in found.extra_calls.values()), found.requests.input_tokens or 0)
    assert total == outcome.usage.input_tokens
    assert set(found.text) == {"system", "scaffold:mellea_thought"}
    assert found.text_tokens == sum(found.text.values())
    own = [r for c in outcome.ledger.calls if c.purpose == "agent" for r in c.rows if r.cause in found.text]
    assert found.text_tokens == sum(r.tokens for r in own)
    frame = found.frame()
    assert list(frame.kind) == ["text"] * len(found.text) + ["calls"] * len(found.extra_calls)
    assert frame[frame.kind == "text"].input_tokens.sum() == found.text_tokens


def test_nothing_and_not_known() -> None:
    assert overhead(Ledger()).calls == 0
    ledger = Ledger()
    ledger.charge((), Usage(None, 3), turn=1, purpose="extract")
    assert overhead(ledger).extra_calls["extract"].input_tokens is None
    assert overhead(ledger).text_tokens == 0

"""Records the golden traces: small scripted runs of every kind of agent, which today's loop has to drive alike.

    python -m tests.golden.record [NAME ...]

Run it where a change of what is said to models, or of what is recorded, is meant, and read the difference of the
traces before it is committed: it is the change.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlm_loop import Budget, Compaction, DirectAgent, LeanAgent, ReActAgent, ToolLoopAgent
from rlm_loop.agents import Agent, Rules, SubCalls
from rlm_loop.dialects import FormatReminder, Nudge, ThoughtPrompt, TurnCounter
from rlm_loop.models import ModelError, Reply, ScriptedModel, ToolCall
from rlm_loop.traces import Trace
from rlm_loop.workspace import Workspace
from tests.agents.replies import code, written

HERE = Path(__file__).parent
TEXT = "".join(f"line {n}: the value is {n * n % 17}\n" for n in range(40))
FILES = {"shop/price.py": "def total(prices):\n    return sum(prices) + 1\n", "README": "a shop\n"}


def stock(item: str, warehouse: int = 1) -> int:
    """How many of an item there are in a warehouse."""
    if item == "none":
        raise LookupError("there is no such item")
    return len(item) * warehouse


@dataclass(frozen=True)
class Golden:
    """A run to record: the agent with its scripted model, and what it is given."""

    agent: Callable[[], Agent]
    context: Any = None
    files: Any = None

    def run(self, trace: Trace) -> None:
        workspace = None if self.files is None else Workspace(self.files)
        with suppress(KeyboardInterrupt, ModelError):
            self.agent().run("What is the sum?", context=self.context, workspace=workspace, trace=trace)


def call(name: str, **arguments: Any) -> Reply:
    return Reply("", (ToolCall(f"id-{name}", name, json.dumps(arguments)),), "tool_calls")


def act(name: str, **arguments: Any) -> str:
    return f"Thought: I need it.\nAction: {name}\nAction Input: {json.dumps(arguments)}"


def scripted(*replies: Any, name: str = "scripted") -> ScriptedModel:
    return ScriptedModel(replies, name=name, price=(1e-6, 2e-6))


def tool_loop() -> Agent:
    replies = [
        code("print(context[:30])", "n = context.count('value')\nprint(n, stock('apple', warehouse=2))"),
        code("print(undefined)"),
        code("print(llm_query('Is 40 even?'))\nprint([str(a) for a in llm_query_batched(['one', 'two'])])"),
        "yes",
        "1",
        "2",
        code("n\nfinal_answer = n * 2"),
    ]
    rules, subcalls = Rules(require_code=True), SubCalls(concurrency=1)
    return ToolLoopAgent(model=scripted(*replies), tools=(stock,), rules=rules, subcalls=subcalls)


def sub_agents() -> Agent:
    replies = [
        code("part = llm_query('Count the letters.', context=context[:50])\nprint(part)"),
        code("print(len(context))"),
        code("final_answer = len(context)"),
        code("try:\n    llm_query('Too deep?', context=context)\nexcept Exception as error:\n    print(error)"),
        code("1 / 0"),
        code("1 / 0"),
        code("print(llm_query('How deep is it?'))"),
        code("final_answer = llm_query('the last level')"),
        "the bottom",
        code("final_answer = part"),
    ]
    budget = Budget(steps=8, tool_failures=2)
    return ToolLoopAgent(model=scripted(*replies), budget=budget, subcalls=SubCalls(depth=2, budget=Budget(steps=2)))


def lean(presentation: Any, replies: list[Any], **more: Any) -> Callable[[], Agent]:
    return lambda: LeanAgent(model=scripted(*replies), tools=(stock,), presentation=presentation, **more)


NATIVE = [
    call("stock", item="apple"),
    Reply("", (ToolCall("a", "stock", '{"item": "none"}'), ToolCall("a", "unknown", "{}")), "tool_calls"),
    call("stock", item=3),
    call("python", code="x = 20\nprint(x + 1)"),
    call("final_answer", answer=[1, 2]),
]
WRITTEN = [
    written("stock", item="pear", warehouse=3),
    '{"name": "stock", "arguments": {"item": "a "b""}}',
    written("python", code="print('é ✓')"),
    written("final_answer", answer="42"),
]
REACT = [act("stock", item="fig"), "Thought: only words", act("python", code="print(3)"), act("finish", answer="done")]
THINKING = ["I think first.", call("stock", item="kiwi"), call("final_answer", answer="4")]
LAST = code("final_answer = 7")
LONG = [code(f"print('{'abc' * 60}', {n})") for n in range(6)]


def long_run(history: Compaction | int, *replies: str) -> Callable[[], Agent]:
    return lambda: ToolLoopAgent(model=scripted(*(replies or (*LONG[:5], LAST))), history=history)


def injected() -> Agent:
    some = (ThoughtPrompt(), TurnCounter(9), FormatReminder("Use a block."), Nudge("Go."))
    return ToolLoopAgent(model=scripted(code("print(1)"), code("print(2)"), "Answer: 3"), injectors=some)


def mistakes() -> Agent:
    cut = Reply("```python\nprint(", finish_reason="length")
    replies = [Reply(""), code("final_answer = 'x'"), cut, code("final_answer = 3\n1 / 0"), code("final_answer = '12'")]
    return ToolLoopAgent(model=scripted(*replies), answer_type=int, verify=even, budget=Budget(malformed=5))


def even(value: int) -> bool:
    """The caller's own check."""
    return value % 2 == 0


def edits() -> Agent:
    replies = [
        call("read_file", path="shop/price.py"),
        call("apply_edit", path="shop/price.py", start_line=2, end_line=2, replacement="    return sum(prices)"),
        call("search_code", query="sum"),
        call("final_answer", answer="fixed"),
    ]
    return LeanAgent(model=scripted(*replies))


TOKENS = Budget(steps=None, tokens=600)
SUMMARY = Compaction("summary", threshold_tokens=330, keep_turns=1, summary_tokens=40)

GOLDEN: Mapping[str, Golden] = {
    "tool_loop_sub_calls": Golden(tool_loop, TEXT),
    "tool_loop_sub_agents": Golden(sub_agents, TEXT),
    "lean_native": Golden(lean("native", NATIVE, budget=Budget(tool_failures=9)), {"a": 1}),
    "lean_text": Golden(lean("text", WRITTEN)),
    "lean_constrained": Golden(lean("constrained", WRITTEN)),
    "react_text": Golden(lambda: ReActAgent(model=scripted(*REACT), tools=(stock,))),
    "react_calls": Golden(lambda: ReActAgent(model=scripted(*THINKING), tools=(stock,), form="calls")),
    "direct": Golden(lambda: DirectAgent(model=scripted("It is 9."), window=100), TEXT),
    "history_outputs": Golden(long_run(Compaction("drop_outputs", threshold_tokens=330, keep_turns=1))),
    "history_window": Golden(long_run(6)),
    "history_summary": Golden(long_run(SUMMARY, *LONG[:3], "It printed abc.", LONG[3], "It did again.", LAST)),
    "injectors": Golden(injected),
    "mistakes": Golden(mistakes),
    "budget_tokens": Golden(lambda: ToolLoopAgent(model=scripted(*LONG), budget=TOKENS, max_tokens=80)),
    "budget_steps": Golden(lambda: ReActAgent(model=scripted(*REACT), tools=(stock,), max_steps=2)),
    "budget_cost": Golden(lambda: ToolLoopAgent(model=scripted(*LONG), budget=Budget(cost=0.0005))),
    "repeated": Golden(lambda: ToolLoopAgent(model=scripted(*[code("x = 1")] * 9))),
    "malformed": Golden(lambda: LeanAgent(model=scripted(*[Reply(text, finish_reason="length") for text in "abc"]))),
    "model_error": Golden(lambda: ToolLoopAgent(model=scripted(LONG[0], ModelError("the provider is down")))),
    "interrupted": Golden(lambda: ToolLoopAgent(model=scripted(LONG[0], KeyboardInterrupt()))),
    "workspace": Golden(edits, files=FILES),
}


def record(name: str) -> None:
    path = HERE / f"{name}.jsonl"
    path.unlink(missing_ok=True)
    ticks, ids = itertools.count(1_700_000_000_000, 10), itertools.count()
    with Trace(path, clock=lambda: next(ticks) / 1000, ids=lambda: f"r{next(ids):010x}") as trace:
        GOLDEN[name].run(trace)
    print(f"{path.name}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    for name in sys.argv[1:] or GOLDEN:
        record(name)

"""What a model sees is bounded, whatever it is made of; what was left out is in the trace, up to a cap of its own."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rlm_loop import LeanAgent, ToolLoopAgent
from rlm_loop.actions import Answer, CallTool, Malformed, RunCode
from rlm_loop.agents import turns_of
from rlm_loop.dialects import CodeBlocks, Dialect, FunctionCalls, TurnCounter
from rlm_loop.models import Reply, ScriptedModel, ToolCall
from rlm_loop.repl import PythonREPL
from rlm_loop.tasks import Attempt, Score, Task
from rlm_loop.traces import read

HARD_CAP, RECORD_CAP = 65_536, 262_144
MARK = re.compile(r"\n\.\.\. \[(\d+) characters left out\] \.\.\.\n")


def left_out(text: str) -> int:
    (count,) = MARK.findall(text)
    return int(count)


def flood() -> str:
    """Much text."""
    return "f" * 1_000_000


def fails() -> str:
    """An error that is long."""
    raise ValueError("e" * 1_000_000)


@pytest.fixture(scope="module")
def repl() -> Iterator[PythonREPL]:
    with PythonREPL(timeout=60) as session:
        yield session


PRINT = "print('x' * 200_000)\n"
ANY = {
    "a print": RunCode(PRINT),
    "a value": RunCode("'v' * 200_000"),
    "an error after a print": RunCode(PRINT + "1/0"),
    "an error that is long": RunCode("raise ValueError('e' * 1_000_000)"),
    "a pending answer": RunCode(PRINT + "final_answer = 1\n1/0"),
    "a refused answer": RunCode(PRINT + "final_answer = 1"),
    "a dead process": RunCode(PRINT + "import os, sys; sys.stdout.flush(); os._exit(1)"),
    "a tool's text": CallTool("flood"),
    "a tool's error": CallTool("fails"),
    "a call of the REPL": CallTool("python", '{"code": "print(\'x\' * 200_000)"}'),
    "an unknown tool": CallTool("t" * 200_000),
    "arguments that cannot be read": CallTool("flood", '{"a' * 100_000),
    "a reply that cannot be read": Malformed("m" * 200_000),
    "an answer that is refused": Answer("a" * 200_000),
}


@pytest.mark.parametrize("name", ANY)
@pytest.mark.parametrize("cap", [1000, 10**9], ids=["a small cap", "more than the hard cap"])
def test_no_observation_is_longer_than_the_cap(repl: PythonREPL, name: str, cap: int) -> None:
    class Says(FunctionCalls):
        observation_cap = cap

        def parse_reply(self, *_: Any) -> list[Any]:
            return [ANY[name]]

    class Agent(LeanAgent):
        def _speaks(self) -> Dialect:
            return Says()

    agent = Agent(ScriptedModel(["x"]), tools=(flood, fails), repl=repl, verify=lambda a: "n" * 100_000, max_steps=1)
    (seen,) = agent.run("?").turns[0].observations
    assert len(seen.text) <= min(cap, HARD_CAP)
    if name in ("an unknown tool", "arguments that cannot be read") and len(seen.text) < cap:
        return  # these are worded to be short
    assert seen.truncated
    assert left_out(seen.text) > 0
    assert len(seen.text) < len(seen.full) <= RECORD_CAP
    if name == "a dead process":
        assert "process died" in seen.text.splitlines()[-1]
    if name == "a pending answer":
        assert seen.text.endswith("to confirm it.")


def score(_: Attempt) -> Score:
    return Score(True, 1.0, "")


@pytest.mark.parametrize(
    ("size", "kept"),
    [(100, 0), (200_000, 200_001), (1_000_000, RECORD_CAP)],
    ids=["small", "up to the record's cap", "beyond"],
)
def test_the_full_text_is_in_the_trace_and_not_in_the_prompt(tmp_path: Path, size: int, kept: int) -> None:
    code = f"print('a' * {size // 2} + 'é' * {size // 2})"
    calls = [ToolCall("1", "python", '{"code": "' + code + '"}')]
    done = Reply("", (ToolCall("2", "final_answer", '{"answer": 1}'),))
    agents: dict[str, Callable[[ScriptedModel], Any]] = {
        "code": lambda m: ToolLoopAgent(model=m),
        "calls": lambda m: LeanAgent(model=m, presentation="native"),
    }
    replies: dict[str, list[Any]] = {
        "code": [f"```python\n{code}\n```", "```python\nfinal_answer = 1\n```"],
        "calls": [Reply("", tuple(calls)), done],
    }
    for action_mode, make in agents.items():
        model, path = ScriptedModel(replies[action_mode]), tmp_path / f"{action_mode}.jsonl"
        make(model).attempt(Task("t", "Look.", score, needs_repl=True), trace=path)
        (seen, *_) = turns_of(read(path))[0].observations
        assert kept - 2 < len(seen.full) <= kept
        assert seen.truncated == (size > HARD_CAP)
        if kept == size + 1:
            assert seen.full == "a" * (size // 2) + "é" * (size // 2) + "\n"
        for text in filter(MARK.search, (seen.text, seen.full)):
            assert len(MARK.sub("", text)) + left_out(text) == size + 1
        sent = sum(len(m.text) for m in model.prompts[-1].messages)
        assert sent < HARD_CAP + 10_000


@dataclass(frozen=True)
class Terse(CodeBlocks):
    observation_cap = 300


@dataclass(frozen=True)
class TerseAgent(ToolLoopAgent):
    def _speaks(self) -> Dialect:
        return Terse()


@pytest.mark.parametrize("injectors", [(), (TurnCounter(5),)])
def test_a_dialect_may_have_a_smaller_cap(tmp_path: Path, injectors: Any) -> None:
    model = ScriptedModel(["```python\nprint('x' * 5000)\n```", "```python\nfinal_answer = 1\n```"])
    outcome = TerseAgent(model=model, injectors=injectors).run("?")
    (seen,) = outcome.turns[0].observations
    assert len(seen.text) <= 300
    assert len(MARK.sub("", seen.text)) + left_out(seen.text) == 5001
    assert seen.full == "x" * 5000 + "\n"


def test_an_observation_that_fits_is_not_touched(repl: PythonREPL) -> None:
    model = ScriptedModel(["```python\nprint('é\\n')\n```"])
    (seen,) = ToolLoopAgent(model, repl=repl, max_steps=1).run("?").turns[0].observations
    assert (seen.text, seen.truncated, seen.full) == ("é\n\n", False, "")

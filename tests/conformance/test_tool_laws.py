"""What holds for tools under every dialect: semantics 31 to 35, through the loop."""

from __future__ import annotations

import hashlib
import shutil
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from test_laws import EVERY, Speaker

from rlm_loop import Budget, Outcome, Task
from rlm_loop.agents import Rules
from rlm_loop.messages import Reply
from rlm_loop.models import ScriptedModel
from rlm_loop.repl import PythonREPL
from rlm_loop.traces import Trace
from rlm_loop.workspace import Workspace
from tests.agents.replies import named

Call = tuple[str, dict[str, Any]]
FILES: dict[str, str | bytes] = {"a.py": "def f(x):\n    return x\n", "b.txt": "b\n"}

#: One of each kind of action_mode and syntax; the injectors around them do not touch tools.
SPOKEN = ["code", "native", "text", "constrained", "react text"]


def edit(path: str, start: int, end: int, replacement: str, **more: Any) -> Call:
    lines = {"start_line": start, "end_line": end}
    return "apply_edit", {"path": path, **lines, "replacement": replacement, **more}


NEGATE = edit("a.py", 2, 2, "    return -x")
READ_A, READ_B = ("read_file", {"path": "a.py"}), ("read_file", {"path": "b.txt"})
ANSWER = ("final_answer", {"answer": "done"})


@pytest.fixture(scope="module")
def repl() -> Iterator[PythonREPL]:
    with PythonREPL(timeout=20) as session:
        yield session


@pytest.fixture
def space() -> Iterator[Workspace]:
    with Workspace(FILES) as opened:
        yield opened


def say(name: str, call: Call) -> Reply:
    return EVERY[name][1](call[0], **call[1])


def play(
    name: str, said: Sequence[Call | Reply], repl: PythonREPL, workspace: Workspace | None = None, **settings: Any
) -> tuple[Outcome, list[str], list[Any]]:
    """The outcome, and what each call showed and did to the files, as the trace has it."""
    trace = Trace()
    model = ScriptedModel([one if isinstance(one, Reply) else say(name, one) for one in said])
    settings = {"budget": Budget(steps=12), **settings}
    agent = Speaker(model=model, speaks=EVERY[name][0], repl=repl, **settings)
    outcome = agent.run("Mend it.", workspace=workspace, trace=trace)
    effects = [o["effects"] for e in trace.events if e["event"] == "turn" for o in e["observations"]]
    return outcome, [o.text.strip() for turn in outcome.turns for o in turn.observations], effects


def git_hash(text: str) -> str:
    return hashlib.sha1(f"blob {len(text)}\0{text}".encode()).hexdigest()


@pytest.mark.parametrize("name", SPOKEN)
def test_the_same_functions_with_the_same_results_and_effects_with_hashes(
    name: str, repl: PythonREPL, space: Workspace
) -> None:
    calls = [("search_code", {"query": "return"}), READ_A, NEGATE, edit("new/c.py", 1, 0, "x = 1"), ANSWER]
    outcome, seen, effects = play(name, calls, repl, space)
    assert (outcome.answered, "+    return -x" in outcome.artifact) == (True, True)
    assert seen[:3] == ["a.py:2: return x", "1: def f(x):\n2:     return x", "1: def f(x):\n2:     return -x"]
    _, read, changed, added = effects[:4]
    found = [[effect.get(kind) for kind in ("added", "changed", "removed")] for effect in (read, changed, added)]
    assert found == [[None] * 3, [[], ["a.py"], []], [["new/c.py"], [], []]]
    assert changed["hashes"]["a.py"] == [git_hash("def f(x):\n    return x\n"), git_hash("def f(x):\n    return -x\n")]
    assert added["hashes"]["new/c.py"] == ["", git_hash("x = 1\n")]
    assert added["tree"] == space.snapshot()


@pytest.mark.parametrize("name", SPOKEN)
def test_keys_and_dry_runs_are_the_models_to_use(name: str, repl: PythonREPL, space: Workspace) -> None:
    dry, keyed = (edit("b.txt", 1, 0, "first", **way) for way in ({"dry_run": True}, {"idempotency_key": "one"}))
    _, seen, effects = play(name, [dry, keyed, READ_B, keyed, ANSWER], repl, space)
    shown = "1: first\n2: b"
    assert seen[:4] == [f"dry run, nothing written:\n{shown}", shown, shown, shown]
    assert (space.root / "b.txt").read_text() == "first\nb\n"
    assert [bool(effect) for effect in effects[:4]] == [False, True, False, False]


@pytest.mark.parametrize("name", SPOKEN)
def test_what_is_not_allowed_is_denied_and_not_run(name: str, repl: PythonREPL, space: Workspace) -> None:
    rules = Rules(allow=["search_code", "read_file"])
    outcome, seen, _ = play(name, [NEGATE, READ_B, ANSWER], repl, space, rules=rules)
    assert "not allowed here; tools: search_code, read_file" in seen[0]
    failure = outcome.turns[0].observations[0].failure
    assert "denied" in seen[0] or (failure is not None and failure.kind == "denied")
    assert (seen[1], outcome.stop, outcome.artifact) == ("1: b", "answered", "")
    asked = Task("t", "Mend it.", 1, workspace=lambda: Workspace(FILES))
    assert "apply_edit" not in str(Speaker(speaks=EVERY[name][0], rules=rules).first_request(asked).prompt)


@pytest.mark.parametrize("name", SPOKEN)
def test_a_tool_that_hangs_or_raises_ends_no_run(name: str, repl: PythonREPL) -> None:
    release = threading.Event()
    hang = named("hang", lambda: release.wait(60), timeout=0.05)

    def crash() -> str:
        """Crash."""
        raise RecursionError("too deep")

    try:
        outcome, seen, _ = play(name, [("hang", {}), ("crash", {}), ANSWER], repl, tools=[hang, crash])
    finally:
        release.set()
    assert (outcome.stop, outcome.answer) == ("answered", "done")
    assert ("hang gave no result within 0.05 s" in seen[0], "RecursionError: too deep" in seen[1]) == (True, True)
    assert all(turn.observations[0].failure is not None for turn in outcome.turns[:2])


@pytest.mark.parametrize("name", [n for n in SPOKEN if n != "code"])
@pytest.mark.parametrize(("most", "steps", "stop"), [(3, 3, "tool_failures"), (None, 5, "steps")])
def test_so_many_failed_calls_in_a_row_end_the_run_softly(
    name: str, most: int | None, steps: int, stop: str, repl: PythonREPL
) -> None:
    """Under the code-block loop a call is a line of a cell, and a cell that raises is ordinary work."""

    def fails(n: int) -> str:
        """Fail."""
        raise ValueError(n)

    calls = [("fails", {"n": n}) for n in range(5)]
    outcome, *_ = play(name, calls, repl, budget=Budget(steps=5, tool_failures=most), tools=[fails])
    assert (outcome.steps, outcome.stop, outcome.answer) == (steps, stop, None)  # a call written as text is no answer
    if most is not None:
        assert f"{most} failed tool calls in a row; the last: ValueError: {steps - 1}" in outcome.reason


@pytest.mark.parametrize("name", ["native", "text", "code"])
def test_others_run_before_the_final_answer_and_the_first_counts(name: str, repl: PythonREPL, space: Workspace) -> None:
    change = say(name, edit("b.txt", 1, 1, "c"))
    first, second = (say(name, ("final_answer", {"answer": n})) for n in (1, 2))
    order = [change, first, second] if name == "code" else [first, change, second]  # cells run as they are written
    calls = [replace(call, id=str(n)) for n, one in enumerate(order) for call in one.tool_calls]
    reply = Reply("\n".join(one.text for one in order), tuple(calls), order[0].finish_reason)
    outcome, *_ = play(name, [reply], repl, space)
    assert (outcome.stop, outcome.answer, outcome.steps) == ("answered", 1, 1)
    assert "+c" in outcome.artifact


def test_a_folder_that_is_gone_ends_no_run(repl: PythonREPL, space: Workspace) -> None:
    wreck = named("wreck", lambda: shutil.rmtree(space.root) or "gone")
    outcome, *_ = play("native", [("wreck", {}), READ_A, ANSWER], repl, space, tools=(wreck,))
    first, second, _ = (turn.observations[0] for turn in outcome.turns)
    assert "unknown" in first.effects or first.effects["removed"] == ["a.py", "b.txt"]
    assert (first.text, second.failure is not None, outcome.answered) == ("gone", True, True)
    assert second.text.startswith("no file 'a.py'")

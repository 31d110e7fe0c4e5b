"""What holds for tools under every dialect: semantics 31 to 35, through the loop."""

from __future__ import annotations

import hashlib
import shutil
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from test_laws import EVERY, Speaker, as_native

from rlm_loop import Budget, Outcome, Task
from rlm_loop.agents import Rules
from rlm_loop.messages import Reply
from rlm_loop.models import ScriptedModel
from rlm_loop.repl import PythonREPL
from rlm_loop.tools import tool
from rlm_loop.traces import Trace
from rlm_loop.workspace import Workspace

CHANGE: dict[str, Any] = {"path": "b.txt", "start_line": 1, "end_line": 1, "replacement": "c"}
FILES: dict[str, str | bytes] = {"a.py": "def f(x):\n    return x\n", "b.txt": "b\n"}

#: One of each kind of action_mode and syntax; the injectors around them do not touch tools.
SPOKEN = ["code", "native", "text", "constrained", "react text"]


@pytest.fixture(scope="module")
def repl() -> Iterator[PythonREPL]:
    with PythonREPL(timeout=20) as session:
        yield session


@pytest.fixture
def space() -> Iterator[Workspace]:
    with Workspace(FILES) as opened:
        yield opened


def play(
    name: str, replies: Sequence[Reply], repl: PythonREPL, *, workspace: Workspace | None = None, **settings: Any
) -> tuple[Outcome, Trace]:
    trace = Trace()
    settings = {"budget": Budget(steps=12), **settings}
    agent = Speaker(model=ScriptedModel(list(replies)), speaks=EVERY[name][0], repl=repl, **settings)
    return agent.run("Mend it.", workspace=workspace, trace=trace), trace


def say(name: str, call: str, **arguments: Any) -> Reply:
    return EVERY[name][1](call, **arguments)


def seen(outcome: Outcome) -> list[str]:
    return [o.text.strip() for turn in outcome.turns for o in turn.observations]


@pytest.mark.parametrize("name", SPOKEN)
def test_the_same_functions_with_the_same_results(name: str, repl: PythonREPL, space: Workspace) -> None:
    edit = {"path": "a.py", "start_line": 2, "end_line": 2}
    outcome, _ = play(
        name,
        [
            say(name, "search_code", query="return"),
            say(name, "read_file", path="a.py"),
            say(name, "apply_edit", **edit, replacement="    return -x"),
            say(name, "final_answer", answer="done"),
        ],
        repl,
        workspace=space,
    )
    assert outcome.stop == "answered"
    assert seen(outcome)[:3] == [
        "a.py:2: return x",
        "1: def f(x):\n2:     return x",
        "1: def f(x):\n2:     return -x",
    ]
    assert "+    return -x" in outcome.artifact


@pytest.mark.parametrize("name", SPOKEN)
def test_side_effects_are_in_the_trace_with_hashes(name: str, repl: PythonREPL, space: Workspace) -> None:
    edit = {"path": "a.py", "start_line": 2, "end_line": 2, "replacement": "    return -x"}
    _, trace = play(
        name,
        [
            say(name, "read_file", path="a.py"),
            say(name, "apply_edit", **edit),
            say(name, "apply_edit", path="new/c.py", start_line=1, end_line=0, replacement="x = 1"),
            say(name, "final_answer", answer=1),
        ],
        repl,
        workspace=space,
    )
    effects = [o["effects"] for e in trace.events if e["event"] == "turn" for o in e["observations"]]
    assert effects[0] == {}
    assert [effects[1][kind] for kind in ("added", "changed", "removed")] == [[], ["a.py"], []]
    assert [effects[2][kind] for kind in ("added", "changed", "removed")] == [["new/c.py"], [], []]
    before, after = effects[1]["hashes"]["a.py"]
    assert [before, after] == [_blob(b"def f(x):\n    return x\n"), _blob(b"def f(x):\n    return -x\n")]
    assert effects[2]["hashes"]["new/c.py"] == ["", _blob(b"x = 1\n")]
    assert effects[2]["tree"] == space.snapshot()


def _blob(data: bytes) -> str:
    """Git's hash of a file's contents."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


@pytest.mark.parametrize("name", SPOKEN)
def test_keys_and_dry_runs_are_the_models_to_use(name: str, repl: PythonREPL, space: Workspace) -> None:
    insert = {"path": "b.txt", "start_line": 1, "end_line": 0, "replacement": "first"}
    outcome, trace = play(
        name,
        [
            say(name, "apply_edit", **insert, dry_run=True),
            say(name, "apply_edit", **insert, idempotency_key="one"),
            say(name, "read_file", path="b.txt"),
            say(name, "apply_edit", **insert, idempotency_key="one"),
            say(name, "final_answer", answer=1),
        ],
        repl,
        workspace=space,
    )
    shown = "1: first\n2: b"
    assert seen(outcome)[:4] == [f"dry run, nothing written:\n{shown}", shown, shown, shown]
    assert (space.root / "b.txt").read_text() == "first\nb\n"
    effects = [o["effects"] for e in trace.events if e["event"] == "turn" for o in e["observations"]]
    assert [bool(e) for e in effects[:4]] == [False, True, False, False]


@pytest.mark.parametrize("name", SPOKEN)
def test_what_is_not_allowed_is_denied_and_not_run(name: str, repl: PythonREPL, space: Workspace) -> None:
    edit = {"path": "a.py", "start_line": 2, "end_line": 2, "replacement": "    return -x"}
    allow = ["search_code", "read_file"]
    outcome, _ = play(
        name,
        [say(name, "apply_edit", **edit), say(name, "read_file", path="b.txt"), say(name, "final_answer", answer=1)],
        repl,
        workspace=space,
        rules=Rules(allow=allow),
    )
    assert allow == ["search_code", "read_file"]
    assert "not allowed here; tools: search_code, read_file" in seen(outcome)[0]
    assert "denied" in seen(outcome)[0] or outcome.turns[0].observations[0].failure.kind == "denied"  # type: ignore[union-attr]
    assert seen(outcome)[1] == "1: b"
    assert outcome.stop == "answered"
    assert outcome.artifact == ""
    asked = Task("t", "Mend it.", 1, workspace=lambda: Workspace(FILES))
    assert "apply_edit" not in str(Speaker(speaks=EVERY[name][0], rules=Rules(allow=allow)).first_request(asked).prompt)


@pytest.mark.parametrize("name", SPOKEN)
def test_a_tool_that_hangs_or_raises_ends_no_run(name: str, repl: PythonREPL) -> None:
    release = threading.Event()

    @tool(timeout=0.05)
    def hang() -> str:
        """Hang."""
        release.wait(60)
        return "late"

    @tool
    def crash() -> str:
        """Crash."""
        raise RecursionError("too deep")

    try:
        outcome, _ = play(
            name,
            [say(name, "hang"), say(name, "crash"), say(name, "final_answer", answer="still here")],
            repl,
            tools=[hang, crash],
        )
    finally:
        release.set()
    assert (outcome.stop, outcome.answer) == ("answered", "still here")
    assert "hang gave no result within 0.05 s" in seen(outcome)[0]
    assert "RecursionError: too deep" in seen(outcome)[1]
    assert all(turn.observations[0].failure is not None for turn in outcome.turns[:2])


@pytest.mark.parametrize("name", [n for n in SPOKEN if n != "code"])
@pytest.mark.parametrize(("most", "steps"), [(3, 3), (1, 1), (None, 5)])
def test_so_many_failed_calls_in_a_row_end_the_run_softly(
    name: str, most: int | None, steps: int, repl: PythonREPL
) -> None:
    """Under the code-block loop a call is a line of a cell, and a cell that raises is ordinary work."""

    @tool
    def fails(n: int) -> str:
        """Fail."""
        raise ValueError(n)

    calls = [say(name, "fails", n=n) for n in range(5)]
    outcome, _ = play(name, calls, repl, budget=Budget(steps=5, tool_failures=most), tools=[fails])
    assert outcome.steps == steps
    assert outcome.stop == ("steps" if most is None else "tool_failures")
    assert outcome.answer is None  # a call written as text is no answer
    if most is not None:
        assert f"{most} failed tool calls in a row; the last: ValueError: {steps - 1}" in outcome.reason


@pytest.mark.parametrize("name", ["native", "text", "code"])
def test_others_run_before_the_final_answer_and_the_first_counts(name: str, repl: PythonREPL, space: Workspace) -> None:
    edit = say(name, "apply_edit", **CHANGE)
    first, second = (say(name, "final_answer", answer=n) for n in (1, 2))
    order = [edit, first, second] if name == "code" else [first, edit, second]  # cells run as they are written
    calls = [replace(call, id=str(n)) for n, one in enumerate(order) for call in one.tool_calls]
    reply = Reply("\n".join(one.text for one in order), tuple(calls), order[0].finish_reason)
    outcome, _ = play(name, [reply], repl, workspace=space)
    assert (outcome.stop, outcome.answer, outcome.steps) == ("answered", 1, 1)
    assert "+c" in outcome.artifact


def test_a_folder_that_is_gone_ends_no_run(repl: PythonREPL, space: Workspace) -> None:
    @tool
    def wreck() -> str:
        """Remove all."""
        shutil.rmtree(space.root)
        return "gone"

    calls = [as_native("wreck"), as_native("read_file", path="a.py"), as_native("final_answer", answer=1)]
    outcome, _ = play("native", calls, repl, tools=(wreck,), workspace=space)
    first, second, _ = (turn.observations[0] for turn in outcome.turns)
    assert first.text == "gone"
    assert "unknown" in first.effects or first.effects["removed"] == ["a.py", "b.txt"]
    assert second.failure is not None
    assert second.text.startswith("no file 'a.py'")
    assert outcome.answered

"""Tests of a run: its ends, the parts that are kept, and its length in calls."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rlm_loop import DirectAgent, LeanAgent, Task, ToolLoopAgent
from rlm_loop.agents import Interrupted, SubCalls, outcome_of
from rlm_loop.messages import Prompt
from rlm_loop.models import Model, Reply, ScriptedModel
from rlm_loop.models.base import tell
from rlm_loop.repl import ReplError, open_repl
from rlm_loop.replay import replay
from rlm_loop.traces import read
from tests.agents.replies import LOCAL, Uncounted, code, written


def test_a_full_window_loses_its_oldest_turns_and_is_a_stop_where_the_last_one_fills_it(tmp_path: Any) -> None:
    """It was `RequestRejected`: a study counted the arm's own doing as a crash, and its patch was lost."""
    cells = [f"x = {n}\n# " + "many words " * (60 if n < 30 else 900) for n in range(40)]
    path = tmp_path / "run.jsonl"
    agent = ToolLoopAgent(model=ScriptedModel([code(cell) for cell in cells], window=1800), max_steps=40)
    outcome = agent.attempt(Task("t", "Count.", lambda attempt: False, collect="x"), trace=path)
    assert (outcome.stop, outcome.artifact) == ("window", 30)
    assert {e["policy"] for e in read(path).of("compaction")} == {"window"}
    assert replay(path).same


class Streaming(Model):
    name = "streaming"
    interruptible = True

    def complete(self, prompt: Prompt, *, max_tokens: int | None = None) -> Reply:
        tell("text", "The answer may be ")
        tell("text", "forty")
        raise KeyboardInterrupt


def test_text_that_a_user_saw_is_kept_where_the_reply_was_broken_off() -> None:
    class Shows:
        def on_text(self, text: str) -> None: ...

    with pytest.raises(Interrupted) as caught:
        ToolLoopAgent(model=Streaming()).run("?", hooks=[Shows()])
    assert (caught.value.outcome.last_reply, caught.value.outcome.answer) == ("The answer may be forty", None)


def test_a_fault_of_the_repl_while_the_artifact_is_collected_is_a_fault() -> None:
    """It was swallowed: the run had answered, with no artifact, and counted as the model's failure."""
    broken = open_repl("plain")

    def get(expression: str, *, timeout: float | None = None) -> Any:
        raise ReplError("the disk is full")

    broken.get = get
    task = Task("t", "?", lambda attempt: False, collect="x")
    whole = ToolLoopAgent(model=ScriptedModel([code("final_answer = 1")])).attempt(task)
    assert (whole.stop, whole.artifact) == ("answered", None)  # there is no x
    agent = ToolLoopAgent(model=ScriptedModel([code("x = 1\nfinal_answer = 1")]), repl=broken)
    with broken, pytest.raises(ReplError, match="disk is full") as caught:
        agent.attempt(task)
    assert (caught.value.outcome.answer, caught.value.outcome.stop) == (1, "failed")


def test_the_end_of_a_sub_agent_states_its_own_usage(tmp_path: Any) -> None:
    """It stated that of the whole run."""
    replies = [code("final_answer = llm_query('Work.')"), code("final_answer = 'done'")]
    path = tmp_path / "run.jsonl"
    outcome = ToolLoopAgent(model=ScriptedModel(replies), subcalls=SubCalls(depth=2)).run("?", trace=path, context="c")
    ends = {e["node"]: e for e in read(path).of("run_end")}
    (below,) = [call for call in outcome.ledger.calls if call.node == "0.1"]
    assert ends["0.1"]["usage"]["input_tokens"] == below.usage.input_tokens
    assert ends["0"]["usage"]["input_tokens"] == outcome.usage.input_tokens > below.usage.input_tokens
    assert ends["0.1"]["seconds"] <= ends["0"]["seconds"]


# -- what is left of a run: on record, and on a full disk

RUNS = [
    (DirectAgent, ["Paris"]),
    (ToolLoopAgent, [f"Look.\n{code('print(len(context))')}", code("1/0"), code("final_answer = 7")]),
    (ToolLoopAgent, ["", "", ""]),
    (LeanAgent, [written("nothing"), written("final_answer", answer=5)]),
]


@pytest.mark.parametrize("counting", [True, False])
@pytest.mark.parametrize(("agent", "replies"), RUNS)
def test_what_was_recorded_reads_back_equal(agent: Any, replies: list[str], counting: bool, tmp_path: Path) -> None:
    file, model = tmp_path / "run.jsonl", ScriptedModel(replies, name=LOCAL)
    live = agent(model=model if counting else Uncounted(model)).run("What?", context="abc", trace=file)
    past = outcome_of(read(file), trace=str(file))
    assert (past.turns, past.ledger.calls, past.usage) == (live.turns, live.ledger.calls, live.usage)
    assert all(call.exact is counting for call in past.ledger.calls)
    for name in ("answer", "stop", "reason", "answer_form", "question", "model", "agent", "over_budget", "isolation"):
        assert getattr(past, name) == getattr(live, name)
    assert bool(live.isolation) == (agent is ToolLoopAgent and live.answered)  # a run without cells has none


def test_a_run_without_an_end_says_so(tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    DirectAgent(model=ScriptedModel(["Paris"])).run("What?", trace=file)
    kept = [line for line in file.read_text().splitlines() if '"event":"run_end"' not in line]
    file.write_text("\n".join(kept) + "\n")
    past = outcome_of(read(file))
    assert (past.stop, past.steps, "no end" in past.reason) == ("failed", 1, True)


@pytest.mark.parametrize("kind", ["auto", "subprocess", "hardened", "sandbox"])
def test_the_outcome_says_the_isolation(kind: str) -> None:
    with open_repl(kind) as alike:
        try:
            alike.get("0")
        except ReplError as problem:
            pytest.skip(str(problem))
        outcome = ToolLoopAgent(ScriptedModel([code("final_answer = 6 * 7")]), repl=kind).run("6 * 7?")
        assert (outcome.answer, outcome.isolation) == (42, alike.isolation)


#: In a process of its own: no file of it may grow any more once the model is asked, as on a full disk.
SCRIPT = """
import json, os, resource, sys
from rlm_loop import ToolLoopAgent
from rlm_loop.models import ScriptedModel

def full(prompt):
    size = os.path.getsize(trace) if os.path.exists(trace) else 0
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    return reply

trace, reply, first, keep, context = json.loads(sys.argv[1])
model = ScriptedModel([*[reply] * first, full, "done"])
try:
    ToolLoopAgent(model=model, repl="plain").run("Q?", trace=trace if keep else None, context=context and "x" * context)
except Exception as error:
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
    outcome = error.outcome
    print(json.dumps([type(error).__name__, outcome.stop, outcome.steps, outcome.usage.calls, str(error)]))
"""


@pytest.mark.parametrize(
    ("first", "keep", "context", "kind", "says"),
    [
        (1, True, 0, "TraceUnwritable", "cannot write the trace"),
        (0, False, 0, "ReplError", "the REPL's files cannot be written"),
        (0, False, 3_000_000, "ReplError", "the REPL's files cannot be written"),
    ],
)
def test_a_full_disk_is_told_and_nothing_is_lost(
    tmp_path: Path, first: int, keep: bool, context: int, kind: str, says: str
) -> None:
    given = json.dumps([str(tmp_path / "t.jsonl"), "```python\nprint(1)\n```", first, keep, context])
    done = subprocess.run([sys.executable, "-c", SCRIPT, given], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    *found, told = json.loads(done.stdout)
    assert found == [kind, "failed", first, first + 1], told
    assert [part for part in (says, "free some space") if part not in told] == []


# -- the way of one question and of one cell stays short: calls of functions inside the package, counted.
# Each count is the least of several, since a cell that takes long is waited for once more.

REPLIES = ["```python\nx = 17 + 25\nprint(x)\n```", "```python\nfinal_answer = x\n```"]


def calls_of(work: Callable[[], Any]) -> list[str]:
    """The files of the package, one for each call of a function in them, in order; the test model's own left out."""
    files: list[str] = []

    def called(frame: Any, event: str, _: Any) -> None:
        if event == "call" and "/rlm_loop/" in (name := frame.f_code.co_filename) and "models/scripted" not in name:
            files.append(name)

    before = sys.getprofile()
    sys.setprofile(called)
    try:
        work()
    finally:
        sys.setprofile(before)
    return files


def test_a_question_of_two_turns_takes_few_calls(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "rlm_loop")  # a page's example may have turned log lines on
    whole, begin = list[int](), list[int]()
    for _ in range(6):
        agent = ToolLoopAgent(model=ScriptedModel(REPLIES), repl="plain")
        files = calls_of(lambda agent=agent: agent.run("What is 17 + 25?"))
        whole.append(len(files))
        begin.append(next(n for n, file in enumerate(files) if file.endswith("agents/run.py")))
    assert min(whole[1:]) <= 450  # 1,555 on 22 November 2026; a busy machine waits, and looks, more often
    assert min(begin[1:]) <= 75  # before the first turn; 284 then


def test_a_trivial_cell_takes_few_calls() -> None:
    with open_repl("plain") as session:
        session.get("0")
        counts = [len(calls_of(lambda: session.run("1"))) for _ in range(8)]
    assert min(counts) <= 29  # 71 on 22 November 2026; two look at the working folder

"""What a trace holds, and one file of many runs: writers take turns by line, each run is read back by its id."""

from __future__ import annotations

import gzip
import json
import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from growth import grows_in_proportion
from hypothesis import given
from hypothesis import strategies as st

from rlm_loop import ToolLoopAgent
from rlm_loop.agents import outcome_of
from rlm_loop.messages import Message, Prompt, Reply, Span, Usage, say
from rlm_loop.models import ScriptedModel
from rlm_loop.replay import replay
from rlm_loop.traces import RunRecord, Trace, TraceError, read, read_all

UNKNOWN = dict.fromkeys(["cost", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens"])
CELLS = ["```python\nx = 1\nprint(x)\n```", "```python\nprint(x + 1)\n```", "```python\nfinal_answer = {}\n```"]


def solve(path: Path | Trace, answer: int) -> str:
    """One run that ends with that answer; returns its id."""
    model = ScriptedModel([cell.format(answer) for cell in CELLS], name=f"m{answer}")
    return ToolLoopAgent(model=model).run(f"Question {answer}?", trace=path).run


def write(path: Path, number: int, turns: int = 40) -> None:
    """A run of a process of its own, with lines of many lengths."""
    with Trace(path, ids=lambda: f"w{number}") as trace:
        trace.start(task=f"t{number}")
        for turn in range(turns):
            trace.record("note", turn=turn, text=f"{number}" * (1 + 997 * turn % 9001))
        trace.record("run_end", stop="answered", answer=number)


WRITER = """
import sys
from rlm_loop.traces import Trace
path, number, turns = sys.argv[1:]
with Trace(path, ids=lambda: f"w{number}") as trace:
    trace.start(task=number)
    print("begun", flush=True)
    sys.stdin.read()
    for turn in range(int(turns)):
        trace.record("note", turn=turn, text=number * (1 + 9973 * turn % 50_021))
    trace.record("run_end", stop="answered")
"""


def writer(path: Path, number: int, *, turns: int) -> Any:
    """A process that has begun its run, and goes on with it when its standard input is closed."""
    words = [sys.executable, "-c", WRITER, str(path), str(number), str(turns)]
    process: Any = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    process.stdout.readline()
    return process


def turns_of(path: Path, run: str) -> list[int]:
    return [event["turn"] for event in read(path, run=run).of("note")]


def ended(path: Path, run: str) -> bool:
    return read(path, run=run).end is not None


@pytest.mark.parametrize("kept", ["by path", "in one list"])
def test_runs_that_go_on_at_the_same_time_are_read_back_each_by_its_id(tmp_path: Path, kept: str) -> None:
    path, trace = tmp_path / "run.jsonl", Trace()
    with ThreadPoolExecutor(6) as pool:
        ids = list(pool.map(lambda n: solve(trace if kept == "in one list" else path, n), range(6)))
    if kept == "in one list":
        records = [RunRecord(tuple(e for e in trace.events if e["run"] == id)) for id in ids]
    else:
        records = list(read_all(path))
    assert sorted(record.id for record in records) == sorted(ids)
    for record in records:
        assert (outcome_of(record).answer, len(outcome_of(record).turns)) == (ids.index(record.id), 3)
        assert replay(record).same


def test_processes_take_turns_by_line(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    writers = [writer(path, n, turns=40) for n in range(3)]
    for process in writers:
        process.stdin.close()  # all of them at once, now that each is there
    assert [process.wait() for process in writers] == [0, 0, 0]
    for number, process in enumerate(writers):
        process.stdout.close()
        assert (turns_of(path, f"w{number}"), ended(path, f"w{number}")) == ([*range(40)], True)


def test_a_writer_that_is_killed_leaves_the_others_whole(tmp_path: Path) -> None:
    """Its torn line stands on its own, whoever writes next; and the file can be read while it is written."""
    path = tmp_path / "run.jsonl"
    killed = writer(path, 0, turns=10**9)
    killed.stdin.close()
    write(path, 1)
    read(path, run="w1")  # the other still writes
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait()
    killed.stdout.close()
    write(path, 2)
    assert [ended(path, f"w{n}") for n in range(3)] == [False, True, True]
    turns = turns_of(path, "w0")
    assert turns == list(range(len(turns)))


@given(st.floats(0, 1, exclude_max=True))
def test_a_torn_line_is_its_own_runs_alone(tmp_path_factory: pytest.TempPathFactory, where: float) -> None:
    """Wherever a writer is killed, runs beside it and after it are whole, and what it had written is there."""
    path = tmp_path_factory.mktemp("torn") / "run.jsonl"
    one, two = Trace(path, ids=lambda: "r1"), Trace(path, ids=lambda: "r2")
    one.start(task="one"), two.start(task="two")
    for turn in range(3):
        one.record("note", turn=turn), two.record("note", turn=turn)
    size = path.stat().st_size
    two.record("note", turn=3, text="é\n" * 20)
    two.close()
    os.truncate(path, size + int((path.stat().st_size - size) * where))
    one.record("run_end", stop="answered")
    one.close()
    write(path, 3, turns=2)
    assert turns_of(path, "r1") == [0, 1, 2]
    assert turns_of(path, "r2") in ([0, 1, 2], [0, 1, 2, 3])  # 3: all but its newline
    assert ended(path, "w3")


def test_damage_is_the_fault_of_the_run_that_it_is_in(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    for number in (1, 2):
        write(path, number, turns=3)
    lines = path.read_text().splitlines()
    assert json.loads(lines[2])["run"] == "w1"
    lines[2] = lines[2][:30]
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(TraceError, match=r"run.jsonl:3 is damaged"):
        read(path, run="w1")
    assert read(path).id == "w2"


def test_many_runs_and_many_damaged_lines_are_read_in_time_that_grows_with_their_number(tmp_path: Path) -> None:
    def read_them(text: str) -> None:
        starts = [f'{{"run":"r{n}","event":"run_start","schema":5}}' for n in range(len(text) // 20)]
        ends = [line.replace("run_start", "run_end") for line in starts]
        (tmp_path / "run.jsonl").write_text("\n".join([*starts, *["["] * (len(text) // 4), *ends]))
        with pytest.raises(TraceError, match="is damaged in the middle"):
            list(read_all(tmp_path / "run.jsonl"))

    grows_in_proportion(read_them, "x")


def test_runs_of_one_list_are_read_in_their_order_by_any_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    (trace := Trace()).start()
    (other := trace.for_run()).start()
    for number in range(4):
        trace.record("note", turn=number)
    loads, begun = json.loads, threading.Event()

    def slowly(line: str) -> Any:
        if not begun.is_set():
            begun.set()
            time.sleep(0.2)
        return loads(line)

    monkeypatch.setattr(json, "loads", slowly)
    reading = threading.Thread(target=lambda: trace.events)
    reading.start()
    assert begun.wait(10)
    assert [e.get("turn") for e in other.events] == [None, None, 0, 1, 2, 3]
    reading.join()


def test_the_last_run_that_counts_is_read_or_the_one_that_is_named(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    for number in ("1", "2", "3x"):
        with Trace(path, ids=lambda n=number: f"w{n}") as trace:
            trace.start(task=number)
            if number == "3x":
                trace.record("aborted", reason="")
    assert [read(path, run=run).id for run in (None, 0, "w1", "-1")] == ["w2", "w1", "w1", "w3x"]
    with pytest.raises(TraceError, match=r"holds 3 runs: w1 .*; w2 .*; w3x .*tried again.*; there is no run nothing"):
        read(path, run="nothing")


def test_a_full_disk_leaves_no_half_a_line(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    write(path, 1, turns=2)
    before = path.read_bytes()
    trace = Trace(path)
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 100, hard))  # Python ignores the signal of it
    try:
        with pytest.raises(TraceError, match="free some space"):
            trace.start(text="x" * 4096)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == before
    trace.start()
    trace.close()
    trace.record("late")  # from the thread of a call that nobody waits for
    assert path.read_bytes().startswith(before)
    assert [len(run.events) for run in read_all(path)] == [4, 1]


def ask(causes: tuple[str, str]) -> Prompt:
    spans = (Span("one ", causes[0]), Span("two", causes[1]))
    return Prompt((say("system", "s", "system"), Message("user", spans)))


@pytest.mark.parametrize("node", [lambda n: "0", lambda n: f"0.{n + 1}"], ids=["one caller", "two callers"])
def test_requests_of_equal_bytes_keep_their_causes(node: Callable[[int], str]) -> None:
    prompts = [ask(("task", "summary")), ask(("task", "user"))]
    assert prompts[0].digest == prompts[1].digest
    (trace := Trace()).start()
    calls = [trace.next_call() for _ in prompts]
    for n, prompt in enumerate(prompts):
        trace.record("request", prompt=prompt, node=node(n), depth=0, call_id=calls[n])
    for n in (1, 0):  # the later one is answered first
        reply = Reply(f"to {n}", usage=Usage(1, 1))
        trace.record("reply", request=prompts[n], node=node(n), depth=0, call_id=calls[n], reply=reply)
    further = (say("assistant", "a", "assistant"),)
    longer = [prompt + further for prompt in prompts]
    for n, prompt in enumerate(longer):
        trace.record("request", prompt=prompt, node=node(n), depth=0, call_id=trace.next_call())
    record = RunRecord(tuple(trace.events))
    assert [(p, r.text) for _, p, r in record.replies()] == [(prompts[1], "to 1"), (prompts[0], "to 0")]
    assert [p for _, p, reply in record.exchanges() if reply is None] == prompts + longer


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ('{"event": "reply"}\n', "not a trace"),
        ('{"event": "run_start", "schema": 99}\n', "schema 99; this version of rlm-loop reads 5"),
        ('{"event": "run_start", "schema": "five", "run": "r1"}\n', "schema five"),
        ('{"run":"r1","ev', "holds 0 runs"),
        ('{"type": "user", "sessionId": "x", "message": {}}\n', "is not a trace"),  # of Claude Code
        ('{\n  "info": {},\n  "messages": [],\n  "trajectory_format": "mini-swe-agent-1"\n}\n', "is not a trace"),
    ],
)
def test_what_is_not_a_trace_is_refused(tmp_path: Path, text: str, match: str) -> None:
    (tmp_path / "t.jsonl").write_text(text)
    with pytest.raises(TraceError, match=match):
        read(tmp_path / "t.jsonl")


def test_an_unwritable_place_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(TraceError, match="cannot write"):
        Trace(tmp_path / "file/t.jsonl")


def test_requests_are_written_at_once_bodies_when_they_change_and_are_read_when_compressed(tmp_path: Path) -> None:
    path, packed = tmp_path / "t.jsonl", tmp_path / "t.jsonl.gz"
    messages = (say("system", "s", "system"), say("user", "q", "task"))
    with Trace(path) as trace:
        trace.start()
        for tools in ((), ({"name": "f"},), ()):
            trace.record("request", prompt=Prompt(messages, tools=tools))
        events = [json.loads(line) for line in path.read_text().splitlines()]
    first = ["run_start", *["message"] * 2, "settings", "request"]
    assert [event["event"] for event in events] == [*first, "settings", "request", "request"]
    assert events[-1]["settings"] == events[4]["settings"] != events[-2]["settings"]
    assert events[0]["schema"] == 5  # the first line says how to read the others
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert read(packed).events == read(path).events


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (math.nan, {"repr": "nan"}),
        (math.inf, {"repr": "inf"}),
        ({"b", "a", "c"}, ["a", "b", "c"]),
        (object, {"repr": "<class 'object'>"}),
        ((1, "a", None), [1, "a", None]),
        ({1: 2.5}, {"1": 2.5}),
        ("a\ud800b\x00", "a\ud800b\x00"),
        (Usage(1, 2, None), {"is": "Usage", "calls": 1, "input_tokens": 1, "output_tokens": 2} | UNKNOWN),
    ],
)
def test_values_are_made_json(value: object, expected: object, tmp_path: Path) -> None:
    with Trace(tmp_path / "t.jsonl") as trace:
        trace.start(x=value)
    assert read(tmp_path / "t.jsonl").start["x"] == expected

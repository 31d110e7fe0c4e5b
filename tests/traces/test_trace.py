import gzip
import json
import math
from pathlib import Path

import pytest

from rlm_loop.messages import Prompt, Usage, say
from rlm_loop.traces import Trace, TraceError, read

UNKNOWN = dict.fromkeys(["cost", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens"])


def write_run(path: Path) -> None:
    with Trace(path) as trace:
        trace.start(task="t")
        trace.record("request", prompt=Prompt.ask("q"), turn=1)
        trace.record("run_end", stop="answered")


def test_the_schema_version_stands_in_the_first_line(tmp_path: Path) -> None:
    write_run(tmp_path / "t.jsonl")
    first = json.loads((tmp_path / "t.jsonl").read_text().splitlines()[0])
    assert (first["event"], first["schema"]) == ("run_start", 5)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ('{"event": "reply"}\n', "not a trace"),
        ('{"event": "run_start", "schema": 99}\n', "schema 99; this version of rlm-loop reads 5"),
        ('{"event": "run_start", "schema": 1}\n', "schema 1; this version"),
        ("", "holds 0 runs"),
        ('{"run":"r1","ev', "holds 0 runs"),
        ("not json\n", "is not a trace"),
        ('{"type": "user", "sessionId": "x", "message": {}}\n', "is not a trace"),  # of Claude Code
        ('{\n  "info": {},\n  "messages": [],\n  "trajectory_format": "mini-swe-agent-1"\n}\n', "is not a trace"),
    ],
)
def test_what_is_not_a_trace_is_refused(tmp_path: Path, text: str, match: str) -> None:
    (tmp_path / "t.jsonl").write_text(text)
    with pytest.raises(TraceError, match=match):
        read(tmp_path / "t.jsonl")


def test_a_missing_file_and_an_unwritable_place_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="cannot read"):
        read(tmp_path / "none.jsonl")
    (tmp_path / "file").write_text("x")
    with pytest.raises(TraceError, match="cannot write"):
        Trace(tmp_path / "file" / "t.jsonl")


def test_compressed_traces_are_read(tmp_path: Path) -> None:
    write_run(tmp_path / "t.jsonl")
    (tmp_path / "t.jsonl.gz").write_bytes(gzip.compress((tmp_path / "t.jsonl").read_bytes()))
    assert read(tmp_path / "t.jsonl.gz").events == read(tmp_path / "t.jsonl").events


def test_without_a_path_events_are_kept_in_memory() -> None:
    trace = Trace()
    trace.start(x=1)
    assert [e["event"] for e in trace.events] == ["run_start"]
    trace.record("turn", turn=1)  # and what was looked at before is the same list
    trace.record("request", prompt=Prompt.ask("q"))
    assert [e["event"] for e in trace.events] == ["run_start", "turn", "message", "settings", "request"]


def test_settings_are_stored_when_they_change_and_only_then(tmp_path: Path) -> None:
    tools: tuple[dict[str, str], ...] = ({"name": "f"},)
    with Trace(tmp_path / "t.jsonl") as trace:
        trace.start()
        for prompt in (Prompt(), Prompt(tools=tools), Prompt(tools=tools), Prompt(), Prompt(stop=("x",))):
            trace.record("request", prompt=prompt)
    events = read(tmp_path / "t.jsonl").events
    stored = [e["hash"] for e in events if e["event"] == "settings"]
    assert [stored.index(e["settings"]) for e in events if e["event"] == "request"] == [0, 1, 1, 0, 2]


def test_a_request_is_written_at_once_and_whole(tmp_path: Path) -> None:
    with Trace(tmp_path / "t.jsonl") as trace:
        trace.start()
        trace.record("request", prompt=Prompt((say("system", "s", "system"), say("user", "q", "task"))))
        lines = (tmp_path / "t.jsonl").read_text().splitlines()
    assert [json.loads(line)["event"] for line in lines] == ["run_start", *["message"] * 2, "settings", "request"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (math.nan, {"repr": "nan"}),
        (math.inf, {"repr": "inf"}),
        ({"b", "a", "c"}, ["a", "b", "c"]),
        (object, {"repr": "<class 'object'>"}),
        ((1, "a", None), [1, "a", None]),
        ({1: 2.5}, {"1": 2.5}),
        (Usage(1, 2, None), {"is": "Usage", "calls": 1, "input_tokens": 1, "output_tokens": 2} | UNKNOWN),
    ],
)
def test_values_are_made_json(value: object, expected: object) -> None:
    (trace := Trace()).start(x=value)
    assert trace.events[0]["x"] == expected


def test_lone_surrogates_survive(tmp_path: Path) -> None:
    with Trace(tmp_path / "t.jsonl") as trace:
        trace.start(text="a\ud800b\x00")
    assert read(tmp_path / "t.jsonl").start["text"] == "a\ud800b\x00"

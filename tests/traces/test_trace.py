import gzip
import json
import math
from pathlib import Path

import pytest

from rlm_loop.messages import Message, Prompt, Reply, Span, ToolCall, Usage, say
from rlm_loop.traces import Trace, TraceError, read, read_all


def write_run(path: Path, turns: int = 3, size: int = 10) -> list[Prompt]:
    prompts: list[Prompt] = []
    with Trace(path) as trace:
        trace.start(task="t")
        prompt = Prompt((say("user", "q" * size, "task"),), ({"type": "function"},), ("stop",))
        for turn in range(1, turns + 1):
            prompts.append(prompt)
            key = trace.request(prompt, turn=turn)
            reply = Reply(f"r{turn}", (ToolCall("1", "f", "{}"),), usage=Usage(5, 6, 0), extra={"id": "x"})
            trace.record("reply", request=key, turn=turn, reply=reply)
            prompt += [Message("assistant", (Span("a" * size, "assistant"),), turn=turn)]
        trace.record("run_end", stop="answered")
    return prompts


def test_requests_and_replies_come_back_whole(tmp_path: Path) -> None:
    prompts = write_run(tmp_path / "t.jsonl")
    calls = list(read(tmp_path / "t.jsonl").calls())
    assert [p for _, p, _ in calls] == prompts
    assert [d for d, _, _ in calls] == [p.digest() for p in prompts]
    assert calls[0][2] == Reply("r1", (ToolCall("1", "f", "{}"),), usage=Usage(5, 6, 0))
    assert calls[0][2].extra == {"id": "x"}


def test_the_schema_version_stands_in_the_first_line(tmp_path: Path) -> None:
    write_run(tmp_path / "t.jsonl")
    first = json.loads((tmp_path / "t.jsonl").read_text().splitlines()[0])
    assert (first["event"], first["schema"]) == ("run_start", 5)


def test_size_is_linear_in_turns(tmp_path: Path) -> None:
    sizes = {}
    for turns in (10, 20, 40):
        write_run(tmp_path / f"{turns}.jsonl", turns, size=2000)
        sizes[turns] = (tmp_path / f"{turns}.jsonl").stat().st_size
    assert sizes[40] - sizes[20] < 2.2 * (sizes[20] - sizes[10])


@pytest.mark.parametrize("cut", [1, 5, 40])
def test_a_torn_last_line_is_ignored(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "t.jsonl"
    write_run(path)
    whole = len(read(path).events)
    path.write_bytes(path.read_bytes()[:-cut])
    assert len(read(path).events) in (whole, whole - 1)
    write_run(path)  # appending after a torn line keeps both runs readable
    assert len(list(read_all(path))) == 2
    assert read(path).end is not None


def test_damage_in_the_middle_is_named(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    write_run(path)
    lines = path.read_text().splitlines()
    lines[2] = lines[2][:10]
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(TraceError, match=r"t.jsonl:3 is damaged"):
        read(path)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ('{"event": "reply"}\n', "not a trace"),
        ('{"event": "run_start", "schema": 99}\n', "schema 99.*upgrade"),
        ('{"event": "run_start", "schema": 1}\n', "schema 1;.*record it again"),
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
    trace.request(Prompt.ask("q"))
    assert [e["event"] for e in trace.events] == ["run_start", "turn", "message", "settings", "request"]


def test_settings_are_stored_when_they_change_and_only_then(tmp_path: Path) -> None:
    tools: tuple[dict[str, str], ...] = ({"name": "f"},)
    with Trace(tmp_path / "t.jsonl") as trace:
        trace.start()
        for prompt in (Prompt(), Prompt(tools=tools), Prompt(tools=tools), Prompt(), Prompt(stop=("x",))):
            trace.request(prompt)
    events = read(tmp_path / "t.jsonl").events
    stored = [e["hash"] for e in events if e["event"] == "settings"]
    assert [stored.index(e["settings"]) for e in events if e["event"] == "request"] == [0, 1, 1, 0, 2]


def test_a_request_is_written_at_once_and_whole(tmp_path: Path) -> None:
    with Trace(tmp_path / "t.jsonl") as trace:
        trace.start()
        trace.request(Prompt((say("system", "s", "system"), say("user", "q", "task"))))
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
        (
            Usage(1, 2, None),
            {
                "is": "Usage",
                "calls": 1,
                "cost": None,
                "input_tokens": 1,
                "cache_read_tokens": None,
                "cache_write_tokens": None,
                "output_tokens": 2,
                "reasoning_tokens": None,
            },
        ),
    ],
)
def test_values_are_made_json(value: object, expected: object) -> None:
    (trace := Trace()).start(x=value)
    assert trace.events[0]["x"] == expected


def test_lone_surrogates_survive(tmp_path: Path) -> None:
    with Trace(tmp_path / "t.jsonl") as trace:
        trace.start(text="a\ud800b\x00")
    assert read(tmp_path / "t.jsonl").start["text"] == "a\ud800b\x00"

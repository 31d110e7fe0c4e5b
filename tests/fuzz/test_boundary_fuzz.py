"""Whatever comes from a worker, a trace, a study or a provider: no exception but ours, and memory in proportion.

`RLM_LOOP_FUZZ` is how many cases each test tries (200 unless told); see CONTRIBUTING.md.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rlm_loop.models import ModelError
from rlm_loop.models.wire import to_reply
from rlm_loop.repl.host.frames import FrameReader, decode
from rlm_loop.repl.results import displays_in
from rlm_loop.study import StudyError
from rlm_loop.study.store.reading import latest, rows_of
from rlm_loop.traces import TraceError, read_all
from rlm_loop.traces.received import parse

pytestmark = pytest.mark.slow

ROW = {"arm": "a", "model": "m", "suite": "s", "task": "t", "seed": 0, "resolved": True, "trace": None, "error": None}
CASES = int(os.environ.get("RLM_LOOP_FUZZ", "200"))
fuzzed = settings(max_examples=CASES, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])

TEXTS = st.one_of(
    st.text(max_size=20),
    st.sampled_from(["run_start", "run_end", "request", "reply", "message", "settings", "turn", "aborted", "int64"]),
    st.sampled_from(["", "0", "-1", "1e9999", "0x" + "f" * 6000, "\ud800", "2026-01-01", "=", "int8", "image/png"]),
)
NUMBERS = st.one_of(st.integers(), st.floats(), st.sampled_from([10**400, -(2**63), 10**15, 5]))
KINDS = "dict int str tuple set frozenset bytes datetime date decimal answer failure none"
NAMES = """
t event run node depth turn schema hash message digest base added kept settings role spans text cause
tool_calls tool_call_id id name arguments function choices content usage prompt_tokens cost finish_reason
reply request arm model suite task seed resolved trace error broken_off displays data columns index dtypes
error_class
"""
NAMED = st.one_of(st.sampled_from(NAMES.split()), TEXTS)


def forms(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    tagged = st.fixed_dictionaries({"~": st.sampled_from(KINDS.split()), "v": inner})
    return st.one_of(st.lists(inner, max_size=5), st.dictionaries(NAMED, inner, max_size=6), tagged)


VALUES = st.recursive(st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS), forms, max_leaves=25)
OBJECTS = st.dictionaries(NAMED, VALUES, max_size=8)
NESTED = st.builds(
    lambda text, n: '{"a":[' * n + text + "]}" * n, VALUES.map(json.dumps), st.sampled_from([1, 50, 150, 3000])
)
CUT = st.builds(lambda text, end: text[:end], OBJECTS.map(json.dumps), st.integers(0, 200))
TEXT_LINES = st.one_of(OBJECTS.map(json.dumps), VALUES.map(json.dumps), NESTED, st.text(max_size=60), CUT)
LINES = TEXT_LINES.map(lambda line: line.encode("utf-8", "surrogatepass"))


def bounded(size: int, read: Callable[[], object], *ours: type[Exception]) -> None:
    """Read it: no exception but ours, and no more memory than a generous multiple of what was received.

    Twice where it was too much: threads that other tests left behind are counted too.
    """
    for _ in range(2):
        tracemalloc.start()
        try:
            with contextlib.suppress(*ours):
                read()
        finally:
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        if peak < 4_000_000 + 200 * size:
            return
    raise AssertionError(f"{peak} bytes for {size} that were received")


@fuzzed
@given(st.lists(LINES, max_size=6), st.integers(1, 64))
def test_frames(lines: list[bytes], piece: int) -> None:
    data, reader = b"\n".join(lines) + b"\n", FrameReader()

    def take() -> None:
        for start in range(0, len(data), piece * 16):
            assert all("t" in frame for frame in reader.take(data[start : start + piece * 16]))

    bounded(len(data), take)


@fuzzed
@given(VALUES)
def test_values(value: Any) -> None:
    bounded(len(json.dumps(value)), lambda: decode(value), ValueError)


@fuzzed
@given(VALUES, OBJECTS)
def test_displays(displays: Any, more: dict[str, Any]) -> None:
    assert all(isinstance(d.data, str) for d in displays_in({**more, "displays": displays}))


@fuzzed
@given(VALUES, st.lists(OBJECTS, max_size=3), OBJECTS)
def test_replies(whole: Any, choices: list[Any], message: dict[str, Any]) -> None:
    for body in (whole, {"choices": choices}, {"choices": [{"message": message}], "usage": whole}):
        data = json.dumps(body).encode()
        # no JSON that is taken is a ValueError: the clients make a ModelError of it
        bounded(len(data), lambda data=data: to_reply(parse(data), model="m"), ModelError, ValueError)


@fuzzed
@given(st.lists(LINES, max_size=5))
def test_traces(lines: list[bytes]) -> None:
    data = b"\n".join([json.dumps({"event": "run_start", "schema": 5, "run": "r1"}).encode(), *lines, b""])

    def take() -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "t.jsonl"
            path.write_bytes(data)
            for run in read_all(path):
                assert run.end is None or run.end["event"] == "run_end"
                list(run.exchanges())

    bounded(len(data), take, TraceError)


@fuzzed
@given(st.lists(st.one_of(LINES, OBJECTS.map(lambda more: json.dumps({**ROW, **more}).encode())), max_size=5))
def test_study_lines(lines: list[bytes]) -> None:
    first = json.dumps(ROW).encode()
    latest(rows_of(first, Path("results.jsonl")))  # what rows are checked with is imported
    data = b"\n".join([first, *lines, b""])
    bounded(len(data), lambda: latest(rows_of(data, Path("results.jsonl"))), StudyError)

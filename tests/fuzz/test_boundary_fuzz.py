"""Whatever comes from a worker, a trace, a study or a provider: no exception but ours, and memory in proportion.

`RLM_LOOP_FUZZ` is how many cases each test tries (200 unless told); see CONTRIBUTING.md.
"""

from __future__ import annotations

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
ATOMS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), TEXTS, st.sampled_from([10**400, -(2**63), 10**15, 5])
)
_KINDS = """
dict int str tuple set frozenset bytes datetime date decimal answer failure none
"""
_NAMES = """
t event run node depth turn schema hash message digest base added kept settings role spans text cause
tool_calls tool_call_id id name arguments function choices content usage prompt_tokens cost finish_reason
reply request arm model suite task seed resolved trace error broken_off displays data columns index dtypes
error_class
"""
KINDS = st.sampled_from(_KINDS.split())
NAMES = st.one_of(
    st.sampled_from(_NAMES.split()),
    TEXTS,
)


def tagged(kind: str, value: Any) -> dict[str, Any]:
    return {"~": kind, "v": value}


def cut(line: str, at: int) -> str:
    return line[:at]


def as_bytes(line: str) -> bytes:
    return line.encode("utf-8", "surrogatepass")


def showing(displays: Any, more: dict[str, Any]) -> dict[str, Any]:
    return {**more, "displays": displays}


def row(more: dict[str, Any]) -> bytes:
    return json.dumps({**ROW, **more}).encode()


def forms(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.lists(inner, max_size=5),
        st.dictionaries(NAMES, inner, max_size=6),
        st.builds(tagged, KINDS, inner),
    )


VALUES = st.recursive(ATOMS, forms, max_leaves=25)
OBJECTS = st.dictionaries(NAMES, VALUES, max_size=8)


def nested(value: Any, levels: int) -> str:
    return '{"a":[' * levels + json.dumps(value) + "]}" * levels


LINES = st.one_of(
    OBJECTS.map(json.dumps),
    VALUES.map(json.dumps),
    st.builds(nested, VALUES, st.sampled_from([1, 50, 150, 3000])),
    st.text(max_size=60),
    st.builds(cut, OBJECTS.map(json.dumps), st.integers(0, 200)),
).map(as_bytes)


def within(size: int, work: Callable[[], Any]) -> Any:
    """Do it with no more memory than a generous multiple of what was received."""
    tracemalloc.start()
    try:
        return work()
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 4_000_000 + 200 * size


@fuzzed
@given(st.lists(LINES, max_size=6), st.integers(1, 64))
def test_frames(lines: list[bytes], piece: int) -> None:
    data = b"\n".join(lines) + b"\n"
    reader = FrameReader()

    def take() -> None:
        for start in range(0, len(data), piece * 16):
            for frame in reader.take(data[start : start + piece * 16]):
                assert "t" in frame

    within(len(data), take)


@fuzzed
@given(VALUES)
def test_values(value: Any) -> None:
    def take() -> None:
        try:
            decode(value)
        except ValueError:
            return

    within(len(json.dumps(value)), take)


@fuzzed
@given(st.builds(showing, VALUES, OBJECTS))
def test_displays(report: dict[str, Any]) -> None:
    assert all(isinstance(d.data, str) for d in displays_in(report))


@fuzzed
@given(VALUES, st.lists(OBJECTS, max_size=3), OBJECTS)
def test_replies(whole: Any, choices: list[Any], message: dict[str, Any]) -> None:
    for body in (whole, {"choices": choices}, {"choices": [{"message": message}], "usage": whole}):
        data = json.dumps(body).encode()

        def take(data: bytes = data) -> None:
            try:
                to_reply(parse(data), model="m")
            except (ModelError, ValueError):  # no JSON that is taken: the clients make a ModelError of it
                return

        within(len(data), take)


@fuzzed
@given(st.lists(LINES, max_size=5))
def test_traces(lines: list[bytes]) -> None:
    start = {"event": "run_start", "schema": 5, "run": "r1"}
    data = b"\n".join([json.dumps(start).encode(), *lines, b""])

    def take() -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "t.jsonl"
            path.write_bytes(data)
            try:
                for run in read_all(path):
                    assert run.end is None or run.end["event"] == "run_end"
                    list(run.requests())
                    list(run.replies())
            except TraceError:
                return

    within(len(data), take)


@fuzzed
@given(st.lists(st.one_of(LINES, OBJECTS.map(row)), max_size=5))
def test_study_lines(lines: list[bytes]) -> None:
    latest(rows_of(json.dumps(ROW).encode(), Path("results.jsonl")))  # what rows are checked with is imported
    data = b"\n".join([json.dumps(ROW).encode(), *lines, b""])

    def take() -> None:
        try:
            latest(rows_of(data, Path("results.jsonl")))
        except StudyError:
            return

    within(len(data), take)
